#include "io/http_server.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/http_conn.h"

/* --- parsers: lent to connections that have a request --- */

struct http_parser *server_lend_parser(struct http_server *s)
{
    return s->n_spare ? s->spare[--s->n_spare] : http_parser_new(s->options.max_body);
}

void server_return_parser(struct http_server *s, struct http_parser *p)
{
    if (s->n_spare == COUNT_OF(s->spare)) {
        http_parser_free(p);
        return;
    }
    http_parser_next(p);
    s->spare[s->n_spare++] = p;
}

/* --- connections --- */

static void ignore_data(void *owner, struct span chunk)
{
    (void)owner, (void)chunk;
}

static void ignore_closed(void *owner, const char *reason)
{
    (void)owner, (void)reason;
}

/* One too many: say so and close, without a connection's memory. */
static void turn_away(struct http_server *s, struct stream *stream)
{
    static const struct stream_events events = {.data = ignore_data, .closed = ignore_closed};

    if (!s->full)
        log_warn("http", "all %zu connections are taken: turning clients away", s->n_conns);
    s->full = true;
    stream_start(stream, &events, s);
    stream_write(stream, SPAN("HTTP/1.1 503 Service Unavailable\r\n"
                              "Connection: close\r\nContent-Length: 0\r\n\r\n"));
    stream_finish(stream, "too many connections", 1000);
}

static void on_accept(void *owner, struct stream *stream)
{
    struct http_server *s = owner;

    if (s->n_conns >= s->options.max_connections) {
        turn_away(s, stream);
        return;
    }
    s->n_conns++;
    conn_new(s, stream);
}

/* --- life --- */

struct http_server *http_server_new(struct loop *l, const struct http_server_options *options,
                                    http_handler_fn *handler, void *owner)
{
    struct http_server *s = MEM_NEW(struct http_server);
    s->loop = l;
    s->options = *options;
    s->handler = handler;
    s->owner = owner;
    list_init(&s->conns);
    return s;
}

int http_server_listen(struct http_server *s, const char *address, struct err *err)
{
    struct listener *ls = listener_open(s->loop, address, on_accept, s, err);
    if (!ls)
        return ERR_CONFIG;
    s->listeners = mem_resize(s->listeners, (s->n_listeners + 1) * sizeof(struct listener *));
    s->listeners[s->n_listeners++] = ls;
    return 0;
}

const char *http_server_address(const struct http_server *s, size_t n)
{
    return n < s->n_listeners ? listener_address(s->listeners[n]) : NULL;
}

static void on_end(struct deferred *d)
{
    struct http_server *s = CONTAINER_OF(d, struct http_server, end);

    for (size_t i = 0; i < s->n_spare; i++)
        http_parser_free(s->spare[i]);
    buf_fini(&s->nowhere);
    if (s->closed)
        s->closed(s->closed_arg);
    mem_free(s);
}

void server_conn_gone(struct http_server *s)
{
    s->n_conns--;
    s->full = false;
    if (s->closing && s->n_conns == 0)
        loop_defer(s->loop, &s->end, on_end);
}

void http_server_close(struct http_server *s, void (*closed)(void *arg), void *arg)
{
    if (s->closing)
        return;
    s->closing = true;
    s->closed = closed;
    s->closed_arg = arg;
    for (size_t i = 0; i < s->n_listeners; i++)
        listener_close(s->listeners[i]);
    mem_free(s->listeners);
    s->listeners = NULL;
    s->n_listeners = 0;

    LIST_EACH (&s->conns, it)
        conn_stop(LIST_ENTRY(it, struct http_conn, node));
    if (s->n_conns == 0)
        loop_defer(s->loop, &s->end, on_end);
}
