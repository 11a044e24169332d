/*
 * instance: one running copy of a server, from its creation until nothing of it is left.
 *
 * A server may be replaced or removed while calls are in flight, and a session may end while its
 * own instances run. So letting go takes time: the instance leaves all views at once, its calls may
 * finish, then it is stopped, and the loop frees it when it is down.
 *
 * Nouns: instances_, instance_.
 */
#ifndef RIALTO_HUB_GRAPH_INSTANCE_H
#define RIALTO_HUB_GRAPH_INSTANCE_H

#include "core/router.h"
#include "hub/graph/lock.h"
#include "hub/graph/server.h"
#include "hub/signin/signin.h"

struct instances; /* all instances of a bridge */
struct instance;

/* `emptied` is called from the loop when no instance is left. `lock` and `signin` are
 * borrowed. */
struct instances *instances_new(struct loop *loop, struct router *router, struct lock *lock,
                                struct signin *signin, size_t max_processes,
                                void (*emptied)(void *arg), void *arg);
/* The approved tools have changed: compare the tools of all running servers with them. */
void instances_judge(struct instances *is);
/* Only when no instance is left, or when none was ever started. */
void instances_free(struct instances *is);
/* The number of instances that are not down yet. */
size_t instances_count(const struct instances *is);
/* Does this provider belong to an instance that is not freed yet? */
bool instances_have(const struct instances *is, const struct provider *p);
/* Stop at once the instances that were let go and still have calls. */
void instances_hurry(struct instances *is);
/* Use the filters and limits of `newer` from now on: in the plan, and in all instances made from
 * the plan that are still held. */
void instances_adjust(struct instances *is, struct server_plan *plan, struct server_plan *newer);
/* Show the server of each instance that has a key (mcp_provider_set_key), also of one that was let
 * go but still has calls. */
void instances_show(struct instances *is, void (*show)(void *arg, struct mcp_provider *p),
                    void *arg);
/* For router_on_stopped. */
void instances_stopped(struct instances *is, const struct provider *p);

/* The provider of the new instance is in the router, but in no view and not started. `principal`:
 * the only one that the instance will serve (instance_own), or NULL. */
struct instance *instance_new(struct instances *is, struct server_plan *plan,
                              struct principal *principal);
struct provider *instance_provider(const struct instance *i);
struct mcp_provider *instance_server(const struct instance *i);
const struct server_plan *instance_plan(const struct instance *i);
/*
 * The instance serves one session, whose agent is of the initialize era, or the agents of the
 * stateless era (`stateless`) of one principal. Its first call starts it, but only while fewer than
 * `max_processes` run, all instances counted. To make room, idle instances of this kind and of the
 * next two kinds are stopped; if there are none, calls fail. The same holds for the limit of the
 * `principal` (NULL: no token was needed), where only the principal's own instances count.
 */
void instance_own(struct instance *i, struct principal *principal, bool stateless);
/* The instance serves the sessions of all callers with the same variables; started and stopped as
 * with instance_own. */
void instance_share(struct instance *i);
/*
 * The instance serves agents of the initialize era while `first`, which must live as long, serves
 * all others. Its first call starts it, as with instance_own; if that fails, `first` takes the
 * calls. If `idle_stop` is not set, it is stopped after SECOND_IDLE_MS without a call.
 */
void instance_second(struct instance *i, const struct instance *first);
/* Show this catalog, unless the instance has a catalog of its own from a start. Agents are told
 * when the caller calls router_tell_changes. */
void instance_learn(struct instance *i, const struct catalog *known);
/* Remember, with the lists, whether the instance's server has this SERVER_ trait. */
void instance_note(struct instance *i, unsigned trait, bool has);
/* `fn` is called whenever the instance has published its lists. */
void instance_on_lists(struct instance *i, void (*fn)(void *arg), void *arg);
/* The caller gives the instance up. Calls in flight have `patience` ms to finish. */
void instance_let_go(struct instance *i, uint64_t patience);

#endif
