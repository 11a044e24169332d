/* The sockets of the embedded bus, Unix and loopback TCP: accepting, refusing and cutting off
 * connections, and passing their lines to line_conn.c. Called by embedded.c when this process hosts
 * the bus. */
#include "bus/line_server.h"

#include "base/list.h"
#include "base/log.h"
#include "bus/line.h"
#include "bus/line_conn.h"
#include "io/listen.h"
#include "wire/lines.h"

#include <unistd.h>

enum {
    SOCKETS_MOST = 512,
    UNPROVEN_MOST = 64, /* clients that have not shown the token yet */
    HELLO_MS = 10000,   /* time limit for showing the token */
    HELLO_BYTES = 4096,
    PATIENCE_MS = 30000,
    BYE_MS = 500,
};

/* One connected process. */
struct line_socket {
    struct list node;
    struct line_server *server;
    struct stream *stream;
    struct lines lines;
    struct line_conn *conn;
    bool finishing;
    bool unproven;        /* the client has not shown the token yet */
    bool high;            /* too much output is queued: we read no more until the client has read */
    uint64_t appended;    /* bytes queued for the client so far */
    uint64_t taken;       /* how many of them the client had read when on_stuck last looked */
    size_t queued_before; /* bytes queued when the current append began */
    struct timer hello, stuck;
};

struct line_server {
    struct loop *loop;
    struct broker *broker;
    struct line_server_options options;
    struct listener *local, *tcp;
    struct list sockets;
    size_t n_sockets, n_unproven;
    void (*closed)(void *owner);
    void *owner;
    struct deferred later;
    bool closing;
};

/* --- output --- */

static struct buf *socket_out(void *owner)
{
    struct line_socket *c = owner;

    c->queued_before = stream_queued(c->stream);
    return stream_out(c->stream);
}

static void socket_wrote(void *owner)
{
    struct line_socket *c = owner;

    c->appended += stream_queued(c->stream) - c->queued_before;
    stream_wrote(c->stream);
    if (!timer_is_set(&c->stuck))
        timer_set(loop_timers(c->server->loop), &c->stuck, c->server->options.patience);
    /* A client that does not read its answers: we stop reading its requests. */
    if (!c->high && !c->finishing && stream_queued(c->stream) > STREAM_HIGH_WATER) {
        c->high = true;
        stream_pause(c->stream);
    }
}

static bool socket_is_ready(void *owner)
{
    struct line_socket *c = owner;

    return !c->high && !c->finishing;
}

static void socket_end(void *owner, const char *why)
{
    struct line_socket *c = owner;

    if (c->finishing)
        return;
    log_debug("bus", "%s: %s", stream_name(c->stream), why);
    c->finishing = true;
    lines_stop(&c->lines);
    stream_finish(c->stream, why, BYE_MS);
}

static void set_proven(struct line_socket *c)
{
    c->server->n_unproven -= c->unproven;
    c->unproven = false;
}

static void socket_welcomed(void *owner)
{
    struct line_socket *c = owner;

    set_proven(c);
    timer_clear(loop_timers(c->server->loop), &c->hello);
    c->lines.cap = LINE_MOST;
}

static const struct line_conn_events conn_events = {socket_out, socket_wrote, socket_is_ready,
                                                    socket_end, socket_welcomed};

static void on_hello_late(struct timer *t)
{
    line_conn_bye(CONTAINER_OF(t, struct line_socket, hello)->conn, "no hello in time");
}

/* A client that does not read holds memory and the messages of its groups: it is cut off. */
static void on_stuck(struct timer *t)
{
    struct line_socket *c = CONTAINER_OF(t, struct line_socket, stuck);
    size_t queued = stream_queued(c->stream);

    if (!queued)
        return;
    uint64_t taken = c->appended - queued;
    if (taken != c->taken) {
        c->taken = taken;
        timer_set(loop_timers(c->server->loop), t, c->server->options.patience);
        return;
    }
    log_warn("bus", "%s does not read: cut off", stream_name(c->stream));
    c->finishing = true;
    stream_close(c->stream, "it does not read");
}

/* --- input --- */

static void on_line(void *owner, struct span line)
{
    struct line_socket *c = owner;

    line_conn_line(c->conn, line);
}

static void on_too_long(void *owner, struct span head)
{
    struct line_socket *c = owner;

    (void)head;
    line_conn_too_long(c->conn);
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct line_socket *c = owner;

    lines_feed(&c->lines, chunk, &line_events, c);
}

static void on_drained(void *owner)
{
    struct line_socket *c = owner;

    c->high = false;
    stream_resume(c->stream);
    line_conn_ready(c->conn);
}

static void tell_closed(struct line_server *s);

static void on_closed(void *owner, const char *reason)
{
    struct line_socket *c = owner;
    struct line_server *s = c->server;

    log_debug("bus", "a member left: %s", reason);
    timer_clear(loop_timers(s->loop), &c->hello);
    timer_clear(loop_timers(s->loop), &c->stuck);
    c->finishing = true;
    line_conn_free(c->conn);
    lines_fini(&c->lines);
    list_remove(&c->node);
    set_proven(c);
    s->n_sockets--;
    mem_free(c);
    if (s->closing && !s->n_sockets)
        tell_closed(s);
}

static const struct stream_events stream_events = {
    .data = on_data, .drained = on_drained, .closed = on_closed};

/* --- accepting connections --- */

static void let_in(struct line_server *s, struct stream *stream, const char *token)
{
    struct line_socket *c = MEM_NEW(struct line_socket);

    c->server = s;
    c->stream = stream;
    c->hello.fire = on_hello_late;
    c->stuck.fire = on_stuck;
    list_append(&s->sockets, &c->node);
    s->n_sockets++;
    c->unproven = token != NULL;
    s->n_unproven += c->unproven;
    lines_init(&c->lines, token ? HELLO_BYTES : LINE_MOST);
    stream_set_limit(stream, 4ul * LINE_MOST);
    c->conn = line_conn_new(s->broker, token, &conn_events, c);
    if (token)
        timer_set(loop_timers(s->loop), &c->hello, HELLO_MS);
    stream_start(stream, &stream_events, c);
}

static void on_refused_closed(void *owner, const char *reason)
{
    (void)owner;
    log_debug("bus", "a connection was refused: %s", reason);
}

static const struct stream_events refused_events = {.closed = on_refused_closed};

static void turn_away(struct stream *stream, const char *why)
{
    struct buf *out = stream_out(stream);

    buf_printf(out, "{\"op\":\"bye\",\"reason\":\"%s\"}\n", why);
    stream_start(stream, &refused_events, NULL);
    stream_wrote(stream);
    stream_finish(stream, why, BYE_MS);
}

static void on_local(void *owner, struct stream *stream)
{
    struct line_server *s = owner;

    if (!stream_peer_is_own_user(stream)) {
        log_warn("bus", "a process of another user wanted to join: refused");
        turn_away(stream, "another user's bus");
    } else if (stream_peer_is_kin(stream)) {
        log_warn("bus", "one of the servers that run here wanted to join: refused");
        turn_away(stream, "not for the servers that its host runs");
    } else if (s->n_sockets == SOCKETS_MOST) {
        turn_away(stream, "too many connections");
    } else {
        let_in(s, stream, NULL);
    }
}

static void on_tcp(void *owner, struct stream *stream)
{
    struct line_server *s = owner;

    if (s->n_sockets == SOCKETS_MOST || s->n_unproven == UNPROVEN_MOST)
        turn_away(stream, "too many connections");
    else
        let_in(s, stream, s->options.token);
}

static bool is_loopback(const char *address)
{
    static const char *const hosts[] = {"127.", "localhost:", "[::1]:", ":"};

    for (size_t i = 0; i < COUNT_OF(hosts); i++)
        if (span_starts(span_str(address), span_str(hosts[i])))
            return true;
    return false;
}

static int open_tcp(struct line_server *s, struct err *err)
{
    if (!s->options.token || !s->options.token[0]) {
        err_set(err, ERR_CONFIG, "a bus that listens on TCP needs a token");
        err_hint(err, "set bus.token to a long random text");
        return ERR_CONFIG;
    }
    if (!is_loopback(s->options.listen))
        return err_set(err, ERR_CONFIG,
                       "the embedded bus listens on loopback addresses only, not on %s",
                       s->options.listen);
    s->tcp = listener_open(s->loop, s->options.listen, on_tcp, s, err);
    if (!s->tcp)
        return ERR_CONFIG;
    log_info("bus", "the embedded bus listens on %s", listener_address(s->tcp));
    return 0;
}

struct line_server *line_server_open(struct loop *loop, struct broker *broker,
                                     const struct line_server_options *options, struct err *err)
{
    struct line_server *s = MEM_NEW(struct line_server);

    s->loop = loop;
    s->broker = broker;
    s->options = *options;
    if (!s->options.patience)
        s->options.patience = PATIENCE_MS;
    list_init(&s->sockets);
    s->local = listener_open(loop, options->address, on_local, s, err);
    if (s->local && (!options->listen || open_tcp(s, err) == 0))
        return s;
    listener_close(s->local);
    mem_free(s);
    return NULL;
}

const char *line_server_tcp(const struct line_server *s)
{
    return s->tcp ? listener_address(s->tcp) : NULL;
}

/* --- the end --- */

static void on_later(struct deferred *d)
{
    struct line_server *s = CONTAINER_OF(d, struct line_server, later);
    void (*closed)(void *owner) = s->closed;
    void *owner = s->owner;

    mem_free(s);
    closed(owner);
}

static void tell_closed(struct line_server *s)
{
    loop_defer(s->loop, &s->later, on_later);
}

void line_server_close(struct line_server *s, void (*closed)(void *owner), void *owner)
{
    s->closing = true;
    s->closed = closed;
    s->owner = owner;
    listener_close(s->local);
    listener_close(s->tcp);
    LIST_EACH (&s->sockets, it)
        line_conn_bye(LIST_ENTRY(it, struct line_socket, node)->conn, "the bus is closing");
    if (!s->n_sockets)
        tell_closed(s);
}
