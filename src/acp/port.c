/* Opens a loopback port or an HTTP address for a declared server, lets clients in that show the
 * secret of a port, and writes the members that tell the agent the address. Called by setup.c, and
 * by conductor.c at the end. */
#include "acp/port.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

enum bridge_kind port_kind(const struct conductor *c)
{
    enum bridge_mode mode = c->options.bridge;

    if (c->takes_stdio && (mode != BRIDGE_HTTP || !c->takes_http))
        return BRIDGED_STDIO;
    return c->takes_http && mode != BRIDGE_STDIO ? BRIDGED_HTTP : BRIDGED_NOT;
}

/* --- ports --- */

/* How long a client may take to show the secret, how many bytes the client may send before that,
 * and how many clients without the secret there may be at a time. */
enum { SECRET_MS = 10 * 1000, SECRET_MAX = 64 * 1024, UNPROVEN_MAX = 256, FLUSH_MS = 1000 };

#define SECRET_NAME "RIALTO_BRIDGE_AUTH"
/* The redactor hides the word after "Bearer " wherever it appears. */
#define SECRET_PREFIX "Bearer "

/* A client at a port that has not shown the secret yet. */
struct unproven {
    struct list node; /* in the conductor, until dropped */
    struct conductor *c;
    struct loop *loop;
    const struct bridge_port *port;
    struct acp_server *server; /* NULL: the host's own server */
    struct stream *stream;
    struct buf said;
    struct timer limit;
};

static void unproven_free(struct unproven *u)
{
    if (!list_empty(&u->node))
        u->c->n_unproven--;
    list_remove(&u->node);
    timer_clear(loop_timers(u->loop), &u->limit);
    buf_fini(&u->said);
    mem_free(u);
}

static void let_in(struct conductor *c, struct acp_server *server, struct stream *stream,
                   struct span early)
{
    if (server)
        c->host.accept(c->host.arg, server, stream, early);
    else
        c->host.extra_accept(c->host.arg, stream, early);
}

/* Say what is missing: for a person who tries the port by hand, and for an agent that starts
 * servers without their environment. */
static void turn_away(struct unproven *u, struct span line)
{
    struct rpc_message m;

    log_line(log_seldom(&u->c->told_secret, loop_now(u->loop)),
             u->server ? u->server->name : u->c->host.extra_name,
             "refused a connection to the port of this MCP server: it did not show the secret");
    if (rpc_skim(line, NULL, NULL, NULL, 0, &m) == 0 && m.kind == RPC_REQUEST) {
        rpc_put_error(stream_out(u->stream), m.id, RPC_INVALID_REQUEST,
                      SPAN("this port wants the value of " SECRET_NAME " on the first line, which "
                           "the server's entry has in `env`; `conductor --open-port` leaves it "
                           "out"),
                      SPAN_EMPTY);
        buf_char(stream_out(u->stream), '\n');
        stream_wrote(u->stream);
    }
    stream_pause(u->stream);
    stream_finish(u->stream, "no secret", FLUSH_MS);
}

static void unproven_data(void *owner, struct span chunk)
{
    struct unproven *u = owner;
    BUF_SCOPED wanted = {0}, said = {0};

    buf_span(&u->said, chunk);
    size_t end = span_find(buf_view(&u->said), '\n');
    if (end == u->said.n) {
        if (u->said.n > SECRET_MAX)
            stream_close(u->stream, "no secret");
        return;
    }
    struct span line = span_cut(buf_view(&u->said), 0, end);
    buf_printf(&wanted, SECRET_PREFIX "%s", u->port->secret);
    if (!span_eq_secret(line, buf_view(&wanted))) {
        turn_away(u, line);
        return;
    }
    struct conductor *c = u->c;
    struct acp_server *server = u->server;
    struct stream *stream = u->stream;
    buf_span(&said, span_from(buf_view(&u->said), end + 1));
    unproven_free(u);
    stream_pause(stream);
    let_in(c, server, stream, buf_view(&said));
}

/* Close the connection of a client that has not shown the secret. */
static void unproven_drop(struct unproven *u, const char *why)
{
    list_remove(&u->node);
    u->c->n_unproven--;
    stream_close(u->stream, why);
}

static void unproven_closed(void *owner, const char *reason)
{
    (void)reason;
    unproven_free(owner);
}

static void unproven_late(struct timer *t)
{
    stream_close(CONTAINER_OF(t, struct unproven, limit)->stream, "no secret");
}

static void client_came(struct conductor *c, const struct bridge_port *port,
                        struct acp_server *server, struct stream *stream)
{
    static const struct stream_events events = {.data = unproven_data, .closed = unproven_closed};

    if (c->options.open_port) {
        let_in(c, server, stream, SPAN_EMPTY);
        return;
    }
    struct unproven *u = MEM_NEW(struct unproven);
    u->c = c;
    u->loop = c->loop;
    u->port = port;
    u->server = server;
    u->stream = stream;
    u->limit.fire = unproven_late;
    list_append(&c->unproven, &u->node);
    c->n_unproven++;
    timer_set(loop_timers(c->loop), &u->limit, SECRET_MS);
    stream_start(stream, &events, u);
    /* Drop the oldest: a client that has the secret shows it at once. */
    if (c->n_unproven > UNPROVEN_MAX)
        unproven_drop(LIST_FIRST(&c->unproven, struct unproven, node),
                      "too many without the secret");
}

static void on_accept(void *owner, struct stream *stream)
{
    struct acp_server *s = owner;

    client_came(s->setup->c, &s->port, s, stream);
}

static void on_accept_extra(void *owner, struct stream *stream)
{
    struct conductor *c = owner;

    client_came(c, &c->extra, NULL, stream);
}

static int port_open(struct conductor *c, struct bridge_port *port, listen_accept_fn *accept,
                     void *owner, const char *name)
{
    struct err err;

    if (port->listener)
        return 0;
    id_token(port->secret);
    port->listener = listener_open(c->loop, "127.0.0.1:0", accept, owner, &err);
    if (!port->listener)
        log_error(name, "%s", err.text);
    return port->listener ? 0 : ERR_PROTOCOL;
}

static void port_close(struct conductor *c, struct bridge_port *port)
{
    if (port->listener)
        listener_close(port->listener);
    port->listener = NULL;
    LIST_EACH_SAFE (&c->unproven, it) {
        struct unproven *u = LIST_ENTRY(it, struct unproven, node);
        if (u->port == port)
            unproven_drop(u, "the port is closed");
    }
}

/* --- addresses --- */

int port_offer(struct acp_server *s)
{
    struct conductor *c = s->setup->c;

    if (port_kind(c) == BRIDGED_HTTP)
        return c->host.http_open(c->host.arg, s, &s->place, &s->http) ? 0 : ERR_PROTOCOL;
    return port_open(c, &s->port, on_accept, s, s->name);
}

void port_withdraw(struct acp_server *s)
{
    struct conductor *c = s->setup->c;

    port_close(c, &s->port);
    if (s->http)
        c->host.http_close(c->host.arg, s->http);
    s->http = NULL;
}

/* A member with one pair of name and value: an object where servers are one, else a list. */
static void put_pair(struct buf *out, const char *member, bool map, const char *name,
                     const char *prefix, const char *value)
{
    BUF_SCOPED whole = {0};

    buf_printf(&whole, "%s%s", prefix, value);
    json_out_open(out, member, map ? '{' : '[');
    if (!map) {
        json_out_open(out, NULL, '{');
        json_out_str(out, "name", name);
    }
    json_out_text(out, map ? name : "value", buf_view(&whole));
    buf_str(out, map ? "}" : "}]");
}

static void put_stdio(struct buf *out, const struct conductor *c, const struct bridge_port *port,
                      bool map)
{
    const char *const *shim = c->options.shim;

    if (map || c->version >= 2)
        json_out_str(out, map ? "transport" : "type", "stdio");
    json_out_str(out, "command", shim[0]);
    json_out_open(out, "args", '[');
    for (size_t i = 1; shim[i]; i++)
        json_out_str(out, NULL, shim[i]);
    json_out(out, NULL);
    buf_printf(out, "\"%d\"]", listener_port(port->listener));
    if (!c->options.open_port)
        put_pair(out, "env", map, SECRET_NAME, SECRET_PREFIX, port->secret);
    else if (!map)
        json_out_raw(out, "env", SPAN("[]"));
}

static void put_http(struct buf *out, const struct acp_http_place *place, bool map)
{
    json_out_str(out, map ? "transport" : "type", "http");
    json_out_str(out, "url", place->url);
    put_pair(out, "headers", map, "Authorization", "Bearer ", place->token);
}

void port_put_members(struct buf *out, const struct acp_server *s, bool map)
{
    if (s->port.listener)
        put_stdio(out, s->setup->c, &s->port, map);
    else
        put_http(out, &s->place, map);
}

/* --- the host's own server --- */

int port_put_extra(struct conductor *c, struct buf *out, struct span name, bool map)
{
    enum bridge_kind kind = port_kind(c);
    struct acp_http_place place;

    if (kind == BRIDGED_NOT)
        return ERR_PROTOCOL;
    if (kind == BRIDGED_STDIO && port_open(c, &c->extra, on_accept_extra, c, c->options.name))
        return ERR_PROTOCOL;
    if (kind == BRIDGED_HTTP && !c->host.extra_http(c->host.arg, &place))
        return ERR_PROTOCOL;
    buf_str(out, map ? "" : "{\"name\":");
    buf_span(out, name);
    buf_str(out, map ? ":{" : "");
    if (kind == BRIDGED_STDIO)
        put_stdio(out, c, &c->extra, map);
    else
        put_http(out, &place, map);
    buf_char(out, '}');
    return 0;
}

void port_close_extra(struct conductor *c)
{
    port_close(c, &c->extra);
}
