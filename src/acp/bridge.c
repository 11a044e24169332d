#include "acp/bridge.h"

#include "base/log.h"
#include "base/mem.h"

/* How long answers may still take once the client has closed its end, and to write them. */
enum { DRAIN_MS = 5000, FLUSH_MS = 1000, EARLY_MAX = 16 * 1024 * 1024 };

/* One accepted connection: an MCP client of the agent, by way of `conductor mcp`. */
struct pipe {
    struct list node; /* in the server; on no list once that is gone */
    struct loop *loop;
    struct conductor *c; /* valid while the channel is */
    char *name;
    struct stream *stream;
    struct acp_channel *channel; /* NULL once closed */
    struct buf early;            /* what came before the channel was open */
    struct lines lines;
    bool relaying, at_eof;
    struct timer drain;
};

enum bridge_kind bridge_kind(const struct conductor *c)
{
    enum bridge_mode mode = c->options.bridge;

    if (c->takes_stdio && mode != BRIDGE_HTTP)
        return BRIDGED_STDIO;
    return c->takes_http && mode != BRIDGE_STDIO ? BRIDGED_HTTP : BRIDGED_NOT;
}

/* --- the pipe --- */

static void pipe_message(void *owner, struct span text, struct span about)
{
    struct pipe *p = owner;

    (void)about;
    struct buf *out = stream_out(p->stream);
    json_one_line(out, text);
    buf_char(out, '\n');
    stream_wrote(p->stream);
    if (p->at_eof && acp_channel_pending(p->channel) == 0)
        timer_set(loop_timers(p->loop), &p->drain, 0);
}

static void pipe_closed(void *owner, const char *why)
{
    struct pipe *p = owner;

    p->channel = NULL;
    lines_stop(&p->lines);
    if (p->c->state == CHAIN_ENDING)
        stream_close(p->stream, why);
    else
        stream_finish(p->stream, why, FLUSH_MS);
}

static void on_line(void *owner, struct span line)
{
    struct pipe *p = owner;

    if (p->channel && !acp_channel_send(p->channel, line))
        log_warn(p->name, "the MCP client sent a line that is no message: " SPAN_FMT,
                 SPAN_ARG(span_cut(line, 0, 120)));
}

static void on_too_long(void *owner, struct span head)
{
    struct pipe *p = owner;

    log_warn(p->name, "the MCP client sent a message that is too long; it began " SPAN_FMT,
             SPAN_ARG(span_cut(head, 0, 80)));
}

static const struct lines_events line_events = {on_line, on_too_long};

static void pipe_free(struct pipe *p)
{
    timer_clear(loop_timers(p->loop), &p->drain);
    list_remove(&p->node);
    lines_fini(&p->lines);
    buf_fini(&p->early);
    mem_free(p->name);
    mem_free(p);
}

/* Of which era is a client that begins like this? */
static bool begins_modern(struct span line)
{
    struct rpc_message m;

    if (rpc_skim(line, NULL, NULL, NULL, 0, &m) || m.kind != RPC_REQUEST || !m.params.n)
        return false;
    struct json_slot meta = json_get(m.params, "_meta");
    return meta.type == JSON_OBJECT &&
           json_get(meta.value, "io.modelcontextprotocol/protocolVersion").type == JSON_STRING;
}

static void pipe_opened(void *owner)
{
    struct pipe *p = owner;
    struct span early = buf_view(&p->early);
    struct span first = span_cut(early, 0, span_find(early, '\n'));

    if (begins_modern(first) != acp_channel_is_modern(p->channel)) {
        stream_pause(p->stream);
        p->c->host.translate(p->c->host.arg, p->channel, p->stream, early, p->at_eof);
        pipe_free(p);
        return;
    }
    p->relaying = true;
    lines_feed(&p->lines, early, &line_events, p);
    buf_reset(&p->early, 0);
    if (p->at_eof)
        lines_end(&p->lines, &line_events, p);
}

static const struct channel_events pipe_channel_events = {pipe_opened, pipe_message, pipe_closed};

static void on_data(void *owner, struct span chunk)
{
    struct pipe *p = owner;

    if (p->relaying) {
        lines_feed(&p->lines, chunk, &line_events, p);
        return;
    }
    if (p->early.n + chunk.n > EARLY_MAX) {
        stream_close(p->stream, "too much came before the MCP connection was open");
        return;
    }
    buf_span(&p->early, chunk);
    if (p->channel && memchr(chunk.p, '\n', chunk.n))
        acp_channel_open(p->channel); /* may free the pipe */
}

static void on_eof(void *owner)
{
    struct pipe *p = owner;

    p->at_eof = true;
    if (p->relaying)
        lines_end(&p->lines, &line_events, p);
    bool idle = !p->channel || (acp_channel_pending(p->channel) == 0 && !p->early.n);
    timer_set(loop_timers(p->loop), &p->drain, idle ? 0 : DRAIN_MS);
}

static void on_drained(struct timer *t)
{
    struct pipe *p = CONTAINER_OF(t, struct pipe, drain);

    stream_finish(p->stream, "the MCP client closed its end", FLUSH_MS);
}

static void on_closed(void *owner, const char *reason)
{
    struct pipe *p = owner;

    log_debug(p->name, "bridge closed: %s", reason);
    if (p->channel)
        acp_channel_close(p->channel);
    pipe_free(p);
}

static const struct stream_events pipe_stream_events = {
    .data = on_data, .eof = on_eof, .closed = on_closed};

static void on_accept(void *owner, struct stream *stream)
{
    struct acp_server *s = owner;
    struct pipe *p = MEM_NEW(struct pipe);

    p->c = s->setup->c;
    p->loop = p->c->loop;
    p->name = mem_str(s->name);
    p->stream = stream;
    p->drain.fire = on_drained;
    lines_init(&p->lines, HOP_MAX_MESSAGE);
    list_init(&p->node);
    list_append(&s->pipes, &p->node);
    p->channel = acp_channel_new(s, &pipe_channel_events, p);
    stream_start(stream, &pipe_stream_events, p);
}

/* --- addresses --- */

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
    /* The pipes end by themselves when their channels are closed. */
    LIST_EACH_SAFE (&s->pipes, it)
        list_remove(it);
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

int bridge_put_extra(struct conductor *c, struct buf *out, bool map)
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
    if (map) {
        json_quote(out, span_str(c->host.extra_name));
        buf_str(out, ":{");
    } else {
        buf_str(out, "{\"name\":");
        json_quote(out, span_str(c->host.extra_name));
        buf_char(out, ',');
    }
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
