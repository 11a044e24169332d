/* The list of sessions, with limits and expiry; keep-alive of connections, start and shutdown.
 * Called by hub/web_pages.c and the other files of browser/; by admin/news.c, sessions.c and
 * status.c for the list of pages; and by cmd/browser.c to check session ids. */
#include "browser/browser.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "browser/agent.h"
#include "browser/guide.h"
#include "browser/join.h"
#include "browser/kept.h"
#include "browser/launch.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "browser/remotes.h"
#include "io/listen.h"
#include "wire/json_out.h"

#include <time.h>

enum {
    CLIENT_GONE = 4002, /* BTCP's close code for a WebSocket whose session is over */
    KEEP_ALIVE_MS = 15 * 1000,
    LIFE_MS = 10 * 1000, /* a page may take this long to answer a keep-alive ping */
    GOODBYE_MS = 800,
    SWEEP_MIN = 100,
    SWEEP_MAX = 10 * 1000,
};

uint64_t browser_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- sessions --- */

bool browser_can_be_session(struct span id)
{
    return id.n && id.n <= 128 && ascii_is_words(id, "._:-");
}

/* The session has no connected page, no agent and no open call. */
static bool is_deserted(const struct browser_session *s)
{
    return !session_is_connected(s) && list_empty(&s->agents) && !s->core.n_open;
}

/* When the session expires if nothing happens; UINT64_MAX: never. */
static uint64_t end_of(const struct browser *b, const struct browser_session *s)
{
    uint64_t ttl = b->options.session_ttl, idle = b->options.session_idle;
    uint64_t unused = is_deserted(s) ? ttl : UINT64_MAX;

    if (idle && idle < unused)
        unused = idle;
    return unused == UINT64_MAX ? unused : s->used_at + unused;
}

/* The timer is set for the session that expires next; if none expires, it is not set. */
void browser_sweep_later(struct browser *b, const struct browser_session *s)
{
    uint64_t now = loop_now(b->loop), at = end_of(b, s), ttl = b->options.session_ttl;

    if (at == UINT64_MAX || (timer_is_set(&b->sweep) && b->sweep_at <= at))
        return;
    if (at <= now) /* overdue: it was in use, or may not end yet; check again later */
        at = now + (ttl / 4 > SWEEP_MAX ? SWEEP_MAX : ttl / 4 < SWEEP_MIN ? SWEEP_MIN : ttl / 4);
    b->sweep_at = at;
    timer_set(loop_timers(b->loop), &b->sweep, b->sweep_at - now);
}

static bool may_end(const struct browser *b, struct browser_session *s)
{
    return !b->options.may_end || b->options.may_end(b->options.arg, s);
}

static void tell_ending(const struct browser *b, struct browser_session *s)
{
    if (b->options.ending)
        b->options.ending(b->options.arg, s);
}

static void end_session(struct browser *b, struct browser_session *s)
{
    log_info("browser", "session %s is over", s->id);
    tell_ending(b, s);
    map_del(&b->sessions, span_str(s->id));
    remotes_drop(b->remotes, span_str(s->id));
    session_hang_up(s, CLIENT_GONE, "the session is over");
    session_free(s);
}

/*
 * Makes room for one more session: at the limit, the deserted session that was unused longest ends,
 * so that closed pages do not keep others out until their sessions expire. A session that was used
 * in this turn of the loop stays, because a message to it may be being handled.
 */
static bool make_room(struct browser *b)
{
    struct browser_session *oldest = NULL;
    size_t at = 0;
    void *value;

    if (b->sessions.n < b->options.max_sessions)
        return true;
    while (map_next(&b->sessions, &at, NULL, &value)) {
        struct browser_session *s = value;
        if (s->used_at < (oldest ? oldest->used_at : loop_now(b->loop)) && is_deserted(s) &&
            may_end(b, s))
            oldest = s;
    }
    if (oldest)
        end_session(b, oldest);
    return oldest != NULL;
}

struct browser_session *browser_make_session(struct browser *b, struct span id)
{
    char uuid[ID_UUID_SIZE];

    if (!id.n) {
        id_uuid(uuid);
        id = span_str(uuid);
    }
    return browser_session(b, id, true);
}

/* Shows a new provider, a session or the guide, to agents. */
static void show(struct browser *b, struct provider *p)
{
    view_add(b->all, p, NULL);
    if (b->options.opened)
        b->options.opened(b->options.arg, p);
}

static void show_guide(struct browser *b)
{
    if (b->guide)
        return;
    b->guide = guide_new(b, NULL);
    show(b, guide_provider(b->guide));
}

struct browser_session *browser_session(struct browser *b, struct span id, bool create)
{
    struct browser_session *s = id.n ? map_get(&b->sessions, id) : NULL;

    if (s || !create || b->closed)
        return s;
    if (!browser_can_be_session(id) || !make_room(b))
        return NULL;
    show_guide(b);
    s = session_new(b, id);
    map_put(&b->sessions, id, s);
    browser_sweep_later(b, s);
    log_info("browser", "session %s is open", s->id);
    show(b, &s->core);
    return s;
}

struct browser_session *browser_only_session(const struct browser *b)
{
    size_t at = 0;
    void *value = NULL;

    if (b->sessions.n == 1)
        map_next(&b->sessions, &at, NULL, &value);
    return value;
}

struct view *browser_session_view(const struct browser_session *s)
{
    return s->view;
}

struct view *browser_view(const struct browser *b)
{
    return b->all;
}

void browser_count(const struct browser *b, struct browser_numbers *out)
{
    size_t at = 0;
    void *value;

    *out = (struct browser_numbers){.of = b, .sessions = b->sessions.n, .stats = b->past};
    while (map_next(&b->sessions, &at, NULL, &value)) {
        const struct browser_session *s = value;
        LIST_EACH (&s->pages, it)
            out->pages += page_pipe(LIST_ENTRY(it, struct page, node)) != NULL;
        LIST_EACH (&s->agents, it)
            out->agents++;
        out->tools += session_tool_count(s);
        stats_add(&out->stats, &s->core.stats);
    }
}

static bool is_over(const struct browser *b, struct browser_session *s)
{
    if (s->core.n_open)
        return false; /* a call waits for a page's answer */
    return loop_now(b->loop) >= end_of(b, s) && may_end(b, s);
}

static struct browser_session *next_over(const struct browser *b)
{
    size_t at = 0;
    void *value;

    while (map_next(&b->sessions, &at, NULL, &value))
        if (is_over(b, value))
            return value;
    return NULL;
}

static void on_sweep(struct timer *t)
{
    struct browser *b = CONTAINER_OF(t, struct browser, sweep);
    struct browser_session *s;
    size_t at = 0;
    void *value;

    while ((s = next_over(b)))
        end_session(b, s);
    while (map_next(&b->sessions, &at, NULL, &value))
        browser_sweep_later(b, value);
}

/* --- lists of pages and sessions --- */

void browser_put_pages(struct buf *out, const struct browser *b, bool whole)
{
    size_t at = 0;
    void *value;

    buf_char(out, '[');
    while (map_next(&b->sessions, &at, NULL, &value))
        session_put_pages(out, value, whole);
    buf_char(out, ']');
}

static void put_time(struct buf *out, uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(out, "\"%s.%03uZ\"", text, (unsigned)(ms % 1000));
}

void browser_put_sessions(struct buf *out, const struct browser *b, enum session_facts facts)
{
    size_t at = 0;
    void *value;

    buf_char(out, '[');
    while (map_next(&b->sessions, &at, NULL, &value)) {
        const struct browser_session *s = value;
        size_t agents = 0;
        LIST_EACH (&s->agents, it)
            agents++;
        if (facts == SESSION_IDS) {
            json_out_str(out, NULL, s->id);
            continue;
        }
        json_out_open(out, NULL, '{');
        json_out_str(out, "id", s->id);
        json_out_bool(out, "hasBrowser", session_is_connected(s));
        json_out_number(out, "agentCount", agents);
        json_out_number(out, "toolCount", session_tool_count(s));
        json_out(out, "createdAt");
        put_time(out, s->created_at);
        if (facts == SESSION_PAGES) {
            json_out_open(out, "pages", '[');
            session_put_pages(out, s, false);
            buf_char(out, ']');
        }
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* --- news --- */

static void on_news(struct timer *t)
{
    struct browser *b = CONTAINER_OF(t, struct browser, news);

    b->told_at = loop_now(b->loop);
    router_tell_changes(b->router, NULL);
}

/* If agents were told nothing in the last COALESCE_MS, they are told when timers fire next; not
 * from here, because an agent's call may be on the stack. */
void browser_news(struct browser *b)
{
    uint64_t since = loop_now(b->loop) - b->told_at;

    if (!timer_is_set(&b->news))
        timer_set(loop_timers(b->loop), &b->news, since >= COALESCE_MS ? 0 : COALESCE_MS - since);
}

/* --- life --- */

void browser_keep_alive(struct browser *b)
{
    if (!timer_is_set(&b->keep_alive))
        timer_set(loop_timers(b->loop), &b->keep_alive, KEEP_ALIVE_MS);
}

/* Writing also detects pages that vanished: TCP gives up when nothing is acknowledged. */
static void on_keep_alive(struct timer *t)
{
    struct browser *b = CONTAINER_OF(t, struct browser, keep_alive);

    LIST_EACH (&b->pipes, it) {
        struct pipe *p = LIST_ENTRY(it, struct pipe, node);
        pipe_comment(p, p->dialect->ping_is_event ? SPAN("event: ping\ndata: {}\n\n")
                                                  : SPAN(": keepalive\n\n"));
        if (p->page)
            page_request_ask_life(p->page, LIFE_MS);
    }
    if (b->n_pipes)
        browser_keep_alive(b);
}

static void on_goodbye(struct timer *t)
{
    struct browser *b = CONTAINER_OF(t, struct browser, goodbye);

    LIST_EACH (&b->pipes, it) {
        struct pipe *p = LIST_ENTRY(it, struct pipe, node);
        if (p->ws)
            ws_abort(p->ws, "no time left");
    }
}

struct browser *browser_new(struct loop *loop, struct router *router,
                            const struct browser_options *options)
{
    struct browser *b = MEM_NEW(struct browser);

    b->loop = loop;
    b->router = router;
    b->options = *options;
    b->started_at = loop_now(loop);
    id_uuid(b->instance);
    b->news.fire = on_news;
    b->sweep.fire = on_sweep;
    b->keep_alive.fire = on_keep_alive;
    b->goodbye.fire = on_goodbye;
    list_init(&b->pipes);
    list_init(&b->posts);
    list_init(&b->joins);
    list_init(&b->opening);
    b->all = view_new("pages", NULL);
    b->kept = kept_load(options->grants_file);
    b->remotes = remotes_load(options->remotes_file);
    struct err err;
    if (options->socket && pipe_listen(b, options->socket, &err))
        log_error("browser", "%s", err.text);
    for (size_t i = 0; i < options->n_joins; i++)
        if (!join_new(b, &options->joins[i], &err))
            log_error("browser", "%s", err.text);
    if (options->webmcp)
        show_guide(b);
    return b;
}

static void on_ended(struct deferred *d)
{
    struct browser *b = CONTAINER_OF(d, struct browser, ended);
    size_t at = 0;
    void *value;

    /* Who sees any of the sessions must be gone before the first of them is freed. */
    while (map_next(&b->sessions, &at, NULL, &value))
        tell_ending(b, value);
    tell_ending(b, NULL);
    for (at = 0; map_next(&b->sessions, &at, NULL, &value);)
        session_free(value);
    timer_clear(loop_timers(b->loop), &b->news);
    timer_clear(loop_timers(b->loop), &b->sweep);
    timer_clear(loop_timers(b->loop), &b->keep_alive);
    timer_clear(loop_timers(b->loop), &b->goodbye);
    guide_free(b->guide);
    view_free(b->all);
    map_fini(&b->sessions);
    map_fini(&b->clients);
    map_fini(&b->names);
    idmap_fini(&b->requests);
    kept_free(b->kept);
    remotes_free(b->remotes);
    b->closed(b->closed_arg);
    mem_free(b);
}

void browser_check_ended(struct browser *b)
{
    if (b->closed && b->n_pipes == 0)
        loop_defer(b->loop, &b->ended, on_ended);
}

void browser_review(struct browser *b, bool pairing)
{
    b->options.pairing = pairing;
    LIST_EACH_SAFE (&b->pipes, it) {
        struct pipe *p = LIST_ENTRY(it, struct pipe, node);
        if ((pairing && p->anonymous) || (p->principal && p->principal->ended))
            pipe_close(p, 1008, "the token or pairing token is missing, or not valid any more");
    }
}

void browser_close(struct browser *b, void (*closed)(void *arg), void *arg)
{
    b->closed = closed;
    b->closed_arg = arg;
    if (b->listener)
        listener_close(b->listener);
    join_free_all(&b->joins);
    launch_forget_all(&b->opening);
    LIST_EACH_SAFE (&b->posts, it)
        agent_free(LIST_ENTRY(it, struct agent, node));
    LIST_EACH_SAFE (&b->pipes, it)
        pipe_close(LIST_ENTRY(it, struct pipe, node), 1001, "the bridge is shutting down");
    timer_set(loop_timers(b->loop), &b->goodbye, GOODBYE_MS);
    browser_check_ended(b);
}
