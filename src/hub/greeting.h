/*
 * greeting: how long the answer to an agent's first request waits for servers that were never up
 * before: hosts that start us ask for lists only once (docs/decisions/006-remembered-lists.md).
 *
 * Embedded by the owner of an agent on a pipe. Lists themselves never wait.
 */
#ifndef RIALTO_HUB_GREETING_H
#define RIALTO_HUB_GREETING_H

#include "hub/graph/bridge.h"
#include "mcp/agent/stdio_agent.h"

/* When the host does not say how long. */
enum { GREETING_WAIT_MS = 2000 };

struct held_greeting {
    struct bridge *bridge;
    struct loop *loop;
    struct stdio_agent *agent; /* NULL: nothing waits */
    struct observer servers;
    struct timer patience;
};

/* Hold the agent's greeting for at most `wait` ms. To be called before its first byte is read. */
void greeting_hold(struct held_greeting *g, struct loop *loop, struct bridge *bridge,
                   struct stdio_agent *agent, uint64_t wait);
/* The agent is closed. */
void greeting_forget(struct held_greeting *g);

#endif
