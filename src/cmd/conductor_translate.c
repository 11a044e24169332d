#include "base/log.h"
#include "base/mem.h"
#include "cmd/conductor_link.h"
#include "mcp/stdio_agent.h"
#include "wire/rpc.h"

/* How often the provider is looked at while it starts, and how long it may take. */
enum { LOOK_MS = 5, START_MS = 20 * 1000, MAX_MESSAGE = 32 * 1024 * 1024, FLUSH_MS = 1000 };

/* An MCP client and an MCP server of different eras, with the core between them. */
struct translation {
    struct loop *loop;
    struct conductor_core *core;
    struct lone *lone; /* NULL once it was told to end */
    struct stream *stream;
    struct stdio_agent *agent; /* NULL until the server is up */
    struct buf early;
    bool at_eof; /* ... is all there is */
    struct timer look;
    uint64_t until;
    char *name;
};

static void end_lone(struct translation *t)
{
    if (t->lone)
        lone_end(t->lone);
    t->lone = NULL;
}

static void translation_free(struct translation *t)
{
    timer_clear(loop_timers(t->loop), &t->look);
    end_lone(t);
    buf_fini(&t->early);
    mem_free(t->name);
    mem_free(t);
}

static void agent_closed(void *arg)
{
    struct translation *t = arg;

    t->agent = NULL;
    translation_free(t);
}

static void stream_closed(void *owner, const char *reason)
{
    (void)reason;
    translation_free(owner);
}

static void stream_data(void *owner, struct span chunk)
{
    struct translation *t = owner;

    buf_span(&t->early, chunk);
}

/* While the server is starting. */
static const struct stream_events waiting_events = {.data = stream_data, .closed = stream_closed};

/* The client's first request is answered with the reason; then it is over. */
static void give_up(struct translation *t, const char *why)
{
    struct span early = buf_view(&t->early);
    struct rpc_message m;
    struct buf text = {0};

    log_warn(t->name, "cannot translate for this MCP client: %s", why);
    if (rpc_skim(span_cut(early, 0, span_find(early, '\n')), NULL, NULL, NULL, 0, &m) == 0 &&
        m.kind == RPC_REQUEST) {
        buf_printf(&text, "server '%s' is not available: %s", t->name, why);
        rpc_put_error(stream_out(t->stream), m.id, RPC_INTERNAL_ERROR, buf_view(&text), SPAN_EMPTY);
        buf_char(stream_out(t->stream), '\n');
        stream_wrote(t->stream);
        buf_fini(&text);
    }
    end_lone(t);
    stream_finish(t->stream, why, FLUSH_MS);
}

static void on_look(struct timer *timer)
{
    struct translation *t = CONTAINER_OF(timer, struct translation, look);
    struct provider *p = lone_provider(t->lone);

    if (p->state == PROVIDER_READY) {
        const struct mcp_host host = {.router = conductor_core_router(t->core),
                                      .view = lone_view(t->lone)};
        t->agent = stdio_agent_new(t->loop, t->stream, &host, MAX_MESSAGE, agent_closed, t);
        stream_resume(t->stream);
        stdio_agent_feed(t->agent, buf_view(&t->early), t->at_eof);
        buf_reset(&t->early, 0);
    } else if (p->state == PROVIDER_BACKOFF || p->state == PROVIDER_DOWN || p->why[0]) {
        give_up(t, p->why[0] ? p->why : "it has ended");
    } else if (loop_now(t->loop) > t->until) {
        give_up(t, "it did not start in time");
    } else {
        timer_set(loop_timers(t->loop), &t->look, LOOK_MS);
    }
}

static void channel_closed(void *arg)
{
    struct translation *t = arg;

    if (!t->agent)
        return; /* the next look at the provider tells */
    /* It stays until the agent is gone, but is not to be started again. */
    provider_unwant(lone_provider(t->lone));
    stdio_agent_close(t->agent, "the server's component closed the connection");
}

void conductor_translate(void *core, struct acp_channel *channel, struct stream *stream,
                         struct span early, bool at_eof)
{
    struct translation *t = MEM_NEW(struct translation);
    const struct channel_link_owner owner = {t, channel_closed};

    t->core = core;
    t->loop = conductor_core_loop(core);
    t->stream = stream;
    t->name = mem_str(acp_channel_name(channel));
    t->look.fire = on_look;
    t->until = loop_now(t->loop) + START_MS;
    buf_span(&t->early, early);
    t->at_eof = at_eof;
    stream_rebind(stream, &waiting_events, t);
    t->lone = lone_new(core, t->name, NULL, channel, &owner);
    lone_declare(t->lone, span_cut(early, 0, span_find(early, '\n')));
    provider_want(lone_provider(t->lone));
    timer_set(loop_timers(t->loop), &t->look, LOOK_MS);
}
