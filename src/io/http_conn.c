/* One connection of an HTTP server: bytes to requests, deadlines, refusals, closing. Called by
 * http_server.c for new clients and at its end, by http_answer.c when an answer is complete. */
#include "io/http_conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/loop.h"
#include "io/pump.h"
#include "io/tls.h"
#include "wire/json.h"

#include <sys/socket.h>
#include <unistd.h>

enum {
    PIPELINE_MAX =
        64 * 1024,    /* bytes kept behind the request being handled before reading pauses */
    LINGER_MS = 2000, /* for the client to close after our last answer */
    STALL_MS = 30000, /* a client that takes no byte of an answer for so long is cut */
    STOP_MS = 1000,
    INPUT_SMALL = 4 * 1024, /* up to this many bytes of a request do not count for limits.memory */
};

/* --- deadlines --- */

static void on_timer(struct timer *t);

/*
 * Each request moves the deadline to a later time, but not the timer: the timer goes off at the old
 * deadline, finds that the new one is not due, and is set for the time left.
 */
static void set_deadline(struct http_conn *c, uint64_t delay)
{
    struct timers *ts = loop_timers(c->server->loop);

    if (delay == 0) {
        c->deadline = UINT64_MAX;
        return;
    }
    c->deadline = ts->now + delay;
    if (!timer_is_set(&c->timer) || c->timer.at > c->deadline)
        timer_set(ts, &c->timer, delay);
}

static void wait_idle(struct http_conn *c)
{
    c->phase = CONN_IDLE;
    c->queued = SIZE_MAX;
    set_deadline(c, c->server->options.idle_timeout);
}

/* Is output queued, and was some of it sent since the last check? Then check again later. */
static bool is_progressing(struct http_conn *c)
{
    size_t queued = stream_queued(c->stream);
    bool progress = queued && queued != c->queued;

    c->queued = queued;
    if (progress)
        set_deadline(c, STALL_MS);
    return progress;
}

static void refuse(struct http_conn *c, int status, const char *why);

static void on_timer(struct timer *t)
{
    struct http_conn *c = CONTAINER_OF(t, struct http_conn, timer);
    uint64_t now = loop_now(c->server->loop);

    if (c->deadline > now) {
        if (c->deadline != UINT64_MAX)
            timer_set(loop_timers(c->server->loop), t, c->deadline - now);
        return;
    }
    switch (c->phase) {
    case CONN_HEAD:
        refuse(c, 408, "the head of the request did not arrive in time");
        break;
    case CONN_BODY:
        refuse(c, 408, "the body of the request did not arrive in time");
        break;
    case CONN_IDLE:
    case CONN_CLOSING:
        if (!is_progressing(c))
            stream_close(c->stream, c->phase == CONN_IDLE ? "idle" : "answered");
        break;
    case CONN_EXCHANGE:
        break;
    }
}

/* --- the end --- */

/*
 * Close after the queued output. The client gets time to read it and to close first: closing while
 * the client's bytes are still on their way would make the kernel reset the connection, and the
 * answer would be lost.
 */
static void linger(struct http_conn *c)
{
    c->phase = CONN_CLOSING;
    c->queued = SIZE_MAX;
    stream_shutdown(c->stream);
    stream_resume(c->stream);
    buf_fini(&c->in);
    c->in_at = 0;
    holding_set(&c->input, 0);
    set_deadline(c, LINGER_MS);
}

static const char *hint_for(int status)
{
    static const struct {
        int status;
        const char *hint;
    } rows[] = {
        {400, "send a valid HTTP/1.1 request"},
        {408, "send the whole request at once"},
        {413, "send a smaller body, or raise the limit in the configuration"},
        {431, "send fewer or shorter headers: 16 KiB and 100 lines are the limit"},
        {503, "try again later"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].status == status)
            return rows[i].hint;
    return "";
}

/* Answers {"error", "hint"} and closes: for requests that never become an exchange, and for
 * exchanges that the server ends. */
static void refuse(struct http_conn *c, int status, const char *why)
{
    BUF_SCOPED body = {0};
    struct buf *out = stream_out(c->stream);

    log_debug("http", "%s: %d %s", stream_name(c->stream), status, why);
    http_refuse_put_body(&body, why, hint_for(status));

    http_put_status(out, status);
    buf_str(out, "Content-Type: application/json\r\nConnection: close\r\nContent-Length: ");
    buf_u64(out, body.n);
    buf_str(out, "\r\n\r\n");
    if (c->phase != CONN_EXCHANGE || !c->head_only)
        buf_span(out, buf_view(&body));
    stream_wrote(c->stream);
    linger(c);
}

void http_conn_stop(struct http_conn *c)
{
    if (c->phase == CONN_EXCHANGE && c->x.state == EXCHANGE_OPEN)
        refuse(c, 503, "the server is shutting down");
    else if (c->phase == CONN_EXCHANGE && c->x.state == EXCHANGE_STREAM && c->x.chunked) {
        http_put_last_chunk(stream_out(c->stream));
        stream_wrote(c->stream);
    }
    c->phase = CONN_CLOSING;
    c->deadline = UINT64_MAX;
    stream_finish(c->stream, "server closing", STOP_MS);
}

/* Too much input is held for this connection. A client whose request is not complete gets an
 * answer. */
static void let_go(struct holding *h, const char *why)
{
    struct http_conn *c = CONTAINER_OF(h, struct http_conn, input);

    log_warn("memory", "%s was cut: %s", stream_name(c->stream), why);
    if (c->phase == CONN_HEAD || c->phase == CONN_BODY) {
        refuse(c, 503, why);
        http_parser_free(c->parser);
        c->parser = NULL;
    } else {
        stream_close(c->stream, why);
    }
}

/* May end the connection. */
static void count_input(struct http_conn *c)
{
    size_t n = c->in.cap + (c->parser ? http_parser_body(c->parser) : 0);

    if (c->stream && c->phase != CONN_CLOSING)
        holding_set(&c->input, n > INPUT_SMALL ? n : 0);
}

static void conn_free(struct http_conn *c)
{
    if (c->kept)
        c->drop(c->kept);
    http_parser_free(c->parser);
    buf_fini(&c->in);
    buf_fini(&c->x.more);
    mem_free(c);
}

/* Off the server's list, no timer, no deferral: ready to be freed. */
static void unlink_conn(struct http_conn *c)
{
    timer_clear(loop_timers(c->server->loop), &c->timer);
    loop_undefer(&c->next);
    holding_set(&c->input, 0);
    list_remove(&c->node);
    http_server_conn_gone(c->server);
}

static void on_closed(void *owner, const char *reason)
{
    struct http_conn *c = owner;
    struct http_exchange *x = &c->x;

    log_debug("http", "%s: %s", stream_name(c->stream), reason);
    if (x->state != EXCHANGE_DONE && x->gone) {
        x->state = EXCHANGE_DONE;
        x->gone(x->gone_owner);
    }
    unlink_conn(c);
    conn_free(c);
}

static void free_later(struct deferred *d)
{
    conn_free(CONTAINER_OF(d, struct http_conn, next));
}

void http_conn_detach(struct http_conn *c)
{
    struct loop *l = c->server->loop;

    /* Bytes behind the request are copied: the next read overwrites the chunk. */
    if (c->handling && !c->in.n)
        buf_span(&c->in, c->rest);
    else if (c->handling)
        c->in_at = c->in.n - c->rest.n;
    stream_resume(c->stream);
    c->stream = NULL;
    c->x.state = EXCHANGE_DONE;
    unlink_conn(c);
    loop_defer(l, &c->next, free_later);
}

/* --- requests --- */

static void on_head(struct http_conn *c, bool body_is_here)
{
    c->phase = CONN_BODY;
    set_deadline(c, c->server->options.body_timeout);
    if (http_parser_expects_continue(c->parser) && !body_is_here)
        stream_write(c->stream, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* Reads up to the end of a request. False: the rest is still to come, or the request is refused. */
static bool read_request(struct http_conn *c, struct span *bytes)
{
    while (bytes->n && c->stream && c->phase < CONN_EXCHANGE) {
        size_t used;
        if (!c->parser)
            c->parser = http_server_lend_parser(c->server);
        enum http_state state = http_parser_feed(c->parser, *bytes, &used);
        *bytes = span_from(*bytes, used);
        switch (state) {
        case HTTP_MORE:
            if (c->phase == CONN_IDLE) {
                c->phase = CONN_HEAD;
                set_deadline(c, c->server->options.head_timeout);
            }
            return false;
        case HTTP_HEAD:
            on_head(c, bytes->n > 0);
            break;
        case HTTP_COMPLETE:
            return true;
        case HTTP_BAD:
            refuse(c, http_parser_status(c->parser), http_parser_why(c->parser));
            break;
        }
    }
    return false;
}

static void begin_exchange(struct http_conn *c, const struct http_request *req, struct span rest)
{
    c->phase = CONN_EXCHANGE;
    c->deadline = UINT64_MAX;
    c->head_only = span_is(req->method, "HEAD");
    c->keep_alive = req->keep_alive && !c->last;
    c->v1_0 = req->v1_0;
    c->x = (struct http_exchange){.state = EXCHANGE_OPEN};
    c->rest = rest;
}

/* --- handing over to another daemon --- */

static void on_pump_gone(void *arg)
{
    struct http_server *s = arg;

    s->n_pumps--;
}

/* The other daemon gets one end of a pair of sockets, and we carry the bytes between the other end
 * and the client. */
static void give_behind_tls(struct http_conn *c, struct http_given *given)
{
    struct http_server *s = c->server;
    char local[ADDRESS_TEXT_SIZE];
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        refuse(c, 503, "no socket for the daemon that takes over");
        return;
    }
    stream_put_local(c->stream, local);
    given->fd = ends[0];
    given->peer = stream_name(c->stream);
    given->local = local;
    given->by_kin = stream_is_held_by_kin(c->stream);
    s->give(s->give_arg, given);
    close(ends[0]);
    s->n_pumps++;
    struct stream *client = c->stream;
    http_conn_detach(c);
    pump_start(client, stream_from_fds(s->loop, ends[1], ends[1], "pump"), on_pump_gone, s);
}

/* Ends the connection here and gives it to the other daemon, which reads `early` first. */
static void give(struct http_conn *c, struct span early)
{
    struct http_server *s = c->server;
    struct http_given given = {.address = listener_address(s->addresses[c->address]->listener),
                               .fd = stream_descriptor(c->stream),
                               .early = early};

    if (stream_is_secure(c->stream)) {
        give_behind_tls(c, &given);
        return;
    }
    if (given.fd >= 0)
        s->give(s->give_arg, &given);
    c->phase = CONN_CLOSING;
    c->x.state = EXCHANGE_DONE;
    stream_close(c->stream, "another daemon goes on with it");
}

/* The request as it came, but with the body in one piece (Content-Length), and without Expect. */
static void put_request(struct buf *out, const struct http_request *req)
{
    static const char *const framing[] = {"content-length", "transfer-encoding", "expect"};

    buf_printf(out, SPAN_FMT " " SPAN_FMT " HTTP/1.%d\r\n", SPAN_ARG(req->method),
               SPAN_ARG(req->target), req->v1_0 ? 0 : 1);
    for (size_t i = 0; i < req->n_headers; i++) {
        const struct http_header *h = &req->headers[i];
        bool own = false;
        for (size_t k = 0; k < COUNT_OF(framing); k++)
            own |= span_eq_nocase(h->name, span_str(framing[k]));
        if (!own)
            buf_printf(out, SPAN_FMT ": " SPAN_FMT "\r\n", SPAN_ARG(h->name), SPAN_ARG(h->value));
    }
    if (req->body.n)
        buf_printf(out, "Content-Length: %zu\r\n", req->body.n);
    buf_str(out, "\r\n");
    buf_span(out, req->body);
}

static void give_request(struct http_conn *c, const struct http_request *req, struct span rest)
{
    BUF_SCOPED early = {0};

    put_request(&early, req);
    buf_span(&early, rest);
    give(c, buf_view(&early));
}

/* An answer is still to be written, and would be lost if the connection were given away. Behind TLS
 * we write it ourselves. */
static bool must_write_first(const struct http_conn *c)
{
    return c->server->give && c->stream && !stream_is_secure(c->stream) && stream_queued(c->stream);
}

/*
 * Parse requests and hand each to the server's handler, which may answer, wait, upgrade or abort;
 * stop at the first request that is not answered at once, or that must wait until the connection is
 * given away. Returns the bytes that are left.
 */
static struct span parse(struct http_conn *c, struct span bytes)
{
    struct http_server *s = c->server;

    while (!must_write_first(c) && read_request(c, &bytes)) {
        const struct http_request *req = http_parser_request(c->parser);
        if (s->give) {
            give_request(c, req, bytes);
            return SPAN_EMPTY;
        }
        begin_exchange(c, req, bytes);
        c->handling = true;
        s->handler(s->owner, &c->x, req);
        c->handling = false;
        if (c->stream && c->x.state == EXCHANGE_DONE)
            http_conn_answered(c);
        else if (req->body.n > INPUT_SMALL)
            count_input(c);
    }
    return c->stream && c->phase != CONN_CLOSING ? bytes : SPAN_EMPTY;
}

/* Parses the requests that came while an earlier one was being answered, or its answer written. */
static void parse_kept(struct deferred *d)
{
    struct http_conn *c = CONTAINER_OF(d, struct http_conn, next);

    if (c->phase >= CONN_EXCHANGE)
        return;
    size_t left = parse(c, span_from(buf_view(&c->in), c->in_at)).n;
    if (!c->stream || c->phase == CONN_CLOSING)
        return;
    c->in_at = c->in.n - left;
    if (!left) {
        buf_fini(&c->in);
        c->in_at = 0;
    }
    if (left < PIPELINE_MAX)
        stream_resume(c->stream);
    count_input(c);
}

void http_conn_leave(struct http_conn *c)
{
    bool begun = c->phase == CONN_HEAD || c->phase == CONN_BODY;

    if ((c->phase != CONN_IDLE && !begun) || !c->stream || stream_queued(c->stream))
        return;
    if (begun) {
        if (c->in.n) /* the rest of the request had to wait */
            parse_kept(&c->next);
    } else if (!stream_is_secure(c->stream)) {
        give(c, span_from(buf_view(&c->in), c->in_at));
    } else if (c->server->hurry) {
        stream_close(c->stream, "another daemon serves");
    }
}

static void keep(struct http_conn *c, struct span bytes)
{
    if (c->in_at > PIPELINE_MAX) {
        buf_drop(&c->in, c->in_at);
        c->in_at = 0;
    }
    buf_span(&c->in, bytes);
    if (c->in.n - c->in_at >= PIPELINE_MAX)
        stream_pause(c->stream);
}

static void on_data(void *owner, struct span chunk)
{
    struct http_conn *c = owner;

    if (c->phase == CONN_CLOSING)
        return;
    if (!c->in.n && c->phase != CONN_EXCHANGE)
        chunk = parse(c, chunk);
    if (chunk.n)
        keep(c, chunk);
    if (c->phase == CONN_BODY || c->in.n)
        count_input(c);
}

void http_conn_answered(struct http_conn *c)
{
    /* The handler may still read the request: parse calls this again when the handler has
     * returned. */
    if (c->handling || c->phase != CONN_EXCHANGE)
        return;
    if (!c->keep_alive) {
        linger(c);
        return;
    }
    http_server_return_parser(c->server, c->parser);
    c->parser = NULL;
    wait_idle(c);
    holding_set(&c->input, 0);
    /* Not at once: we may be inside a caller's http_respond. */
    if (c->in.n)
        loop_defer(c->server->loop, &c->next, parse_kept);
}

static void on_eof(void *owner)
{
    struct http_conn *c = owner;

    /* A client that waits for an answer keeps the connection open, so this client has gone. */
    if (c->phase == CONN_EXCHANGE)
        stream_close(c->stream, "closed by the client");
    else
        stream_finish(c->stream, "closed by the client", STALL_MS);
}

static const struct stream_events events = {.data = on_data, .eof = on_eof, .closed = on_closed};

void http_conn_feed(struct http_conn *c, struct span early)
{
    on_data(c, early);
}

struct http_conn *http_conn_new(const struct http_address *at, struct stream *stream)
{
    struct http_conn *c = MEM_NEW(struct http_conn);
    c->server = at->server;
    c->address = at->n;
    c->stream = stream;
    c->by_kin = stream_peer_is_kin(stream);
    c->timer.fire = on_timer;
    c->x.state = EXCHANGE_DONE;
    holding_init(&c->input, loop_holdings(at->server->loop), let_go);
    list_append(&at->server->conns, &c->node);
    wait_idle(c);
    stream_start(stream, &events, c);
    return c;
}
