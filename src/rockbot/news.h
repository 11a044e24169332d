/*
 * news: publishes the bridge's events on the bus, and asks there for approvals.
 *
 * Each event becomes a message on mcp.event.KIND.ALIAS: server, tool, duration, never arguments.
 * For a call that waits for an operator, a request goes to system.mcp.tool_approval_request, with
 * the arguments, because they are needed to decide; the first answer on ..._response counts.
 *
 * With `approvals` the caller must set an approver with an operator (hub/bus_role.c does).
 *
 * Nouns: bus_news_.
 */
#ifndef RIALTO_ROCKBOT_NEWS_H
#define RIALTO_ROCKBOT_NEWS_H

#include "bus/bus.h"
#include "core/router.h"

struct bus_news;

struct bus_news_options {
    const char *source; /* source of the messages: "mcp-bridge.RockBot" */
    bool events;
    bool approvals;
};

/* `options` and its texts must outlive the returned struct. */
struct bus_news *bus_news_new(struct loop *loop, struct bus *bus, struct router *router,
                              const struct bus_news_options *options);
void bus_news_free(struct bus_news *n);

#endif
