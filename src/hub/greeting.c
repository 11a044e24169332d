/* Holds the greeting of an agent on a pipe until every server is known, or for a time. Called by
 * shims.c and by cmd/stdio.c. */
#include "hub/greeting.h"

#include "base/mem.h"

void greeting_forget(struct held_greeting *g)
{
    if (!g->agent)
        return;
    g->agent = NULL;
    observer_remove(&g->servers);
    timer_clear(loop_timers(g->loop), &g->patience);
}

static void release(struct held_greeting *g)
{
    struct stdio_agent *agent = g->agent;

    greeting_forget(g);
    stdio_agent_release(agent);
}

static void on_servers(struct observer *o)
{
    struct held_greeting *g = CONTAINER_OF(o, struct held_greeting, servers);

    if (bridge_is_known(g->bridge))
        release(g);
}

static void on_patience(struct timer *t)
{
    release(CONTAINER_OF(t, struct held_greeting, patience));
}

void greeting_hold(struct held_greeting *g, struct loop *loop, struct bridge *bridge,
                   struct stdio_agent *agent, uint64_t wait)
{
    *g = (struct held_greeting){.bridge = bridge,
                                .loop = loop,
                                .agent = agent,
                                .servers.changed = on_servers,
                                .patience.fire = on_patience};
    stdio_agent_hold_greeting(agent);
    observers_add(router_observers(bridge_router(bridge)), &g->servers);
    timer_set(loop_timers(loop), &g->patience, wait);
}
