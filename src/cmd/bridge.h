/*
 * bridge: the graph that a configuration describes: router, providers, views.
 *
 * Every command that needs servers builds one: serve and stdio put agents before it, tools and call
 * ask it themselves. Without a configuration file it has the demo server that is in this program.
 */
#ifndef RIALTO_CMD_BRIDGE_H
#define RIALTO_CMD_BRIDGE_H

#include "config/config.h"
#include "core/router.h"
#include "io/loop.h"
#include "mcp/session.h"

struct bridge;

/* `c` must outlive the bridge. */
struct bridge *bridge_new(struct loop *loop, const struct config *c);
/* After bridge_stop has told that it is done. */
void bridge_free(struct bridge *b);

/* Start the servers that are to run always. */
void bridge_start(struct bridge *b);
/* Start the lazy ones too: somebody is here. */
void bridge_wake(struct bridge *b);
/* Stop every server; `done` is called from the loop when none is left. */
void bridge_stop(struct bridge *b, void (*done)(void *arg), void *arg);

struct router *bridge_router(const struct bridge *b);
/* All servers, names by the configured pattern; or what agents see in their place (`expose`). */
struct view *bridge_view(const struct bridge *b);
/* All servers and all their tools, however they are exposed. */
struct view *bridge_full_view(const struct bridge *b);
/* One server with its own names; NULL when there is none of that name. */
struct view *bridge_server_view(const struct bridge *b, struct span alias);
/* One more provider that all see, which is not the bridge's to start and to stop. */
void bridge_admit(struct bridge *b, struct provider *p);
/* What an agent that sees this view needs. */
struct mcp_host bridge_host(struct bridge *b, struct view *v);

/* The n-th server in config order, NULL past the end. */
struct provider *bridge_provider(const struct bridge *b, size_t n);
/* Has every started server come up or failed at least once? */
bool bridge_settled(const struct bridge *b);

#endif
