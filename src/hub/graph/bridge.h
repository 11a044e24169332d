/*
 * bridge: the graph that a configuration describes: router, providers, views.
 *
 * Every command that needs servers creates one: serve and stdio let agents use the bridge, tools
 * and call query the bridge themselves. Without a configuration file, the bridge has the demo
 * server that is in this program.
 *
 * A running bridge can be given another configuration. Then only the differences are carried out: a
 * server whose entry changed is replaced once the new instance is ready, calls in flight to the old
 * one may finish, filters and limits take effect, and agents are told that their lists changed.
 */
#ifndef RIALTO_HUB_GRAPH_BRIDGE_H
#define RIALTO_HUB_GRAPH_BRIDGE_H

#include "config/config.h"
#include "config/plan.h"
#include "core/router.h"
#include "hub/graph/exposure.h"
#include "io/loop.h"
#include "mcp/agent/session.h"
#include "mcp/server/provider.h"

struct bridge;
struct lock;
struct signin;
struct identity;
struct lease;
struct lease_terms;
struct variables;
struct bridge_server; /* a server of the bridge, even one that the configuration has dropped */

/* `c` must outlive the bridge. */
struct bridge *bridge_new(struct loop *loop, const struct config *c);
/* After the `done` of bridge_stop, or when the bridge was never started. */
void bridge_free(struct bridge *b);

/* Only one agent will use the bridge: questions of servers are for that agent, so it needs no
 * instances of its own. Call this before the agent comes. */
void bridge_set_for_one(struct bridge *b);
/* Start the servers that are to run always. */
void bridge_start(struct bridge *b);
/* Start the lazy servers as well: an agent is here. */
void bridge_wake(struct bridge *b);
/* Stop every server; `done` is called from the loop when none is left. */
void bridge_stop(struct bridge *b, void (*done)(void *arg), void *arg);

struct router *bridge_router(const struct bridge *b);
/* The connected agents, over every transport. */
struct session_list *bridge_sessions(struct bridge *b);
/* All servers, names by the configured pattern; with `expose: search`, the search tools instead of
 * their tools. */
struct exposure *bridge_all(const struct bridge *b);
/* The server of this name alone, with its own names; NULL when there is none. */
struct exposure *bridge_one(const struct bridge *b, struct span alias);
/* All servers and all their tools, however they are exposed. */
struct view *bridge_full_view(const struct bridge *b);
/* Add a provider that everybody sees, but that the bridge does not start or stop. The provider
 * leaves when it is removed from the router. */
void bridge_admit(struct bridge *b, struct provider *p);
/* The host for an agent that sees this exposure: one of the bridge's exposures, or one made by
 * bridge_narrow. */
struct mcp_host bridge_host(struct bridge *b, struct exposure *e);
/*
 * A view for the owner of a token alone, if servers of this exposure have a sign-in per user
 * (auth.per_user); NULL otherwise. For agents of the stateless era: other agents get such a view
 * with their session. Give the lease back (bridge_leave) when nobody uses the view any more.
 */
struct view *bridge_enter_owner(struct exposure *e, struct principal *principal,
                                struct lease **lease);
/* Has this exposure such servers for this owner? */
bool bridge_has_own(struct exposure *e, struct principal *principal);
/*
 * A view for one caller alone, if it needs more than the shared instances: instances of its own or,
 * if the caller has variables, variants of the servers for which they differ; NULL otherwise.
 * `shared` is the view of the exposure that the caller would have otherwise. For hosts that call
 * this instead of the `enter` of bridge_host.
 */
struct view *bridge_enter(struct exposure *e, struct view *shared, const struct lease_terms *terms,
                          struct lease **lease);
/* The caller has other variables from now on. */
void bridge_bring(struct bridge *b, struct lease *lease, struct variables *variables);
/* Nobody uses the view of this lease any more. */
void bridge_leave(struct lease *lease);
/* The names in server entries for which a caller may bring values: "A B". */
struct span bridge_variables(const struct bridge *b);
/*
 * What a configured view leaves of all servers or, with `s`, of that server with its own names. The
 * exposure follows the bridge: allow and deny hold for lists and for calls, whether tools are
 * listed or searched for, and for instances that serve one session. The caller frees the exposure
 * when no session uses it any more, before the bridge; `narrowing` must outlive the exposure.
 */
struct exposure *bridge_narrow(struct bridge *b, const struct bridge_server *s,
                               const struct narrowing *narrowing);

/* The servers in the order of the configuration: the one after `p`; the first one for NULL. */
struct provider *bridge_next(const struct bridge *b, const struct provider *p);
/* The view of this server alone, with its own names; NULL for any other provider. */
struct view *bridge_server_view(const struct provider *p);
/* The MCP side of this server; NULL for any other provider. */
struct mcp_provider *bridge_mcp_provider(const struct provider *p);
/* What the server is made from; NULL for any other provider. */
struct server_plan *bridge_server_plan(const struct provider *p);
/* For operators: provider_resume and provider_restart. Sessions that came while the server was
 * stopped get the instances of their own before anything else can happen. */
void bridge_server_resume(struct provider *p);
void bridge_server_restart(struct provider *p);
/* Who everybody is at this server, or with `next` at the one that is to replace it, if there is
 * one: that may wait for a sign-in, while this one goes on. NULL: nobody signs in. */
struct identity *bridge_server_identity(const struct provider *p, bool next);
/* Has every started server come up or failed at least once? */
bool bridge_settled(const struct bridge *b);
/* The same, but a server whose lists are known from an earlier run counts as settled. */
bool bridge_is_known(const struct bridge *b);

/* --- change --- */

/* What was done: servers by the act carried out, as JSON strings separated by commas. */
struct bridge_changes {
    struct buf names[PLAN_ACTS];
};
void bridge_changes_fini(struct bridge_changes *c);

/* Apply another configuration, which the bridge owns from now on. Settings other than `servers`
 * stay as they were at the start. */
void bridge_apply(struct bridge *b, struct config *c, struct bridge_changes *changes);
/* The approved tools. */
struct lock *bridge_lock(const struct bridge *b);
/* The sign-ins to the bridge's servers. */
struct signin *bridge_signin(const struct bridge *b);
/* Compare the tools of all running servers with the approved tools again. */
void bridge_compare(struct bridge *b);
/* Read the approved tools from their file again, and compare. */
void bridge_relock(struct bridge *b);
/* The names of the secrets for which this server was left out: "A, B"; NULL: none is missing. */
const char *bridge_lacks(const struct bridge *b, const char *alias);
/* The configuration that the current servers come from. */
const struct config *bridge_config(const struct bridge *b);

/* Called whenever servers were added, removed or replaced, while those that leave still exist. The
 * watcher owns the struct. */
struct bridge_watch {
    struct list node;
    void (*changed)(struct bridge_watch *w);
};
void bridge_watch(struct bridge *b, struct bridge_watch *w);
void bridge_unwatch(struct bridge_watch *w);
/* Another daemon takes over: call `show` for each server that the other daemon can go on using,
 * also for one that was replaced or dropped but still has calls. */
void bridge_show_servers(struct bridge *b, void (*show)(void *arg, struct mcp_provider *p),
                         void *arg);
/* Hold the server of this name: its exposure lives until bridge_server_release. NULL when there is
 * none. */
struct bridge_server *bridge_server_hold(struct bridge *b, struct span alias);
void bridge_server_release(struct bridge_server *s);
/* This server alone, with its own names. */
struct exposure *bridge_server_exposure(const struct bridge_server *s);
/* Has the configuration dropped the server? */
bool bridge_server_is_gone(const struct bridge_server *s);

#endif
