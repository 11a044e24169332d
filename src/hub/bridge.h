/*
 * bridge: the graph that a configuration describes: router, providers, views.
 *
 * Every command that needs servers builds one: serve and stdio put agents before it, tools and call
 * ask it themselves. Without a configuration file it has the demo server that is in this program.
 *
 * It can be given another configuration while it runs. Then only what differs is touched: a server
 * whose entry changed is replaced by one that is ready, its calls under way come to their ends,
 * filters and limits are put in force, and agents hear of what is new in their lists.
 */
#ifndef RIALTO_HUB_BRIDGE_H
#define RIALTO_HUB_BRIDGE_H

#include "config/config.h"
#include "config/plan.h"
#include "core/router.h"
#include "hub/exposure.h"
#include "io/loop.h"
#include "mcp/agent/session.h"
#include "mcp/server/provider.h"

struct bridge;
struct bridge_server; /* one of its servers, also after the configuration has dropped it */

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
struct exposure *bridge_all(const struct bridge *b);
/* The server of this name alone, with its own names; NULL when there is none. */
struct exposure *bridge_one(const struct bridge *b, struct span alias);
/* All servers and all their tools, however they are exposed. */
struct view *bridge_full_view(const struct bridge *b);
/* One more provider that all see, which is not the bridge's to start and to stop; it leaves when
 * it is removed from the router. */
void bridge_admit(struct bridge *b, struct provider *p);
/* What an agent needs that sees this exposure, which is the bridge's or made by bridge_narrow. */
struct mcp_host bridge_host(struct bridge *b, struct exposure *e);
/*
 * What a configured view leaves of all servers, or, with `s`, of that one with its own names. It
 * follows the bridge: allow and deny hold for lists and for calls, whether tools are listed or
 * searched for, and for instances that serve one session. The caller frees it when no session looks
 * at it any more, before the bridge; `narrowing` must outlive it.
 */
struct exposure *bridge_narrow(struct bridge *b, const struct bridge_server *s,
                               const struct narrowing *narrowing);

/* The servers in the order of the configuration: the one behind `p`, NULL for the first. */
struct provider *bridge_next(const struct bridge *b, const struct provider *p);
/* The view of one of these alone, with its own names; NULL for any other provider. */
struct view *bridge_server_view(const struct provider *p);
/* The MCP side of one of these; NULL for any other provider. */
struct mcp_provider *bridge_mcp_provider(const struct provider *p);
/* Has every started server come up or failed at least once? */
bool bridge_settled(const struct bridge *b);
/* Or is it known from an earlier run what it offers? */
bool bridge_is_known(const struct bridge *b);

/* --- change --- */

/* What came of it: the servers by what was done with them, as JSON strings parted by commas. */
struct bridge_changes {
    struct buf names[PLAN_ACTS];
};
void bridge_changes_fini(struct bridge_changes *c);

/* The bridge owns `c` from now on. Settings other than `servers` stay as they were at the start. */
void bridge_apply(struct bridge *b, struct config *c, struct bridge_changes *changes);
/* The configuration whose servers it has. */
const struct config *bridge_config(const struct bridge *b);

/* Told whenever servers were added, removed or replaced, while those that leave are still there.
 * The struct is the watcher's. */
struct bridge_watch {
    struct list node;
    void (*changed)(struct bridge_watch *w);
};
void bridge_watch(struct bridge *b, struct bridge_watch *w);
void bridge_unwatch(struct bridge_watch *w);
/* The server of this name as a thing to hold on to: what shows it lives until
 * bridge_server_release. NULL when there is none. */
struct bridge_server *bridge_server_hold(struct bridge *b, struct span alias);
void bridge_server_release(struct bridge_server *s);
/* This server alone, with its own names. */
struct exposure *bridge_server_exposure(const struct bridge_server *s);
/* Has the configuration dropped it? */
bool bridge_server_is_gone(const struct bridge_server *s);

#endif
