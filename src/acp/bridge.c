/* Opens a loopback port or an HTTP place for a declared server, and writes the members that tell
 * the agent where. Called by setup.c, and by conductor.c at the end. */
#include "acp/bridge.h"

#include "base/log.h"
#include "base/mem.h"

enum bridge_kind bridge_kind(const struct conductor *c)
{
    enum bridge_mode mode = c->options.bridge;

    if (c->takes_stdio && (mode != BRIDGE_HTTP || !c->takes_http))
        return BRIDGED_STDIO;
    return c->takes_http && mode != BRIDGE_STDIO ? BRIDGED_HTTP : BRIDGED_NOT;
}

/* --- addresses --- */

static void on_accept(void *owner, struct stream *stream)
{
    struct acp_server *s = owner;
    struct conductor *c = s->setup->c;

    c->host.accept(c->host.arg, s, stream);
}

int bridge_offer(struct acp_server *s)
{
    struct conductor *c = s->setup->c;
    struct err err;

    if (bridge_kind(c) == BRIDGED_HTTP)
        return c->host.http_open(c->host.arg, s, &s->place, &s->http) ? 0 : ERR_PROTOCOL;
    s->listener = listener_open(c->loop, "127.0.0.1:0", on_accept, s, &err);
    if (!s->listener)
        log_error(s->name, "%s", err.text);
    return s->listener ? 0 : ERR_PROTOCOL;
}

void bridge_withdraw(struct acp_server *s)
{
    struct conductor *c = s->setup->c;

    if (s->listener)
        listener_close(s->listener);
    s->listener = NULL;
    if (s->http)
        c->host.http_close(c->host.arg, s->http);
    s->http = NULL;
}

static void put_stdio(struct buf *out, const struct conductor *c, int port, bool map)
{
    const char *const *shim = c->options.shim;

    if (map)
        buf_str(out, "\"transport\":\"stdio\",");
    else if (c->version >= 2)
        buf_str(out, "\"type\":\"stdio\",");
    buf_str(out, "\"command\":");
    json_quote(out, span_str(shim[0]));
    buf_str(out, ",\"args\":[");
    for (size_t i = 1; shim[i]; i++) {
        json_quote(out, span_str(shim[i]));
        buf_char(out, ',');
    }
    buf_printf(out, "\"%d\"]", port);
    if (!map)
        buf_str(out, ",\"env\":[]");
}

static void put_http(struct buf *out, const struct acp_http_place *place, bool map)
{
    buf_printf(out, "\"%s\":\"http\",\"url\":\"%s\",\"headers\":", map ? "transport" : "type",
               place->url);
    if (map)
        buf_printf(out, "{\"Authorization\":\"Bearer %s\"}", place->token);
    else
        buf_printf(out, "[{\"name\":\"Authorization\",\"value\":\"Bearer %s\"}]", place->token);
}

void bridge_put_members(struct buf *out, const struct acp_server *s, bool map)
{
    if (s->listener)
        put_stdio(out, s->setup->c, listener_port(s->listener), map);
    else
        put_http(out, &s->place, map);
}

/* --- the host's own server --- */

static void on_accept_extra(void *owner, struct stream *stream)
{
    struct conductor *c = owner;

    c->host.extra_accept(c->host.arg, stream);
}

int bridge_put_extra(struct conductor *c, struct buf *out, struct span name, bool map)
{
    enum bridge_kind kind = bridge_kind(c);
    struct acp_http_place place;
    struct err err;

    if (kind == BRIDGED_NOT)
        return ERR_PROTOCOL;
    if (kind == BRIDGED_STDIO && !c->extra) {
        c->extra = listener_open(c->loop, "127.0.0.1:0", on_accept_extra, c, &err);
        if (!c->extra) {
            log_error(c->options.name, "%s", err.text);
            return ERR_PROTOCOL;
        }
    }
    if (kind == BRIDGED_HTTP && !c->host.extra_http(c->host.arg, &place))
        return ERR_PROTOCOL;
    buf_str(out, map ? "" : "{\"name\":");
    buf_span(out, name);
    buf_str(out, map ? ":{" : ",");
    if (kind == BRIDGED_STDIO)
        put_stdio(out, c, listener_port(c->extra), map);
    else
        put_http(out, &place, map);
    buf_char(out, '}');
    return 0;
}

void bridge_close_extra(struct conductor *c)
{
    if (c->extra)
        listener_close(c->extra);
    c->extra = NULL;
}
