/* An HTTP server's listening addresses with their TLS files, its limit of connections, its spare
 * parsers and its end. Called by hub/front.c, hub/signin/callback.c, hub/conductor_http.c and
 * cmd/conductor_viewer.c, and by http_conn.c for parsers. */
#include "io/http_server.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/http_conn.h"
#include "io/stream_uv.h"

enum { HANDSHAKE_MS = 10 * 1000 };

/* --- parsers: lent to connections that have a request --- */

struct http_parser *http_server_lend_parser(struct http_server *s)
{
    return s->n_spare ? s->spare[--s->n_spare] : http_parser_new(s->options.max_body);
}

void http_server_return_parser(struct http_server *s, struct http_parser *p)
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

/* One connection too many: answer 503 and close, without allocating an http_conn. */
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

/* Sent in the clear to clients that use http:// on a TLS port. */
static const char plain_answer[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
    "Content-Length: 78\r\n\r\n"
    "{\"error\":\"this address speaks TLS\",\"hint\":\"use https:// (or wss://) instead\"}\n";

static void on_accept(void *owner, struct stream *stream)
{
    const struct http_address *at = owner;
    struct http_server *s = at->server;

    /* The TLS handshake may take as long as the head of a request. */
    if (at->tls)
        stream_secure(stream, at->tls, NULL, plain_answer,
                      s->options.head_timeout ? s->options.head_timeout : HANDSHAKE_MS);
    /* The limit does not apply to Unix sockets: the operator's commands use them, and no client
     * from the network can. */
    if (s->n_conns >= s->options.max_connections && listener_port(at->listener)) {
        turn_away(s, stream);
        return;
    }
    s->n_conns++;
    http_conn_new(at, stream);
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

/* Takes `tls` over. */
static int open_address(struct http_server *s, const char *address, struct tls_context *tls,
                        struct err *err)
{
    struct http_address *at = MEM_NEW(struct http_address);

    at->server = s;
    at->n = s->n_addresses;
    at->tls = tls;
    at->listener = listener_open(s->loop, address, on_accept, at, err);
    if (!at->listener) {
        tls_context_free(tls);
        mem_free(at);
        return ERR_CONFIG;
    }
    s->addresses = mem_resize(s->addresses, (s->n_addresses + 1) * sizeof(struct http_address *));
    s->addresses[s->n_addresses++] = at;
    return 0;
}

int http_server_listen(struct http_server *s, const char *address, struct err *err)
{
    return open_address(s, address, NULL, err);
}

int http_server_listen_tls(struct http_server *s, const char *address, const char *cert,
                           const char *key, struct err *err)
{
    struct tls_context *tls = tls_context_server(cert, key, err);

    return tls ? open_address(s, address, tls, err) : ERR_CONFIG;
}

int http_server_renew_tls(struct http_server *s, size_t n, const char *cert, const char *key,
                          struct err *err)
{
    struct tls_context *tls = tls_context_server(cert, key, err);

    if (!tls)
        return ERR_CONFIG;
    tls_context_free(s->addresses[n]->tls);
    s->addresses[n]->tls = tls;
    return 0;
}

const char *http_server_address(const struct http_server *s, size_t n)
{
    return n < s->n_addresses ? listener_address(s->addresses[n]->listener) : NULL;
}

bool http_server_is_secure(const struct http_server *s, size_t n)
{
    return n < s->n_addresses && s->addresses[n]->tls;
}

bool http_server_is_meant(const struct http_server *s, const struct http_request *req)
{
    struct span host = http_header(req, "host"), origin = http_header(req, "origin");
    const char *address = http_server_address(s, 0);
    const char *port = strrchr(address, ':');
    BUF_SCOPED local = {0};

    buf_printf(&local, "localhost%s", port ? port : "");
    if (!span_is(host, address) && !span_eq_nocase(host, buf_view(&local)))
        return false;
    return !origin.p ||
           (span_starts(origin, SPAN("http://")) && span_eq_nocase(span_from(origin, 7), host));
}

/* --- handing over to another daemon --- */

enum { LEAVE_MS = 10 };

static void on_leave(struct timer *t)
{
    struct http_server *s = CONTAINER_OF(t, struct http_server, leave);

    LIST_EACH_SAFE (&s->conns, it)
        http_conn_leave(LIST_ENTRY(it, struct http_conn, node));
    timer_set(loop_timers(s->loop), t, LEAVE_MS);
}

void http_server_leave(struct http_server *s, http_give_fn *give, void *arg)
{
    s->give = give;
    s->give_arg = arg;
    s->leave.fire = on_leave;
    on_leave(&s->leave);
}

size_t http_server_left(const struct http_server *s)
{
    return s->n_conns + s->n_pumps;
}

void http_server_hurry(struct http_server *s)
{
    s->hurry = true;
}

bool http_server_adopt(struct http_server *s, const struct http_given *given)
{
    for (size_t i = 0; i < s->n_addresses; i++) {
        const struct http_address *at = s->addresses[i];
        if (strcmp(given->address, listener_address(at->listener)) != 0 ||
            (at->tls != NULL) != (given->peer != NULL))
            continue;
        bool tcp = listener_port(at->listener) && !given->peer;
        struct stream *stream = stream_from_socket(
            s->loop, given->fd, tcp, given->peer ? given->peer : listener_address(at->listener));
        if (given->peer)
            stream_pose(stream, given->local);
        s->n_conns++;
        struct http_conn *c = http_conn_new(at, stream);
        c->last = given->peer != NULL;
        c->by_kin = c->by_kin || given->by_kin;
        if (given->early.n)
            http_conn_feed(c, given->early);
        return true;
    }
    return false;
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

void http_server_conn_gone(struct http_server *s)
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
    for (size_t i = 0; i < s->n_addresses; i++) {
        listener_close(s->addresses[i]->listener);
        tls_context_free(s->addresses[i]->tls);
        mem_free(s->addresses[i]);
    }
    mem_free(s->addresses);
    s->addresses = NULL;
    s->n_addresses = 0;

    LIST_EACH (&s->conns, it)
        http_conn_stop(LIST_ENTRY(it, struct http_conn, node));
    if (s->n_conns == 0)
        loop_defer(s->loop, &s->end, on_end);
}
