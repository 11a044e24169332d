/* One MCP client on a socket: its first bytes are kept until the component's server has started,
 * then a stdio_agent takes the socket over. Called by cmd/conductor.c for each connection. */
#include "base/log.h"
#include "base/mem.h"
#include "hub/conductor_link.h"
#include "mcp/agent/modern.h"
#include "mcp/agent/stdio_agent.h"

/* How long the provider may take to start, and the last answer to be sent. */
enum { START_MS = 20 * 1000, FLUSH_MS = 1000 };
/* Maximum size of a message, and of everything a client may send before its server has started. */
enum { MAX_MESSAGE = 32 * 1024 * 1024, MAX_EARLY = 16 * 1024 * 1024 };

/* An MCP client on a socket, and the server that the client was given. */
struct joint {
    struct loop *loop;
    struct conductor_core *core;
    char *name;
    struct stream *stream;
    struct buf early;            /* what the client has sent, until `agent` gets it */
    bool at_eof;                 /* the client has closed its end */
    struct acp_channel *channel; /* NULL once the provider owns the channel, or when closed */
    struct lone *lone;           /* the server's provider; NULL before the channel is open */
    struct stdio_agent *agent;   /* NULL until the server has started */
    struct observer starting;    /* waits for the provider to be ready, up to `limit` */
    struct timer limit;
};

static void stop_waiting(struct joint *j)
{
    observer_remove(&j->starting);
    timer_clear(loop_timers(j->loop), &j->limit);
}

static void end_lone(struct joint *j)
{
    if (j->lone)
        lone_end(j->lone);
    j->lone = NULL;
}

static void joint_free(struct joint *j)
{
    stop_waiting(j);
    if (j->channel)
        acp_channel_close(j->channel);
    end_lone(j);
    conductor_core_release(j->core);
    buf_fini(&j->early);
    mem_free(j->name);
    mem_free(j);
}

static struct span first_line(const struct joint *j)
{
    struct span early = buf_view(&j->early);

    return span_cut(early, 0, span_find(early, '\n'));
}

/* Answer the client's first request with the reason, then close. */
static void give_up(struct joint *j, const char *why)
{
    struct rpc_message m;
    BUF_SCOPED text = {0};

    log_warn(j->name, "cannot be given to this MCP client: %s", why);
    stop_waiting(j);
    if (rpc_skim(first_line(j), NULL, NULL, NULL, 0, &m) == 0 && m.kind == RPC_REQUEST) {
        buf_printf(&text, "server '%s' is not available: %s", j->name, why);
        rpc_put_error(stream_out(j->stream), m.id, RPC_INTERNAL_ERROR, buf_view(&text), SPAN_EMPTY);
        buf_char(stream_out(j->stream), '\n');
        stream_wrote(j->stream);
    }
    end_lone(j);
    stream_finish(j->stream, why, FLUSH_MS);
}

/* --- handing the client to an agent --- */

static void agent_closed(void *arg)
{
    struct joint *j = arg;

    j->agent = NULL;
    joint_free(j);
}

static void on_starting(struct observer *o)
{
    struct joint *j = CONTAINER_OF(o, struct joint, starting);
    const struct provider *p = lone_provider(j->lone);

    if (p->state == PROVIDER_READY) {
        stop_waiting(j);
        const struct mcp_host host = lone_host(j->lone);
        j->agent = stdio_agent_new(j->loop, j->stream, &host, MAX_MESSAGE, agent_closed, j);
        stream_resume(j->stream);
        stdio_agent_feed(j->agent, buf_view(&j->early), j->at_eof);
        buf_reset(&j->early, 0);
    } else if (p->state == PROVIDER_BACKOFF || p->state == PROVIDER_DOWN || p->why) {
        BUF_SCOPED why = {0}; /* the provider's text goes when the provider is stopped */
        buf_str(&why, p->why ? p->why : "it has ended");
        give_up(j, buf_cstr(&why));
    }
}

static void on_limit(struct timer *t)
{
    give_up(CONTAINER_OF(t, struct joint, limit), "it did not start in time");
}

/* --- the server --- */

static void link_closed(void *arg)
{
    struct joint *j = arg;

    if (!j->agent)
        return; /* on_starting sees the provider's state */
    /* The provider stays until the agent is gone, but must not be started again. */
    provider_unwant(lone_provider(j->lone));
    stdio_agent_close(j->agent, "the server's component closed the connection");
}

/*
 * A client whose connection broke comes back in the middle of its session, but the server has a new
 * connection and expects initialize first. So initialize is sent again for the client; the answer
 * has an id that the client never used, and clients ignore such answers.
 */
static void greet_again(struct joint *j)
{
    struct mcp_message first;
    struct span greeting = acp_channel_greeting(j->channel);
    struct buf early = {0};

    if (mcp_skim(first_line(j), &first) || !first.rpc.method.p || modern_claims(&first) ||
        rpc_method_is(&first.rpc, "ping"))
        return;
    if (rpc_method_is(&first.rpc, "initialize")) {
        acp_channel_set_greeting(j->channel, first.rpc.params);
    } else if (greeting.n) {
        buf_str(&early, "{\"jsonrpc\":\"2.0\",\"id\":\"rialto-again\",\"method\":\"initialize\","
                        "\"params\":");
        buf_span(&early, greeting);
        buf_str(&early, "}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        buf_span(&early, buf_view(&j->early));
        buf_fini(&j->early);
        j->early = early;
    }
}

/* The server's dialect is known now: if client and server are of the same era, messages pass
 * untranslated. */
static void channel_opened(void *owner)
{
    struct joint *j = owner;
    const struct channel_link_owner link_owner = {j, link_closed};
    struct mcp_message first;
    struct acp_channel *channel = j->channel;

    greet_again(j);
    bool modern = mcp_skim(first_line(j), &first) == 0 && modern_claims(&first);

    j->channel = NULL;
    stream_pause(j->stream);
    j->lone = lone_new(j->core, j->name, NULL, channel, &link_owner);
    if (modern == acp_channel_is_modern(channel))
        lone_set_plain(j->lone);
    else
        lone_declare(j->lone, first_line(j));
    provider_want(lone_provider(j->lone));
    observers_add(router_observers(lone_provider(j->lone)->router), &j->starting);
    timer_set(loop_timers(j->loop), &j->limit, START_MS);
}

/* No message comes before the channel is open, and then the provider owns the channel. */
static void channel_message(void *owner, struct span text, struct span about)
{
    (void)owner, (void)text, (void)about;
}

static void channel_closed(void *owner, const char *why)
{
    struct joint *j = owner;

    j->channel = NULL;
    give_up(j, why);
}

static const struct channel_events channel_events = {channel_opened, channel_message,
                                                     channel_closed};

/* --- the socket, until an agent takes it over --- */

static void stream_data(void *owner, struct span chunk)
{
    struct joint *j = owner;

    if (j->early.n + chunk.n > MAX_EARLY) {
        stream_close(j->stream, "too much came before the MCP connection was open");
        return;
    }
    buf_span(&j->early, chunk);
    if (j->channel && memchr(chunk.p, '\n', chunk.n))
        acp_channel_open(j->channel);
}

static void stream_eof(void *owner)
{
    struct joint *j = owner;

    j->at_eof = true;
    if (!j->early.n)
        stream_finish(j->stream, "the MCP client closed its end", FLUSH_MS);
    else if (j->channel)
        acp_channel_open(j->channel); /* the last line may lack its line end */
}

static void stream_closed(void *owner, const char *reason)
{
    struct joint *j = owner;

    log_debug(j->name, "bridge closed: %s", reason);
    joint_free(j);
}

static const struct stream_events stream_events = {
    .data = stream_data, .eof = stream_eof, .closed = stream_closed};

void conductor_join(struct conductor_core *core, struct acp_server *server, struct stream *stream,
                    struct span early)
{
    struct joint *j = MEM_NEW(struct joint);

    conductor_core_hold(core);
    j->core = core;
    j->loop = conductor_core_loop(core);
    j->name = mem_str(channel_server_name(server));
    j->stream = stream;
    j->starting.changed = on_starting;
    j->limit.fire = on_limit;
    j->channel = acp_channel_new(server, &channel_events, j);
    stream_start(stream, &stream_events, j);
    stream_resume(stream);
    if (early.n)
        stream_data(j, early);
}
