/* What is new for readers of /api/events: rows of servers that differ from those sent before, calls
 * that were marked, lines of the log, and lists of which only a digest is kept. Called by
 * live.c. */
#include "admin/inside.h"
#include "base/map.h"
#include "core/approval.h"
#include "hub/graph/lock.h"
#include "mcp/agent/session_list.h"
#include "wire/json_out.h"

#include <inttypes.h>

enum { CALLS_MAX = 100, LINES_MAX = 200 };

/* A server whose row differs from the one that was sent last. */
struct news_row {
    struct list node;
    struct buf alias, json; /* without json: the server is gone */
};

struct news {
    struct admin *admin;
    struct map told;           /* alias -> digest of the row that was sent last */
    struct list rows;          /* of struct news_row: rows that differ from `told` */
    uint64_t calls[CALLS_MAX]; /* oldest mark first, each once */
    size_t n_calls, skipped;
    uint64_t next_line, lost_lines;
    uint64_t digests[LIVE_KINDS];
};

/* --- servers --- */

/* Never NULL, so that a map can have it. */
static void *digest_of(struct span text)
{
    return (void *)(uintptr_t)(map_hash(text) | 1); // NOLINT(performance-no-int-to-ptr)
}

static struct news_row *add_row(struct news *n, struct span alias)
{
    struct news_row *row = MEM_NEW(struct news_row);

    buf_span(&row->alias, alias);
    list_append(&n->rows, &row->node);
    return row;
}

static void note_row(struct news *n, const char *alias, struct span json)
{
    void *digest = digest_of(json);

    if (map_put(&n->told, span_str(alias), digest) != digest)
        buf_span(&add_row(n, span_str(alias))->json, json);
}

static void find_changed(struct news *n)
{
    for (const struct provider *p = NULL; (p = bridge_next(n->admin->bridge, p));) {
        BUF_SCOPED json = {0};
        status_put_server(&json, n->admin, p);
        note_row(n, p->alias, buf_view(&json));
    }
    for (const struct config_server *s = NULL; (s = servers_next_absent(n->admin, s));) {
        BUF_SCOPED json = {0};
        servers_put_absent(&json, n->admin, s);
        note_row(n, s->alias, buf_view(&json));
    }
}

static bool is_here(const struct news *n, struct span alias)
{
    for (const struct config_server *s = NULL; (s = servers_next_absent(n->admin, s));)
        if (span_is(alias, s->alias))
            return true;
    for (const struct provider *p = NULL; (p = bridge_next(n->admin->bridge, p));)
        if (span_is(alias, p->alias))
            return true;
    return false;
}

static void find_gone(struct news *n)
{
    struct list *before = n->rows.prev;
    struct span alias;
    size_t at = 0;
    void *digest;

    while (map_next(&n->told, &at, &alias, &digest))
        if (!is_here(n, alias))
            add_row(n, alias);
    for (struct list *it = before->next; it != &n->rows; it = it->next)
        map_del(&n->told, buf_view(&LIST_ENTRY(it, struct news_row, node)->alias));
}

static void forget_rows(struct news *n)
{
    LIST_EACH_SAFE (&n->rows, it) {
        struct news_row *row = LIST_ENTRY(it, struct news_row, node);
        list_remove(&row->node);
        buf_fini(&row->alias);
        buf_fini(&row->json);
        mem_free(row);
    }
}

static bool put_servers(struct buf *out, const struct news *n, const struct sight *s)
{
    bool any = false;

    buf_char(out, '[');
    LIST_EACH (&n->rows, it) {
        const struct news_row *row = LIST_ENTRY(it, struct news_row, node);
        if (!sight_shows_server(s, buf_view(&row->alias)))
            continue;
        any = true;
        if (row->json.n) {
            json_out_raw(out, NULL, buf_view(&row->json));
            continue;
        }
        json_out_open(out, NULL, '{');
        json_out_text(out, "name", buf_view(&row->alias));
        json_out_bool(out, "gone", true);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    return any;
}

/* --- calls --- */

void news_add_call(struct news *n, uint64_t id)
{
    for (size_t i = n->n_calls; i > 0; i--)
        if (n->calls[i - 1] == id)
            return;
    if (n->n_calls == CALLS_MAX) {
        memmove(n->calls, n->calls + 1, (CALLS_MAX - 1) * sizeof n->calls[0]);
        n->n_calls--;
        n->skipped++;
    }
    n->calls[n->n_calls++] = id;
}

static bool put_calls(struct buf *out, const struct news *n, const struct sight *s)
{
    bool any = n->skipped > 0;

    buf_char(out, '{');
    json_out_open(out, "rows", '[');
    for (size_t i = 0; i < n->n_calls; i++) {
        const struct record *rec = recorder_find(&n->admin->recorder, n->calls[i]);
        if (!rec || !sight_shows_call(s, rec->server, rec->op, rec->name))
            continue;
        calls_put_row(out, n->admin, rec);
        any = true;
    }
    buf_char(out, ']');
    json_out_number(out, "skipped", n->skipped);
    buf_char(out, '}');
    return any;
}

/* --- the log --- */

static bool put_log(struct buf *out, const struct news *n, const struct sight *s)
{
    if (s->narrowed)
        return false;
    buf_char(out, '{');
    log_ring_put_from(out, &n->admin->log, n->next_line);
    json_out_number(out, "skipped", n->lost_lines);
    buf_char(out, '}');
    return true;
}

static void on_line(void *arg)
{
    struct news *n = arg;

    live_mark(n->admin->live, LIVE_LOG);
}

/* --- lists that are fetched again --- */

static void put_approvals(struct buf *out, const struct admin *a)
{
    const struct lock *lock = bridge_lock(a->bridge);

    for (struct call *c = NULL; (c = approval_next(a->router, c));)
        buf_printf(out, "%" PRIu64 " ", c->handle);
    for (const struct lock_held *h = NULL; (h = lock_next(lock, h));)
        buf_printf(out, "t%" PRIu64 "%d ", h->id, lock_is_waiting(lock, h));
}

static void put_tools(struct buf *out, const struct admin *a)
{
    buf_printf(out, "%p", (const void *)bridge_config(a->bridge)); /* for its filters */
    for (struct provider *p = NULL; (p = router_next_provider(a->router, p));)
        buf_printf(out, " %s %" PRIu64 "%d", p->alias, p->catalog ? p->catalog->generation : 0,
                   provider_advertised(p));
}

static void put_tasks(struct buf *out, const struct admin *a)
{
    for (struct task *t = NULL; (t = tasks_next(router_tasks(a->router), t));)
        buf_printf(out, "%s %d%d ", t->id, t->ended, t->cancelled);
}

static void put_pages(struct buf *out, const struct admin *a)
{
    struct browser_numbers now = {0};

    hub_count_pages(a->hub, &now);
    if (now.of)
        browser_put_pages(out, now.of, true);
}

static void put_sessions(struct buf *out, const struct admin *a)
{
    for (const struct session_list_entry *e = NULL;
         (e = session_list_next(bridge_sessions(a->bridge), e));)
        buf_printf(out, "%s %s %" PRIu64 " %" PRIu64 " %zu ", e->label, e->client ? e->client : "",
                   e->last, e->calls, *e->open);
    stateless_put_digest(out, a);
}

/* Has the list changed? Some kinds are marked whenever anything near them changes, so what their
 * lists are made of is compared by a digest. */
static bool is_new(struct news *n, enum live_kind kind)
{
    static void (*const puts[LIVE_KINDS])(struct buf * out, const struct admin *a) = {
        [LIVE_APPROVALS] = put_approvals, [LIVE_TOOLS] = put_tools,
        [LIVE_PAGES] = put_pages,         [LIVE_TASKS] = put_tasks,
        [LIVE_SESSIONS] = put_sessions,   [LIVE_BUS] = buses_put_digest};
    BUF_SCOPED text = {0};

    if (!puts[kind])
        return true;
    puts[kind](&text, n->admin);
    uint64_t before = n->digests[kind];
    n->digests[kind] = map_hash(buf_view(&text));
    return n->digests[kind] != before;
}

/* --- all of them --- */

unsigned news_gather(struct news *n, unsigned kinds)
{
    const struct log_ring *log = &n->admin->log;
    unsigned found = 0;

    if (kinds & 1U << LIVE_SERVERS) {
        find_changed(n);
        find_gone(n);
    }
    if (kinds & 1U << LIVE_LOG && log->next - n->next_line > LINES_MAX) {
        n->lost_lines = log->next - n->next_line - LINES_MAX;
        n->next_line = log->next - LINES_MAX;
    }
    for (unsigned i = 0; i < LIVE_KINDS; i++)
        if (kinds & 1U << i && is_new(n, i))
            found |= 1U << i;
    return found;
}

bool news_put(struct buf *out, const struct news *n, enum live_kind kind, const struct sight *s)
{
    static bool (*const puts[LIVE_KINDS])(struct buf * out, const struct news *n,
                                          const struct sight *s) = {
        [LIVE_SERVERS] = put_servers, [LIVE_CALLS] = put_calls, [LIVE_LOG] = put_log};

    if (puts[kind])
        return puts[kind](out, n, s);
    buf_str(out, "{}");
    return true;
}

void news_forget(struct news *n, unsigned kinds)
{
    forget_rows(n);
    if (kinds & 1U << LIVE_CALLS)
        n->n_calls = n->skipped = 0;
    if (kinds & 1U << LIVE_LOG) {
        n->next_line = n->admin->log.next;
        n->lost_lines = 0;
    }
}

void news_begin(struct news *n)
{
    news_gather(n, ~0U);
    news_forget(n, ~0U);
}

struct news *news_new(struct admin *a)
{
    struct news *n = MEM_NEW(struct news);

    n->admin = a;
    list_init(&n->rows);
    a->log.news = on_line;
    a->log.news_arg = n;
    return n;
}

void news_free(struct news *n)
{
    n->admin->log.news = NULL;
    forget_rows(n);
    map_fini(&n->told);
    mem_free(n);
}
