/* A page: its connections, its name for people, and the tools that it registered. Called by
 * routes.c, pipe.c, sender.c, relay.c, join.c, session.c, page_request.c, grants.c, open_page.c and
 * browser.c. */
#include "browser/page.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/visible.h"
#include "browser/grants.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "wire/json.h"
#include "wire/json_out.h"

enum {
    TOOLS_MAX = 1000,     /* of one page */
    ALL_TOOLS_MAX = 8192, /* of one session */
    PAGES_MAX = 64,       /* of one session */
    TEXT_MAX = 200,       /* bytes of a title or an address */
    SLUG_MAX = 18,        /* of the host and of the title in the name of a page */
    NAME_MAX_BYTES = 128, /* of a tool, as the page calls it */
    FIRST_ASK_MS = 500,   /* a page that registers nothing this soon is asked for its tools */
    TIMEOUT_MIN = 1000,
    TIMEOUT_MAX = 300 * 1000,
};

static struct timers *timers_of(const struct page *p)
{
    return loop_timers(p->session->browser->loop);
}

/* --- life --- */

static void on_first_ask(struct timer *t)
{
    struct page *p = CONTAINER_OF(t, struct page, first_ask);

    if (p->registered)
        page_request_ask_life(p, 0);
    else if (p->dialect->answers_list)
        (void)page_request_ask(p, PAGE_REQUEST_LIST, "tools/list", SPAN("{}"), PAGE_CALL_MS);
}

static struct page *page_new(struct browser_session *s, struct span key, struct span origin,
                             const struct dialect *dialect)
{
    struct page *p = MEM_NEW(struct page);

    p->session = s;
    p->key = key.n ? mem_span(key) : NULL;
    p->origin = origin.n ? mem_span(origin) : NULL;
    p->dialect = dialect;
    p->first_ask.fire = on_first_ask;
    id_token(p->id);
    list_init(&p->pipes);
    list_init(&p->requests);
    list_append(&s->pages, &p->node);
    s->n_pages++;
    return p;
}

bool page_may_be(const struct page *p, struct span origin)
{
    return !p->origin || !origin.n || span_is(origin, p->origin);
}

struct page *page_find(const struct browser_session *s, struct span key, struct span origin)
{
    LIST_EACH (&s->pages, it) {
        struct page *p = LIST_ENTRY(it, struct page, node);
        if (p->key && span_is(key, p->key) && page_may_be(p, origin))
            return p;
    }
    return NULL;
}

/* Frees the oldest of the session's pages, other than `but`, that have no connection; false: there
 * is none. */
static bool drop_gone(struct browser_session *s, const struct page *but)
{
    LIST_EACH_SAFE (&s->pages, it) {
        struct page *p = LIST_ENTRY(it, struct page, node);
        if (p == but || page_pipe(p))
            continue;
        page_free(p);
        return true;
    }
    return false;
}

struct page *page_enter(struct browser_session *s, struct span key, struct span origin,
                        const struct dialect *dialect)
{
    struct page *p = key.n ? page_find(s, key, origin) : NULL;

    if (p)
        return p;
    bool fits = s->n_pages < PAGES_MAX || drop_gone(s, NULL);
    return fits ? page_new(s, key, origin, dialect) : NULL;
}

static void forget_leads(struct page *p)
{
    for (size_t i = 0; i < p->session->n_leads; i++)
        if (p->session->leads[i].page == p)
            p->session->leads[i] = (struct lead){NULL, NULL};
}

/* Other pages may have the name from now on. */
static void give_name_back(struct page *p)
{
    struct browser_session *s = p->session;

    if (p->name && map_get(&s->browser->names, span_str(p->name)) == p)
        map_del(&s->browser->names, span_str(p->name));
    if (s->core.mark == p->name)
        s->core.mark = NULL;
}

void page_free(struct page *p)
{
    struct browser_session *s = p->session;

    timer_clear(timers_of(p), &p->first_ask);
    forget_leads(p);
    list_remove(&p->node);
    s->n_pages--;
    page_request_fail_all(p, NULL);
    LIST_EACH_SAFE (&p->pipes, it) {
        struct pipe *pipe = LIST_ENTRY(it, struct pipe, in_owner);
        list_remove(&pipe->in_owner);
        pipe->page = NULL;
    }
    if (p->key && map_get(&s->browser->clients, span_str(p->key)) == p)
        map_del(&s->browser->clients, span_str(p->key));
    give_name_back(p);
    arena_fini(&p->arena);
    mem_free(p->text);
    mem_free(p->tools);
    mem_free(p->title);
    mem_free(p->url);
    mem_free(p->name);
    mem_free(p->key);
    mem_free(p->origin);
    mem_free(p);
}

struct pipe *page_pipe(const struct page *p)
{
    if (list_empty(&p->pipes))
        return NULL;
    return LIST_ENTRY(p->pipes.prev, struct pipe, in_owner);
}

bool page_is_here(const struct page *p)
{
    return page_pipe(p) && !p->silent;
}

void page_heard(struct page *p)
{
    p->heard_at = loop_now(p->session->browser->loop);
}

/* --- title, URL and name --- */

static void replace_text(char **text, struct span object, const char *key)
{
    struct json_slot slot = json_get(object, key);
    BUF_SCOPED scratch = {0}, shown = {0};

    if (slot.type != JSON_STRING)
        return;
    visible_put(&shown, span_cut(json_text(slot.value, &scratch), 0, TEXT_MAX), 0);
    mem_free(*text);
    *text = shown.n ? mem_span(buf_view(&shown)) : NULL;
}

/* After the origin, an address has nothing that could make it one of another host. */
static bool is_within(struct span url, struct span origin)
{
    struct span rest = span_from(url, origin.n);

    return span_starts(url, origin) && (!rest.n || strchr("/?#", rest.p[0]));
}

void page_introduce(struct page *p, struct span object)
{
    replace_text(&p->title, object, "title");
    replace_text(&p->url, object, "url");
    if (p->url && p->origin && !is_within(span_str(p->url), span_str(p->origin))) {
        mem_free(p->url);
        p->url = NULL;
    }
}

/* Append the letters and digits in lower case, with one '-' for all other characters between. */
static void put_slug(struct buf *out, struct span text, size_t most)
{
    size_t end = out->n + most;
    bool gap = false;

    for (size_t i = 0; i < text.n && out->n < end; i++) {
        if (!ascii_is_word(text.p[i], "")) {
            gap = true;
            continue;
        }
        if (gap && out->n && out->p[out->n - 1] != '-')
            buf_char(out, '-');
        gap = false;
        buf_char(out, ascii_to_lower(text.p[i]));
    }
}

static struct span host_of(struct span origin)
{
    size_t at = span_find(origin, ':');
    struct span rest = at + 3 < origin.n ? span_from(origin, at + 3) : SPAN_EMPTY;

    return span_cut(rest, 0, span_find(rest, ':'));
}

/* The host and the title, or else the session id; numbered if another page has the same name. */
static void choose_name(struct page *p)
{
    struct map *names = &p->session->browser->names;
    BUF_SCOPED name = {0};

    if (p->origin)
        put_slug(&name, host_of(span_str(p->origin)), SLUG_MAX);
    if (p->title) {
        if (name.n)
            buf_char(&name, '-');
        put_slug(&name, span_str(p->title), SLUG_MAX);
    }
    if (!name.n)
        put_slug(&name, span_str(p->session->id), SLUG_MAX);
    while (name.n && name.p[name.n - 1] == '-')
        name.n--;
    if (!name.n)
        buf_str(&name, "page");
    size_t stem = name.n;
    for (unsigned n = 2; map_get(names, buf_view(&name)); n++) {
        name.n = stem;
        buf_printf(&name, "-%u", n);
    }
    mem_free(p->name);
    p->name = mem_span(buf_view(&name));
}

/* A connected page that has registered has a name. One that has come back has its old name, if no
 * other page took that meanwhile. */
static void take_name(struct page *p)
{
    struct map *names = &p->session->browser->names;
    const struct page *owner = p->name ? map_get(names, span_str(p->name)) : NULL;

    if (!p->text || !page_pipe(p) || owner == p)
        return;
    if (!p->name || owner)
        choose_name(p);
    map_put(names, span_str(p->name), p);
}

void page_put(struct buf *out, const struct page *p, bool whole)
{
    buf_char(out, '{');
    if (p->name)
        json_out_str(out, "name", p->name);
    if (p->title)
        json_out_str(out, "title", p->title);
    if (p->url)
        json_out_str(out, "url", p->url);
    if (p->origin)
        json_out_str(out, "origin", p->origin);
    json_out_str(out, "session", p->session->id);
    if (whole) {
        json_out_str(out, "dialect", p->dialect->name);
        json_out_open(out, "tools", '[');
        for (size_t i = 0; i < p->n_tools; i++)
            json_out_text(out, NULL, p->tools[i].name);
        buf_char(out, ']');
    }
    buf_char(out, '}');
}

/* --- connections --- */

void page_attach(struct page *p, struct pipe *pipe)
{
    pipe->page = p;
    page_heard(p);
    p->came_at = p->heard_at;
    list_append(&p->pipes, &pipe->in_owner);
    p->dialect = pipe->dialect;
    p->registered = false;
    p->cannot_ask = false; /* this may be another document than the last one */
    log_debug("browser", "session %s: a page came by %s", p->session->id, p->dialect->name);
    session_touch(p->session);
    grants_recall(p->session, p);
    page_request_start_anew(p);
    take_name(p);
    if (p->dialect->answers_list)
        timer_set(timers_of(p), &p->first_ask, FIRST_ASK_MS);
    if (p->n_tools)
        session_changed(p->session); /* the page is back, and its tools are known from before */
}

void page_pipe_gone(struct page *p, struct pipe *pipe)
{
    struct browser_session *s = p->session;
    bool deaf = list_empty(&p->pipes);

    session_touch(s);
    if (deaf)
        timer_clear(timers_of(p), &p->first_ask);
    /* Requests on an event stream are answered by POST, so the answers can still come. */
    if (deaf || !pipe->is_events)
        page_request_fail_all(p, deaf ? NULL : pipe);
    LIST_EACH (&p->requests, it) {
        struct page_request *r = LIST_ENTRY(it, struct page_request, in_page);
        r->pipe = r->pipe == pipe ? NULL : r->pipe;
    }
    if (deaf)
        give_name_back(p);
    if (deaf && !p->key)
        page_free(p);
    else if (!list_empty(&p->requests))
        page_request_ask_life(p, 0); /* requests may have been lost with the connection */
    browser_sweep_later(s->browser, s);
    session_changed_late(s);
}

/* --- tools --- */

uint64_t page_timeout(struct span object, uint64_t otherwise)
{
    struct json_slot timeout = json_get(object, "timeout");
    int64_t ms;

    if (timeout.type != JSON_NUMBER || !json_int(timeout.value, &ms))
        return otherwise;
    return ms < TIMEOUT_MIN ? TIMEOUT_MIN : ms > TIMEOUT_MAX ? TIMEOUT_MAX : (uint64_t)ms;
}

static int read_tool(struct arena *arena, struct span raw, enum json_type type, struct tool *out,
                     struct err *err)
{
    struct json_slot name = type == JSON_OBJECT ? json_get(raw, "name") : (struct json_slot){0};
    BUF_SCOPED scratch = {0};

    if (name.type != JSON_STRING || name.value.n < 3)
        return err_set(err, ERR_PROTOCOL, "every tool needs a name, a text");
    struct span text = json_text(name.value, &scratch);
    bool fits = text.n <= NAME_MAX_BYTES;
    if (fits) {
        out->name = scratch.n ? arena_span(arena, text) : text;
        out->raw = raw;
        struct json_slot capabilities = json_get(raw, "capabilities");
        out->capabilities = capabilities.type == JSON_ARRAY ? capabilities.value : SPAN_EMPTY;
        out->timeout = page_timeout(raw, PAGE_CALL_MS);
    }
    return fits ? 0 : err_set(err, ERR_SIZE, "the name of a tool is longer than 128 bytes");
}

/* Do these tools fit, together with those of the session's other pages? Pages that are not
 * connected make room. */
static int check_size(struct page *p, struct span tools, struct err *err)
{
    size_t most = router_max_catalog(p->session->core.router);

    do {
        if (session_tool_bytes(p->session) - p->text_n + tools.n <= most)
            return 0;
    } while (tools.n <= most && drop_gone(p->session, p));
    return err_set(err, ERR_SIZE,
                   "the tools of this session's pages would be larger than %zu KiB together "
                   "(limits.catalog)",
                   most / 1024);
}

int page_register(struct page *p, struct span tools, struct err *err)
{
    if (check_size(p, tools, err))
        return ERR_SIZE;
    char *text = mem_span(tools);
    struct json_iter it = json_iter(span_of(text, tools.n));
    struct arena arena = {0};
    struct tool *list = NULL;
    size_t n = 0;
    int code = 0;

    while (!code && json_next(&it)) {
        if (n >= TOOLS_MAX) {
            code = err_set(err, ERR_SIZE, "more than %d tools", TOOLS_MAX);
            break;
        }
        if (n % 16 == 0)
            list = mem_resize(list, (n + 16) * sizeof *list);
        code = read_tool(&arena, it.value, it.type, &list[n], err);
        n += code == 0;
    }
    size_t others = session_tool_count(p->session) - (page_is_here(p) ? p->n_tools : 0);
    if (!code && others + n > ALL_TOOLS_MAX)
        code = err_set(err, ERR_SIZE, "more than %d tools in this session", ALL_TOOLS_MAX);
    if (code) {
        arena_fini(&arena);
        mem_free(list);
        mem_free(text);
        return code;
    }
    forget_leads(p);
    arena_fini(&p->arena);
    mem_free(p->tools);
    mem_free(p->text);
    p->text = text;
    p->text_n = tools.n;
    p->arena = arena;
    p->tools = n ? mem_resize(list, n * sizeof *list) : NULL;
    p->n_tools = n;
    if (!p->registered)
        timer_set(timers_of(p), &p->first_ask, 0); /* after our answer */
    p->registered = true;
    take_name(p);
    /* Every tool of the session is listed again, so many tools count as several messages. */
    if (page_pipe(p))
        page_pipe(p)->in_window += (unsigned)n / 10;
    session_changed(p->session);
    return 0;
}
