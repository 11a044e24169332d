/* Answers to HTTP requests: whole, streamed, refused or upgraded; facts about the client. Called by
 * the HTTP handlers of hub/, mcp/agent/, admin/, browser/ and cmd/, and by ws_accept.c. */
#include "io/http_conn.h"
#include "wire/json.h"

/* Content-Length is filled in after the body is written, into these blanks, which are legal
 * there. */
#define LENGTH_BLANKS "            "

static struct http_conn *conn_of(const struct http_exchange *x)
{
    return CONTAINER_OF((uintptr_t)x, struct http_conn, x);
}

/* The server may have ended the exchange already; an answer from an owner that has not been told
 * yet is ignored. */
static bool is_open(const struct http_conn *c)
{
    return c->phase == CONN_EXCHANGE && c->x.state != EXCHANGE_DONE;
}

static void finish(struct http_exchange *x)
{
    buf_fini(&x->more);
    x->state = EXCHANGE_DONE;
    http_conn_answered(conn_of(x));
}

void http_exchange_add_headers(struct http_exchange *x, struct span lines)
{
    buf_span(&x->more, lines);
}

/* The head up to the framing headers (Content-Length, Transfer-Encoding). */
static void begin_head(struct http_conn *c, int status, const char *content_type,
                       struct span headers)
{
    struct buf *out = stream_out(c->stream);

    c->x.no_body = c->head_only || status == 204 || status == 304;
    if (status == 200)
        buf_span(out, SPAN("HTTP/1.1 200 OK\r\n"));
    else
        http_put_status(out, status);
    if (content_type) {
        buf_span(out, SPAN("Content-Type: "));
        buf_str(out, content_type);
        buf_span(out, SPAN("\r\n"));
    }
    buf_span(out, headers);
    buf_span(out, buf_view(&c->x.more));
    if (!c->keep_alive)
        buf_span(out, SPAN("Connection: close\r\n"));
    else if (c->v1_0)
        buf_span(out, SPAN("Connection: keep-alive\r\n"));
}

void http_respond(struct http_exchange *x, int status, const char *content_type,
                  struct span headers, struct span body)
{
    struct http_conn *c = conn_of(x);

    if (is_open(c)) {
        struct buf *out = stream_out(c->stream);
        begin_head(c, status, content_type, headers);
        if (status != 204 && status != 304) {
            buf_span(out, SPAN("Content-Length: "));
            buf_u64(out, body.n);
            buf_span(out, SPAN("\r\n"));
        }
        buf_span(out, SPAN("\r\n"));
        if (!x->no_body)
            buf_span(out, body);
        stream_wrote(c->stream);
    }
    finish(x);
}

struct buf *http_respond_begin(struct http_exchange *x, int status, const char *content_type,
                               struct span headers)
{
    struct http_conn *c = conn_of(x);
    struct buf *out = stream_out(c->stream);

    if (!is_open(c))
        return &c->server->nowhere;
    begin_head(c, status, content_type, headers);
    x->length_at = 0;
    if (status != 204 && status != 304) {
        buf_span(out, SPAN("Content-Length: " LENGTH_BLANKS));
        x->length_at = out->n;
        buf_span(out, SPAN("\r\n"));
    }
    buf_span(out, SPAN("\r\n"));
    x->body_at = out->n;
    return out;
}

void http_respond_end(struct http_exchange *x)
{
    struct http_conn *c = conn_of(x);

    if (is_open(c)) {
        struct buf *out = stream_out(c->stream);
        if (x->length_at) {
            char *digit = out->p + x->length_at;
            size_t n = out->n - x->body_at;
            do {
                *--digit = (char)('0' + n % 10);
                n /= 10;
            } while (n);
        }
        if (x->no_body)
            out->n = x->body_at;
        stream_wrote(c->stream);
    } else {
        buf_reset(&c->server->nowhere, 0);
    }
    finish(x);
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type,
                       struct span headers)
{
    struct http_conn *c = conn_of(x);

    if (!is_open(c))
        return;
    x->chunked = !c->v1_0 && !c->head_only;
    if (c->v1_0)
        c->keep_alive = false; /* the end of the connection is the end of the body */
    begin_head(c, status, content_type, headers);
    if (!c->v1_0)
        buf_span(stream_out(c->stream), SPAN("Transfer-Encoding: chunked\r\n"));
    buf_span(stream_out(c->stream), SPAN("\r\n"));
    x->state = EXCHANGE_STREAM;
    stream_wrote(c->stream);
}

void http_stream_write(struct http_exchange *x, struct span data)
{
    struct http_conn *c = conn_of(x);

    if (!is_open(c) || x->no_body)
        return;
    if (x->chunked)
        http_put_chunk(stream_out(c->stream), data);
    else
        buf_span(stream_out(c->stream), data);
    stream_wrote(c->stream);
}

void http_stream_end(struct http_exchange *x)
{
    struct http_conn *c = conn_of(x);

    if (is_open(c) && x->chunked) {
        http_put_last_chunk(stream_out(c->stream));
        stream_wrote(c->stream);
    }
    finish(x);
}

size_t http_exchange_queued(const struct http_exchange *x)
{
    return stream_queued(conn_of(x)->stream);
}

void *http_exchange_kept(const struct http_exchange *x)
{
    return conn_of(x)->kept;
}

void http_exchange_keep(struct http_exchange *x, void *thing, void (*drop)(void *thing))
{
    struct http_conn *c = conn_of(x);

    if (c->kept)
        c->drop(c->kept);
    c->kept = thing;
    c->drop = drop;
}

void http_exchange_on_gone(struct http_exchange *x, void (*gone)(void *owner), void *owner)
{
    x->gone = gone;
    x->gone_owner = owner;
}

void http_exchange_abort(struct http_exchange *x, const char *reason)
{
    struct http_conn *c = conn_of(x);

    x->state = EXCHANGE_DONE;
    c->phase = CONN_CLOSING;
    stream_close(c->stream, reason);
}

void http_refuse_put_body(struct buf *out, const char *error, const char *hint)
{
    buf_str(out, "{\"error\":");
    json_quote(out, span_str(error));
    if (hint) {
        buf_str(out, ",\"hint\":");
        json_quote(out, span_str(hint));
    }
    buf_char(out, '}');
}

void http_refuse_with(struct http_exchange *x, int status, struct span headers, const char *error,
                      const char *hint)
{
    struct buf *out = http_respond_begin(x, status, "application/json", headers);

    http_refuse_put_body(out, error, hint);
    buf_char(out, '\n');
    http_respond_end(x);
}

void http_refuse(struct http_exchange *x, int status, const char *error, const char *hint)
{
    http_refuse_with(x, status, SPAN_EMPTY, error, hint);
}

const char *http_exchange_peer(const struct http_exchange *x)
{
    return stream_name(conn_of(x)->stream);
}

size_t http_exchange_came_by(const struct http_exchange *x)
{
    return conn_of(x)->address;
}

bool http_exchange_is_to(const struct http_exchange *x, struct span host)
{
    return stream_is_to(conn_of(x)->stream, host);
}

bool http_exchange_is_by_kin(const struct http_exchange *x)
{
    const struct http_conn *c = conn_of(x);

    return c->by_kin || stream_is_held_by_kin(c->stream);
}

bool http_exchange_is_by_us(const struct http_exchange *x)
{
    const struct http_conn *c = conn_of(x);

    return !c->by_kin && stream_is_held_by_us(c->stream);
}

bool http_exchange_is_secure(const struct http_exchange *x)
{
    return stream_is_secure(conn_of(x)->stream);
}

struct stream *http_upgrade(struct http_exchange *x, struct span headers, struct span *early)
{
    struct http_conn *c = conn_of(x);
    struct stream *s = c->stream;
    struct buf *out = stream_out(s);

    http_put_status(out, 101);
    buf_span(out, headers);
    buf_span(out, SPAN("\r\n"));
    stream_wrote(s);
    http_conn_detach(c);
    *early = span_from(buf_view(&c->in), c->in_at);
    return s;
}
