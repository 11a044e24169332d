/* Agents by WebSocket: accepted up to a limit, messages in and out, all closed at the end. Called
 * by endpoint.c. */
#include "mcp/agent/ws_agent.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/agent/duplex.h"

/* How far a reader may fall behind, in bytes, and how long closing may take. */
enum { READER_MAX = 16 * 1024 * 1024, GOODBYE_MS = 800 };

struct ws_agents {
    struct loop *loop;
    struct mcp_host host;
    struct ws_agents_options options;
    struct list agents;
    size_t n;
    struct timer goodbye; /* while closing: cuts agents that have not closed */
    struct deferred end;
    void (*closed)(void *arg);
    void *arg;
};

struct ws_agent {
    struct ws_agents *all;
    struct list node;
    struct ws *ws;
    struct duplex *duplex; /* NULL once the connection is over */
};

/* --- messages --- */

static struct buf *out_begin(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct ws_agent *a = owner;

    (void)reply, (void)kind;
    return ws_begin(a->ws);
}

static void out_end(void *owner, void *reply, enum mcp_out_kind kind)
{
    struct ws_agent *a = owner;

    (void)reply, (void)kind;
    ws_end(a->ws, WS_TEXT);
}

static void out_abandon(void *owner, void *reply)
{
    (void)owner, (void)reply;
}

static void out_hang_up(void *owner)
{
    struct ws_agent *a = owner;

    ws_close(a->ws, 1001, "ended by the operator"); /* on_closed frees the agent later */
}

static const struct mcp_out out_ops = {out_begin, out_end, out_abandon, NULL, "ws", out_hang_up};

static void on_message(void *owner, enum ws_opcode op, struct span payload)
{
    struct ws_agent *a = owner;

    if (op == WS_TEXT)
        duplex_receive(a->duplex, payload);
    else
        ws_close(a->ws, 1003, "MCP messages are text frames");
}

/* --- the end --- */

static void on_end(struct deferred *d)
{
    struct ws_agents *all = CONTAINER_OF(d, struct ws_agents, end);

    timer_clear(loop_timers(all->loop), &all->goodbye);
    all->closed(all->arg);
    mem_free(all);
}

static void end_duplex(struct ws_agent *a)
{
    if (a->duplex)
        duplex_free(a->duplex);
    a->duplex = NULL;
}

static void on_closed(void *owner, uint16_t code, const char *reason)
{
    struct ws_agent *a = owner;
    struct ws_agents *all = a->all;

    log_debug("mcp", "an agent on a WebSocket left: %u %s", code, reason);
    end_duplex(a);
    list_remove(&a->node);
    mem_free(a);
    all->n--;
    if (all->closed && all->n == 0)
        loop_defer(all->loop, &all->end, on_end);
}

static const struct ws_events events = {.message = on_message, .closed = on_closed};

static void on_goodbye(struct timer *t)
{
    struct ws_agents *all = CONTAINER_OF(t, struct ws_agents, goodbye);

    LIST_EACH (&all->agents, it)
        ws_abort(LIST_ENTRY(it, struct ws_agent, node)->ws, "no time left");
}

void ws_agents_close(struct ws_agents *all, const char *why, void (*closed)(void *arg), void *arg)
{
    all->closed = closed;
    all->arg = arg;
    LIST_EACH (&all->agents, it) {
        struct ws_agent *a = LIST_ENTRY(it, struct ws_agent, node);
        end_duplex(a);
        ws_close(a->ws, 1001, why);
    }
    timer_set(loop_timers(all->loop), &all->goodbye, GOODBYE_MS);
    if (all->n == 0)
        loop_defer(all->loop, &all->end, on_end);
}

/* --- the beginning --- */

struct ws_agents *ws_agents_new(struct loop *loop, const struct mcp_host *host,
                                const struct ws_agents_options *options)
{
    struct ws_agents *all = MEM_NEW(struct ws_agents);

    all->loop = loop;
    all->host = *host;
    all->options = *options;
    all->goodbye.fire = on_goodbye;
    list_init(&all->agents);
    return all;
}

void ws_agents_accept(struct ws_agents *all, struct http_exchange *x,
                      const struct http_request *req)
{
    static const char *const protocols[] = {"mcp", NULL};
    const struct ws_options options = {.max_message = all->options.max_message,
                                       .queue_limit = all->options.max_message + READER_MAX,
                                       .ping_every = WS_PING_MS};

    if (all->n >= all->options.max_agents) {
        http_refuse(x, 503, "too many sessions",
                    "try again later, or raise limits.sessions in the configuration");
        return;
    }
    struct ws_agent *a = MEM_NEW(struct ws_agent);
    a->ws = ws_accept(all->loop, x, req, protocols, &options, &events, a);
    if (!a->ws) {
        mem_free(a);
        return;
    }
    a->all = all;
    a->duplex = duplex_new(&all->host, &out_ops, a);
    list_append(&all->agents, &a->node);
    all->n++;
    log_debug("mcp", "an agent came by WebSocket from %s", ws_peer(a->ws));
}

size_t ws_agents_count(const struct ws_agents *all)
{
    return all->n;
}
