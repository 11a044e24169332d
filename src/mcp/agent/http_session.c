/* The POSTs of a session that wait for answers, its GET stream, resuming by Last-Event-ID,
 * keep-alive. Called by http_agent.c. */
#include "mcp/agent/http_session.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/agent/event_store.h"
#include "wire/json_out.h"
#include "wire/sse.h"

#include <stdio.h>

/* In bytes: how far a reader may fall behind; how much of the event buffer is kept for reuse. */
enum { READER_MAX = 16 * 1024 * 1024, EVENT_KEEP = 4 * 1024 };
/* When a client that was cut should reconnect; when a POST without an answer becomes a stream. */
enum { RETRY_MS = 1000, STREAM_AFTER_MS = 10 * 1000 };
/* The stream number of the GET; POSTs that become streams are numbered from 1. */
enum { STANDING_STREAM = 0 };

/* One POST that waits for its answers. */
struct post {
    struct http_session *session;
    struct list node;
    struct http_exchange *x; /* NULL when the client has left */
    uint64_t since;
    uint64_t stream; /* the stream's number once the POST is an SSE stream, else 0 */
    bool hello, batch;
    bool id_given;       /* the client has an id to resume the stream from */
    size_t left;         /* requests not answered yet */
    struct buf answers;  /* of a batch, comma-separated */
    size_t answer_at;    /* where the last of `answers` starts */
    struct holding held; /* accounts for `answers` until the last one is here */
    size_t answered;     /* bytes of all answers, also of those that went out as events */
};

struct http_session {
    char id[ID_TOKEN_SIZE];
    struct loop *loop;
    struct mcp_session *mcp;
    size_t max_answers;
    struct list posts;
    struct http_exchange *stream; /* the GET, or NULL */
    struct event_store store;
    uint64_t last_stream;
    uint64_t delivered; /* number of the last event that a GET got */
    struct buf event;   /* the event being written */
    size_t data_at;     /* where its message begins */
    struct event_id event_id;
    uint64_t last_used;
    struct list in_idle, *idle; /* see http_session_new */
    void (*hang_up)(void *arg, struct http_session *hs);
    void *hang_up_arg;
};

/* --- events --- */

static void start_event(struct http_session *hs, uint64_t stream)
{
    hs->event_id = event_store_next(&hs->store, stream);
    buf_str(&hs->event, "event: message\nid: ");
    event_store_put_id(&hs->store, &hs->event, hs->event_id);
    buf_str(&hs->event, "\ndata: ");
    hs->data_at = hs->event.n;
}

/*
 * Send the event to the reader of this stream, if there is one, and keep it. A reader that falls
 * behind by much more than `answers`, the bytes that it has asked for, is cut: *x is NULL then,
 * and the client may resume. Writing alone may do that, while too much is held for all peers.
 */
static void finish_event(struct http_session *hs, struct http_exchange **x, size_t answers)
{
    json_join_lines(&hs->event, hs->data_at);
    buf_str(&hs->event, "\n\n");
    if (*x) {
        http_stream_write(*x, buf_view(&hs->event));
        if (*x && http_exchange_queued(*x) > READER_MAX + hs->event.n + answers) {
            http_exchange_abort(*x, "reader too slow");
            *x = NULL;
            http_session_touch(hs);
        }
    }
    event_store_add(&hs->store, hs->event_id, buf_view(&hs->event), *x == NULL);
    buf_reset(&hs->event, EVENT_KEEP);
}

/*
 * An event without data, so that the client has an id to resume from before the first message.
 * Clients of older revisions take such an event for a broken message: false, and nothing put.
 */
static bool put_priming(struct http_session *hs, struct buf *out, uint64_t stream)
{
    if (span_cmp(mcp_session_version(hs->mcp), SPAN("2025-11-25")) < 0)
        return false;
    buf_str(out, "id: ");
    event_store_put_id(&hs->store, out, event_store_next(&hs->store, stream));
    buf_printf(out, "\nretry: %d\ndata: \n\n", RETRY_MS);
    return true;
}

/* Send the head of a stream, and the first events. */
static void open_stream(struct http_exchange *x, struct span headers, struct buf *events)
{
    http_stream_begin(x, 200, "text/event-stream", headers);
    if (events->n)
        http_stream_write(x, buf_view(events));
    buf_fini(events);
}

/* The ready answers of a batch, which the caller sends: they must not count twice meanwhile, here
 * and as output. */
static struct buf take_answers(struct post *p)
{
    struct buf answers = p->answers;

    p->answers = (struct buf){0};
    holding_set(&p->held, 0);
    return answers;
}

static void finish_post_event(struct post *p)
{
    p->id_given = p->id_given || p->x;
    finish_event(p->session, &p->x, p->answered);
}

/* Answers of a batch that were ready before the POST became a stream go first. */
static void stream_ready_answers(struct post *p)
{
    BUF_SCOPED array = {0}, answers = take_answers(p);

    buf_char(&array, '[');
    buf_span(&array, buf_view(&answers));
    buf_char(&array, ']');
    buf_fini(&answers);
    struct json_iter it = json_iter(buf_view(&array));
    while (json_next(&it)) {
        start_event(p->session, p->stream);
        buf_span(&p->session->event, it.value);
        finish_post_event(p);
    }
}

static void turn_into_stream(struct post *p)
{
    BUF_SCOPED headers = {0}, events = {0};

    p->stream = ++p->session->last_stream;
    buf_str(&headers, SSE_HEADERS);
    if (p->hello)
        buf_printf(&headers, "Mcp-Session-Id: %s\r\n", p->session->id);
    p->id_given = put_priming(p->session, &events, p->stream);
    open_stream(p->x, buf_view(&headers), &events);
    if (p->answers.n)
        stream_ready_answers(p);
}

/* --- messages --- */

/* The client left before it was given an id to resume from. */
static bool is_lost(const struct post *p)
{
    return !p->x && !p->id_given;
}

/* What a lost POST would carry besides its answer goes on the GET stream: a question there can
 * still be answered. NULL: that stream. */
static struct post *carrier(void *reply, enum mcp_out_kind kind)
{
    struct post *p = reply;

    return p && kind == MCP_OUT_RELATED && is_lost(p) ? NULL : p;
}

static bool out_is_cut_off(void *owner, void *reply)
{
    const struct http_session *hs = owner;

    return is_lost(reply) && !hs->stream;
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind);

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct http_session *hs = owner;
    struct post *p = carrier(reply, kind);

    if (p && is_lost(p))
        return &hs->event;
    if (p && kind == MCP_OUT_RELATED && !p->stream)
        turn_into_stream(p);
    if (!p || p->stream) {
        start_event(hs, p ? p->stream : STANDING_STREAM);
        return &hs->event;
    }
    if (p->batch) {
        if (p->answers.n)
            buf_char(&p->answers, ',');
        p->answer_at = p->answers.n;
        return &p->answers;
    }
    char header[64] = "";
    if (p->hello)
        snprintf(header, sizeof header, "Mcp-Session-Id: %s\r\n", hs->id);
    return http_respond_begin(p->x, 200, "application/json", span_str(header));
}

static void post_free(struct post *p)
{
    list_remove(&p->node);
    mem_free(p);
}

/*
 * All requests of the POST are answered or given up. A request that was cancelled gets no answer,
 * but the POST must be answered: with a stream without events, which no client tries to resume.
 */
static void post_complete(struct post *p)
{
    struct http_session *hs = p->session;
    BUF_SCOPED answers = take_answers(p);

    if (p->x && !p->stream && !answers.n) {
        http_stream_begin(p->x, 200, "text/event-stream", SPAN(SSE_HEADERS));
        http_stream_end(p->x);
    } else if (p->x && p->stream) {
        http_stream_end(p->x);
    } else if (p->x) {
        struct buf *out = http_respond_begin(p->x, 200, "application/json", SPAN_EMPTY);
        buf_char(out, '[');
        buf_span(out, buf_view(&answers));
        buf_char(out, ']');
        buf_fini(&answers);
        http_respond_end(p->x);
    }
    post_free(p);
    http_session_touch(hs);
}

bool http_session_post_is_full(const struct post *p)
{
    return p->answered > p->session->max_answers;
}

static void put_refusal(const struct post *p, struct buf *out, struct span id)
{
    BUF_SCOPED text = {0};

    buf_printf(&text,
               "the answers to this batch are larger than %zu bytes (limits.message): send this "
               "request alone",
               p->session->max_answers);
    rpc_put_error(out, id, MCP_ERROR_SERVER, buf_view(&text), SPAN_EMPTY);
}

void http_session_post_refuse(struct post *p, struct span id)
{
    put_refusal(p, out_begin(p->session, p, MCP_OUT_FINAL), id);
    out_end(p->session, p, MCP_OUT_FINAL);
}

/* One more answer of a batch, replaced by a short error when the answers are too large. */
static void take_answer(struct post *p)
{
    struct span answer = span_from(buf_view(&p->answers), p->answer_at);

    if (http_session_post_is_full(p)) {
        BUF_SCOPED id = {0};
        buf_span(&id, json_get(answer, "id").value);
        p->answers.n = p->answer_at;
        put_refusal(p, &p->answers, buf_view(&id));
    }
    p->answered += p->answers.n - p->answer_at;
    holding_set(&p->held, p->answers.n);
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct http_session *hs = owner;
    struct post *p = carrier(reply, kind);

    if (!p) {
        finish_event(hs, &hs->stream, 0);
        if (hs->stream)
            hs->delivered = hs->event_id.number;
        return;
    }
    if (is_lost(p)) {
        buf_reset(&hs->event, EVENT_KEEP);
    } else if (p->stream) {
        p->answered += kind == MCP_OUT_FINAL ? hs->event.n : 0;
        finish_post_event(p);
    } else if (p->batch) {
        take_answer(p);
    } else {
        http_respond_end(p->x);
        p->x = NULL;
    }
    if (kind == MCP_OUT_FINAL && --p->left == 0)
        post_complete(p);
}

static void out_abandon(void *owner, void *reply)
{
    struct post *p = reply;

    (void)owner;
    if (p && --p->left == 0)
        post_complete(p);
}

static void out_hang_up(void *owner)
{
    struct http_session *hs = owner;

    hs->hang_up(hs->hang_up_arg, hs);
}

static const struct mcp_out out_ops = {out_begin, out_end,     out_abandon,   NULL,
                                       "http",    out_hang_up, out_is_cut_off};

/* --- exchanges --- */

/*
 * In the initialize era a client that disconnects does not cancel its call. The call's events are
 * kept, and the client may resume the stream if it has an id of it.
 */
static void post_gone(void *owner)
{
    struct post *p = owner;

    p->x = NULL;
    buf_fini(&p->answers);
    holding_set(&p->held, 0);
    http_session_touch(p->session);
}

/* Too much memory is held for a batch that still waits for answers: its client is cut, and gets no
 * answer at all. */
static void post_let_go(struct holding *h, const char *why)
{
    struct post *p = CONTAINER_OF(h, struct post, held);

    if (p->x) {
        log_warn("memory", "%s was cut: %s", http_exchange_peer(p->x), why);
        http_exchange_abort(p->x, why);
    }
    p->x = NULL;
    buf_fini(&p->answers);
}

struct post *http_session_post(struct http_session *hs, struct http_exchange *x, bool hello,
                               bool batch, size_t requests)
{
    struct post *p = MEM_NEW(struct post);

    p->session = hs;
    p->x = x;
    p->since = loop_now(hs->loop);
    p->hello = hello;
    p->batch = batch;
    p->left = requests;
    if (batch)
        holding_init(&p->held, loop_holdings(hs->loop), post_let_go);
    list_append(&hs->posts, &p->node);
    list_remove(&hs->in_idle);
    http_exchange_on_gone(x, post_gone, p);
    return p;
}

static void stream_gone(void *owner)
{
    struct http_session *hs = owner;

    hs->stream = NULL;
    http_session_touch(hs);
}

/* End a stream without calling its on_gone function. */
static void let_go(struct http_exchange *x)
{
    if (!x)
        return;
    http_exchange_on_gone(x, NULL, NULL);
    http_stream_end(x);
}

/* Make this GET the session's stream, and begin with the events after number `after`. */
static void listen_from(struct http_session *hs, struct http_exchange *x, uint64_t after)
{
    struct buf events = {0};

    let_go(hs->stream);
    hs->stream = x;
    list_remove(&hs->in_idle);
    http_exchange_on_gone(x, stream_gone, hs);
    (void)put_priming(hs, &events, STANDING_STREAM);
    event_store_replay(&hs->store, (struct event_id){STANDING_STREAM, after}, &events);
    open_stream(x, SPAN(SSE_HEADERS), &events);
    hs->delivered = hs->store.last;
}

void http_session_listen(struct http_session *hs, struct http_exchange *x)
{
    listen_from(hs, x, hs->delivered);
}

static struct post *post_of_stream(struct http_session *hs, uint64_t stream)
{
    LIST_EACH (&hs->posts, it) {
        struct post *p = LIST_ENTRY(it, struct post, node);
        if (p->stream == stream)
            return p;
    }
    return NULL;
}

/* Send the rest of a POST's stream, and end the stream if the POST has been answered meanwhile. */
static void resume_post(struct http_session *hs, struct http_exchange *x, struct event_id after)
{
    struct post *p = post_of_stream(hs, after.stream);
    struct buf events = {0};
    size_t n = event_store_replay(&hs->store, after, &events);

    if (!p && !n) {
        http_respond(x, 204, NULL, SPAN_EMPTY, SPAN_EMPTY);
        return;
    }
    open_stream(x, SPAN(SSE_HEADERS), &events);
    if (!p) {
        http_stream_end(x);
        return;
    }
    let_go(p->x);
    p->x = x;
    http_exchange_on_gone(x, post_gone, p);
}

bool http_session_resume(struct http_session *hs, struct http_exchange *x, struct span last_id)
{
    struct event_id after;

    if (!event_store_parse(&hs->store, last_id, &after) || after.stream > hs->last_stream)
        return false;
    if (after.stream == STANDING_STREAM)
        listen_from(hs, x, after.number);
    else
        resume_post(hs, x, after);
    return true;
}

/* --- life --- */

struct http_session *http_session_new(struct loop *loop, const struct mcp_host *host,
                                      const char *id, struct list *idle)
{
    struct http_session *hs = MEM_NEW(struct http_session);

    snprintf(hs->id, sizeof hs->id, "%s", id);
    hs->loop = loop;
    hs->max_answers = host->max_answers;
    list_init(&hs->posts);
    list_init(&hs->in_idle);
    hs->idle = idle;
    event_store_init(&hs->store, loop_holdings(loop));
    hs->mcp = mcp_session_new(host, &out_ops, hs);
    http_session_touch(hs);
    return hs;
}

void http_session_on_hang_up(struct http_session *hs,
                             void (*fn)(void *arg, struct http_session *hs), void *arg)
{
    hs->hang_up = fn;
    hs->hang_up_arg = arg;
}

void http_session_free(struct http_session *hs)
{
    mcp_session_free(hs->mcp); /* abandons the posts of open calls */
    LIST_EACH_SAFE (&hs->posts, it)
        post_complete(LIST_ENTRY(it, struct post, node));
    let_go(hs->stream);
    list_remove(&hs->in_idle);
    event_store_fini(&hs->store);
    buf_fini(&hs->event);
    mem_free(hs);
}

const char *http_session_id(const struct http_session *hs)
{
    return hs->id;
}

struct mcp_session *http_session_mcp(struct http_session *hs)
{
    return hs->mcp;
}

static bool is_in_use(const struct http_session *hs)
{
    return hs->stream || !list_empty(&hs->posts);
}

void http_session_touch(struct http_session *hs)
{
    hs->last_used = loop_now(hs->loop);
    list_remove(&hs->in_idle);
    if (!is_in_use(hs))
        list_append(hs->idle, &hs->in_idle);
}

struct http_session *http_session_oldest(const struct list *idle)
{
    return LIST_FIRST(idle, struct http_session, in_idle);
}

uint64_t http_session_idle(const struct http_session *hs)
{
    if (is_in_use(hs))
        return 0;
    return loop_now(hs->loop) - hs->last_used;
}

/*
 * A POST that has waited for a while becomes a stream: a stream can be kept alive, and resumed if
 * the connection breaks.
 */
static void keep_post_alive(struct post *p)
{
    bool waits_long = loop_now(p->session->loop) - p->since >= STREAM_AFTER_MS;

    if (p->x && p->stream)
        http_stream_write(p->x, SPAN(SSE_KEEP_ALIVE));
    else if (p->x && waits_long)
        turn_into_stream(p);
}

void http_session_keep_alive(struct http_session *hs)
{
    if (hs->stream)
        http_stream_write(hs->stream, SPAN(SSE_KEEP_ALIVE));
    LIST_EACH (&hs->posts, it)
        keep_post_alive(LIST_ENTRY(it, struct post, node));
}

/* --- another daemon takes over --- */

void http_session_end_stream(struct http_session *hs)
{
    let_go(hs->stream);
    hs->stream = NULL;
}

bool http_session_export(const struct http_session *hs, struct buf *out)
{
    if (!mcp_session_ready(hs->mcp))
        return false;
    buf_char(out, '{');
    json_out_number(out, "streams", hs->last_stream);
    json_out_number(out, "delivered", hs->delivered);
    mcp_session_export(hs->mcp, out);
    event_store_export(&hs->store, out);
    buf_char(out, '}');
    return true;
}

void http_session_import(struct http_session *hs, struct span state)
{
    hs->last_stream = json_count(state, "streams");
    hs->delivered = json_count(state, "delivered");
    event_store_import(&hs->store, state);
    mcp_session_import(hs->mcp, state);
}
