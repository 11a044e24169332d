#include "mcp/http_session.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/sse.h"

#include <stdio.h>

/* What may wait for a GET stream, and how far a reader may fall behind, in bytes. */
enum { BACKLOG_MAX = 256 * 1024, READER_MAX = 16 * 1024 * 1024 };

#define SSE_HEADERS "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n"

/* One POST that waits for its answers. */
struct post {
    struct http_session *session;
    struct list node;
    struct http_exchange *x; /* NULL once the client has left */
    bool sse, hello, batch;
    size_t left;        /* requests not answered yet */
    struct buf answers; /* of a batch, comma-separated */
};

struct http_session {
    char id[ID_TOKEN_SIZE];
    struct loop *loop;
    struct mcp_session *mcp;
    struct list posts;
    struct http_exchange *stream; /* the GET, or NULL */
    struct buf backlog;           /* ready SSE events that wait for a GET */
    struct buf event;             /* the message being written, where it cannot go out directly */
    uint64_t last_used;
};

/* --- writing --- */

/* Cuts a reader that falls too far behind; *x is NULL then. */
static void write_sse(struct http_exchange **x, struct span event)
{
    http_stream_write(*x, event);
    if (http_exchange_queued(*x) > READER_MAX) {
        http_exchange_abort(*x, "reader too slow");
        *x = NULL;
    }
}

static void turn_into_stream(struct post *p)
{
    struct buf headers = {0};

    p->sse = true;
    buf_str(&headers, SSE_HEADERS);
    if (p->hello)
        buf_printf(&headers, "Mcp-Session-Id: %s\r\n", p->session->id);
    http_stream_begin(p->x, 200, "text/event-stream", buf_view(&headers));
    buf_fini(&headers);
}

/* Answers of a batch that were ready before it became a stream go first. */
static void stream_ready_answers(struct post *p)
{
    struct buf array = {0}, event = {0};

    buf_char(&array, '[');
    buf_span(&array, buf_view(&p->answers));
    buf_char(&array, ']');
    struct json_iter it = json_iter(buf_view(&array));
    while (json_next(&it))
        sse_put_event(&event, SPAN("message"), SPAN_EMPTY, it.value);
    http_stream_write(p->x, buf_view(&event));
    buf_fini(&event);
    buf_fini(&array);
    buf_fini(&p->answers);
}

static struct buf *start_event(struct http_session *hs)
{
    buf_reset(&hs->event, 64 * 1024);
    buf_str(&hs->event, "event: message\ndata: ");
    return &hs->event;
}

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct http_session *hs = owner;
    struct post *p = reply;

    if (!p || !p->x)
        return start_event(hs);
    if (kind == MCP_OUT_RELATED && !p->sse) {
        turn_into_stream(p);
        if (p->answers.n)
            stream_ready_answers(p);
    }
    if (p->sse)
        return start_event(hs);
    if (p->batch) {
        if (p->answers.n)
            buf_char(&p->answers, ',');
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
    buf_fini(&p->answers);
    mem_free(p);
}

/*
 * All requests of the POST are answered or given up. One that was cancelled gets no answer, but its
 * POST has to end somehow: as a stream without events.
 */
static void post_complete(struct post *p)
{
    if (p->x && !p->sse && !p->answers.n)
        turn_into_stream(p);
    if (p->x && p->sse) {
        http_stream_end(p->x);
    } else if (p->x) {
        struct buf *out = http_respond_begin(p->x, 200, "application/json", SPAN_EMPTY);
        buf_char(out, '[');
        buf_span(out, buf_view(&p->answers));
        buf_char(out, ']');
        http_respond_end(p->x);
    }
    post_free(p);
}

static void send_unrelated(struct http_session *hs)
{
    if (hs->stream)
        write_sse(&hs->stream, buf_view(&hs->event));
    else if (hs->backlog.n + hs->event.n <= BACKLOG_MAX)
        buf_span(&hs->backlog, buf_view(&hs->event));
    else
        log_debug("mcp", "session %.8s has no GET stream: a message was dropped", hs->id);
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct http_session *hs = owner;
    struct post *p = reply;

    if (!p || !p->x || p->sse)
        buf_str(&hs->event, "\n\n");
    if (!p) {
        send_unrelated(hs);
        return;
    }
    if (p->x && p->sse) {
        write_sse(&p->x, buf_view(&hs->event));
    } else if (p->x && !p->batch) {
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

static const struct mcp_out out_ops = {out_begin, out_end, out_abandon, NULL};

/* --- exchanges --- */

static void post_gone(void *owner)
{
    struct post *p = owner;

    /* Leaving is not cancelling in this era: the call goes on, its answer is dropped. */
    p->x = NULL;
}

struct post *http_session_post(struct http_session *hs, struct http_exchange *x, bool hello,
                               bool batch, size_t requests)
{
    struct post *p = MEM_NEW(struct post);

    p->session = hs;
    p->x = x;
    p->hello = hello;
    p->batch = batch;
    p->left = requests;
    list_append(&hs->posts, &p->node);
    http_exchange_on_gone(x, post_gone, p);
    return p;
}

static void stream_gone(void *owner)
{
    struct http_session *hs = owner;

    hs->stream = NULL;
    http_session_touch(hs);
}

void http_session_listen(struct http_session *hs, struct http_exchange *x)
{
    if (hs->stream) {
        http_exchange_on_gone(hs->stream, NULL, NULL);
        http_stream_end(hs->stream);
    }
    hs->stream = x;
    http_exchange_on_gone(x, stream_gone, hs);
    http_stream_begin(x, 200, "text/event-stream", SPAN(SSE_HEADERS));
    if (hs->backlog.n)
        http_stream_write(x, buf_view(&hs->backlog));
    buf_fini(&hs->backlog);
}

/* --- life --- */

struct http_session *http_session_new(struct loop *loop, const struct mcp_host *host,
                                      const char *id)
{
    struct http_session *hs = MEM_NEW(struct http_session);

    snprintf(hs->id, sizeof hs->id, "%s", id);
    hs->loop = loop;
    list_init(&hs->posts);
    hs->mcp = mcp_session_new(host, &out_ops, hs);
    http_session_touch(hs);
    return hs;
}

void http_session_free(struct http_session *hs)
{
    mcp_session_free(hs->mcp); /* abandons the posts of open calls */
    LIST_EACH_SAFE (&hs->posts, it)
        post_complete(LIST_ENTRY(it, struct post, node));
    if (hs->stream) {
        http_exchange_on_gone(hs->stream, NULL, NULL);
        http_stream_end(hs->stream);
    }
    buf_fini(&hs->backlog);
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

void http_session_touch(struct http_session *hs)
{
    hs->last_used = loop_now(hs->loop);
}

uint64_t http_session_idle(const struct http_session *hs)
{
    if (hs->stream || !list_empty(&hs->posts))
        return 0;
    return loop_now(hs->loop) - hs->last_used;
}

void http_session_keep_alive(struct http_session *hs)
{
    struct span comment = SPAN(": keep-alive\n\n");

    if (hs->stream)
        http_stream_write(hs->stream, comment);
    LIST_EACH (&hs->posts, it) {
        struct post *p = LIST_ENTRY(it, struct post, node);
        if (p->x && p->sse)
            http_stream_write(p->x, comment);
    }
}
