/*
 * news: what happens in the bridge, told on the bus, and approvals asked for there.
 *
 * Each happening becomes a message on mcp.event.KIND.ALIAS: who, what, how long, never arguments. A
 * call that waits for an operator is asked for on system.mcp.tool_approval_request, with its
 * arguments, for whoever must decide has to see them; the first answer on ..._response counts.
 *
 * Whoever makes one with `approvals` sees to it that the router's approver has an operator.
 *
 * Nouns: bus_news_.
 */
#ifndef RIALTO_ROCKBOT_NEWS_H
#define RIALTO_ROCKBOT_NEWS_H

#include "bus/bus.h"
#include "core/router.h"

struct bus_news;

struct bus_news_options {
    const char *source; /* who tells: "mcp-bridge.RockBot" */
    bool events;
    bool approvals;
};

/* `options` and its texts must outlive it. */
struct bus_news *bus_news_new(struct loop *loop, struct bus *bus, struct router *router,
                              const struct bus_news_options *options);
void bus_news_free(struct bus_news *n);

#endif
