/* Joins a BTCP server as an agent, by WebSocket or by events and POSTs, and reconnects when
 * the connection is lost. Called by browser.c, which owns joins, and by pipe.c. */
#include "browser/join.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/mem.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "browser/sender.h"
#include "io/http_client.h"
#include "wire/json.h"
#include "wire/json_out.h"
#include "wire/sse.h"

#include <stdio.h>

/* LOOK_MS: a server at http:// does not announce new sessions: we fetch its list this often. */
enum { RETRY_FIRST_MS = 500, RETRY_MAX_MS = 10 * 1000, LOOK_MS = 5 * 1000, LIST_MS = 30 * 1000 };

struct join {
    struct list node; /* in browser->joins */
    struct browser *browser;
    char *url;
    char *session; /* the one to join; NULL: all */
    char own[ID_TOKEN_SIZE];
    bool by_events; /* http:// */
    bool up;
    struct list pipes; /* struct pipe.in_join */
    struct backoff backoff;
    struct timer retry, look;
    /* only if by_events: */
    struct http_client *http;
    struct http_fetch *stream, *listing;
    struct sse_decoder sse;
    struct buf sessions; /* the response to `listing` so far */
    char *client;        /* the id that the server gave us */
};

static struct timers *timers_of(const struct join *j)
{
    return loop_timers(j->browser->loop);
}

/* --- sessions of the server --- */

static struct pipe *pipe_of(const struct join *j, struct span session)
{
    LIST_EACH (&j->pipes, it) {
        struct pipe *p = LIST_ENTRY(it, struct pipe, in_join);
        if (p->page && span_is(session, p->page->session->id))
            return p;
    }
    return NULL;
}

static void ask_tools(struct pipe *p, const char *method)
{
    BUF_SCOPED params = {0};

    if (!p->page)
        return;
    buf_char(&params, '{');
    json_out_str(&params, "sessionId", p->page->session->id);
    buf_char(&params, '}');
    p->page->registered = false;
    (void)page_request_ask(p->page, PAGE_REQUEST_LIST, method, buf_view(&params), LIST_MS);
}

/* Makes the pipe a page of our session of this name, and joins the server's session. */
static bool enter(struct join *j, struct pipe *p, struct span session)
{
    struct browser_session *s = browser_make_session(j->browser, session);
    struct page *page = s ? page_enter(s, span_str(j->own), SPAN_EMPTY, &dialect_joined) : NULL;

    if (!page)
        return false;
    page_attach(page, p);
    ask_tools(p, "session/join");
    return true;
}

static struct pipe *open_pipe(struct join *j)
{
    struct pipe *p = pipe_new(j->browser, &dialect_joined, SPAN_EMPTY);

    p->join = j;
    list_append(&j->pipes, &p->in_join);
    return p;
}

/* --- what the server says --- */

static void leave_session(const struct join *j, struct span session)
{
    struct pipe *p = pipe_of(j, session);
    struct err err;

    if (p && page_register(p->page, SPAN("[]"), &err))
        log_debug("browser", "%s", err.text);
}

static void hear(struct join *j, struct span text)
{
    struct sender s = {.browser = j->browser, .dialect = &dialect_joined};
    BUF_SCOPED scratch = {0};
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return;
    struct json_slot method = json_get(text, "method"), params = json_get(text, "params");
    if (method.type != JSON_STRING) {
        (void)sender_receive(&s, text); /* a response: its id selects the page */
    } else if (json_string_is(method.value, SPAN("tools/updated"))) {
        LIST_EACH (&j->pipes, it) /* the message names no session */
            ask_tools(LIST_ENTRY(it, struct pipe, in_join), "tools/list");
    } else if (json_string_is(method.value, SPAN("browser/disconnected")) &&
               params.type == JSON_OBJECT) {
        struct json_slot id = json_get(params.value, "sessionId");
        leave_session(j, id.type == JSON_STRING ? json_text(id.value, &scratch) : SPAN_EMPTY);
    } else if (json_string_is(method.value, SPAN("connected")) && params.type == JSON_OBJECT) {
        struct json_slot id = json_get(params.value, "clientId");
        mem_free(j->client);
        j->client = id.type == JSON_STRING ? mem_span(json_text(id.value, &scratch)) : NULL;
        timer_set(timers_of(j), &j->look, 0);
    }
    buf_fini(&s.reply);
}

/* --- life of a connection --- */

static void lost(struct join *j, const char *why)
{
    if (j->up || j->backoff.failures == 0)
        log_warn("browser", "the BTCP server at %s is not joined: %s", j->url, why);
    if (j->up)
        backoff_reset(&j->backoff);
    j->up = false;
    timer_clear(timers_of(j), &j->look);
    LIST_EACH_SAFE (&j->pipes, it)
        pipe_close(LIST_ENTRY(it, struct pipe, in_join), 1001, "the server is gone");
    timer_set(timers_of(j), &j->retry, backoff_next(&j->backoff, id_random_u64()));
}

static void is_up(struct join *j)
{
    if (j->up)
        return;
    j->up = true;
    log_info("browser", "joined the BTCP server at %s", j->url);
}

void join_entered(struct join *j)
{
    is_up(j);
}

/* --- by WebSocket --- */

static void on_ws_opened(void *owner)
{
    struct pipe *p = owner;

    if (!enter(p->join, p, span_str(p->join->session)))
        pipe_close(p, 1000, "no session");
}

static void on_ws_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct pipe *p = owner;

    if (op == WS_TEXT && p->join)
        hear(p->join, payload);
}

static void on_ws_closed(void *owner, uint16_t code, const char *reason)
{
    struct pipe *p = owner;
    struct join *j = p->join;

    (void)code;
    p->ws = NULL;
    pipe_free(p);
    if (j)
        lost(j, reason);
}

static const struct ws_events ws_events = {
    .opened = on_ws_opened, .message = on_ws_message, .closed = on_ws_closed};

static void connect_ws(struct join *j)
{
    const struct ws_options options = {.max_message = j->browser->options.max_message,
                                       .queue_limit = j->browser->options.max_message * 2,
                                       .ping_every = WS_PING_MS};
    struct pipe *p = open_pipe(j);
    struct err err;

    p->ws = ws_connect(j->browser->loop, &(struct ws_target){.url = j->url}, &options, &ws_events,
                       p, &err);
    if (p->ws)
        return;
    pipe_free(p);
    lost(j, err.text);
}

/* --- by events and POSTs --- */

static void on_event(void *owner, const struct sse_event *event)
{
    if (event->has_data)
        hear(owner, event->data);
}

static void on_head(void *owner, const struct http_head *head)
{
    struct join *j = owner;

    if (head->status == 200)
        is_up(j);
}

static void on_chunk(void *owner, struct span chunk)
{
    struct join *j = owner;

    if (j->up && sse_feed(&j->sse, chunk, on_event, j))
        sse_decoder_stop(&j->sse);
}

static void on_stream_done(void *owner, int code, const char *why, bool delivered)
{
    struct join *j = owner;

    (void)code, (void)delivered;
    j->stream = NULL;
    sse_decoder_fini(&j->sse);
    lost(j, why && *why ? why : "it closed the stream");
}

static void connect_events(struct join *j)
{
    static const struct http_fetch_events on = {on_head, on_chunk, on_stream_done};
    BUF_SCOPED url = {0};

    buf_printf(&url, "%s/events?sessionId=rialto-%s&clientType=agent", j->url, j->own);
    sse_decoder_init(&j->sse, j->browser->options.max_message);
    j->stream = http_fetch_start(
        j->http, &(struct http_fetch_spec){.method = "GET", .url = buf_cstr(&url)}, &on, j);
}

static void on_post_done(void *owner, int code, const char *why, bool delivered)
{
    (void)owner, (void)delivered;
    if (code)
        log_debug("browser", "a message to a BTCP server was not sent: %s", why);
}

static void ignore_head(void *owner, const struct http_head *head)
{
    (void)owner, (void)head;
}

static void ignore_chunk(void *owner, struct span chunk)
{
    (void)owner, (void)chunk;
}

void join_send(struct join *j, const struct pipe *p, struct span json)
{
    static const struct http_fetch_events on = {ignore_head, ignore_chunk, on_post_done};
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    BUF_SCOPED url = {0};
    struct buf body = {0};

    if (!p->page || !j->client)
        return;
    /* Session ids need no escapes in a URL, and the server chose our client id for use in one. */
    buf_printf(&url, "%s/message?sessionId=%s&clientId=%s", j->url, p->page->session->id,
               j->client);
    buf_span(&body, json);
    (void)http_fetch_start(
        j->http,
        &(struct http_fetch_spec){
            .method = "POST", .url = buf_cstr(&url), .headers = headers, .body = &body},
        &on, j);
}

/* Joins new sessions of the server's list. The server reports lost ones (browser/disconnected). */
static void take_sessions(struct join *j, struct span text)
{
    enum json_type type;
    BUF_SCOPED scratch = {0};

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT)
        return;
    struct json_slot list = json_get(text, "sessions");
    struct json_iter it = json_iter(list.value);
    while (list.type == JSON_ARRAY && json_next(&it)) {
        struct json_slot id =
            it.type == JSON_OBJECT ? json_get(it.value, "id") : (struct json_slot){0};
        if (id.type != JSON_STRING || json_get(it.value, "hasBrowser").type == JSON_FALSE)
            continue;
        scratch.n = 0;
        struct span name = json_text(id.value, &scratch);
        if (!browser_can_be_session(name) || (j->session && !span_is(name, j->session)) ||
            pipe_of(j, name))
            continue;
        struct pipe *p = open_pipe(j);
        if (!enter(j, p, name))
            pipe_free(p);
    }
}

static void on_listing_chunk(void *owner, struct span chunk)
{
    struct join *j = owner;

    if (j->sessions.n + chunk.n <= j->browser->options.max_message)
        buf_span(&j->sessions, chunk);
}

static void on_listing_done(void *owner, int code, const char *why, bool delivered)
{
    struct join *j = owner;

    (void)why, (void)delivered;
    j->listing = NULL;
    if (!code && j->up)
        take_sessions(j, buf_view(&j->sessions));
    if (j->up)
        timer_set(timers_of(j), &j->look, LOOK_MS);
}

static void on_look(struct timer *t)
{
    static const struct http_fetch_events on = {ignore_head, on_listing_chunk, on_listing_done};
    struct join *j = CONTAINER_OF(t, struct join, look);
    BUF_SCOPED url = {0};

    if (j->listing)
        return;
    j->sessions.n = 0;
    buf_printf(&url, "%s/sessions", j->url);
    j->listing = http_fetch_start(
        j->http, &(struct http_fetch_spec){.method = "GET", .url = buf_cstr(&url)}, &on, j);
}

/* --- life --- */

static void on_retry(struct timer *t)
{
    struct join *j = CONTAINER_OF(t, struct join, retry);

    if (j->by_events)
        connect_events(j);
    else
        connect_ws(j);
}

void join_pipe_gone(struct join *j, struct pipe *p)
{
    (void)j;
    list_remove(&p->in_join);
    p->join = NULL;
}

struct join *join_new(struct browser *b, const struct browser_join *spec, struct err *err)
{
    struct span url = span_str(spec->url);
    bool by_events = span_starts(url, SPAN("http"));

    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    if (!by_events && !spec->session) {
        err_set(err, ERR_CONFIG, "%s cannot be joined without a session: by ws:// one is joined",
                spec->url);
        return NULL;
    }
    struct join *j = MEM_NEW(struct join);
    j->browser = b;
    j->url = mem_span(url);
    j->session = spec->session ? mem_str(spec->session) : NULL;
    j->by_events = by_events;
    j->http = by_events ? http_client_new(b->loop) : NULL;
    j->backoff = (struct backoff){.first = RETRY_FIRST_MS, .max = RETRY_MAX_MS};
    j->retry.fire = on_retry;
    j->look.fire = on_look;
    id_token(j->own);
    list_init(&j->pipes);
    list_append(&b->joins, &j->node);
    timer_set(timers_of(j), &j->retry, 0);
    return j;
}

static void join_free(struct join *j)
{
    timer_clear(timers_of(j), &j->retry);
    timer_clear(timers_of(j), &j->look);
    LIST_EACH_SAFE (&j->pipes, it) {
        struct pipe *p = LIST_ENTRY(it, struct pipe, in_join);
        pipe_close(p, 1001, "the bridge is shutting down");
        join_pipe_gone(j, p);
    }
    if (j->stream)
        sse_decoder_fini(&j->sse);
    if (j->http)
        http_client_free(j->http);
    list_remove(&j->node);
    buf_fini(&j->sessions);
    mem_free(j->client);
    mem_free(j->session);
    mem_free(j->url);
    mem_free(j);
}

void join_free_all(struct list *joins)
{
    LIST_EACH_SAFE (joins, it)
        join_free(LIST_ENTRY(it, struct join, node));
}
