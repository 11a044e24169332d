/*
 * instance: one running copy of a server, from its making to the moment nothing of it is left.
 *
 * A server is replaced or removed while calls are under way, and a session ends while its own
 * servers still do. So letting go takes time: it is out of all views at once, its calls may come to
 * their ends, then it is stopped, and it is freed by the loop when it is down.
 *
 * Nouns: instances_, instance_.
 */
#ifndef RIALTO_HUB_INSTANCE_H
#define RIALTO_HUB_INSTANCE_H

#include "core/router.h"
#include "hub/server.h"

struct instances; /* all of a bridge */
struct instance;

/* `emptied` is told from the loop when none is left. */
struct instances *instances_new(struct loop *loop, struct router *router, size_t max_processes,
                                void (*emptied)(void *arg), void *arg);
/* When none is left. */
void instances_free(struct instances *is);
/* Those that are not down yet. */
size_t instances_count(const struct instances *is);
/* Was it made here, and is it not freed yet? */
bool instances_have(const struct instances *is, const struct provider *p);
/* No more patience with those that were let go. */
void instances_hurry(struct instances *is);
/* Filters and limits are those of `newer` from now on: of the plan, and of whatever was made by it
 * and is still held. */
void instances_adjust(struct instances *is, struct server_plan *plan, struct server_plan *newer);
/* For router_on_stopped. */
void instances_stopped(struct instances *is, const struct provider *p);

/* Its provider is in the router, not in a view, and not started. */
struct instance *instance_new(struct instances *is, struct server_plan *plan);
struct provider *instance_provider(const struct instance *i);
struct mcp_provider *instance_server(const struct instance *i);
const struct server_plan *instance_plan(const struct instance *i);
/*
 * It is a session's: started only while there are fewer than `max_processes`, all others counted.
 * Others of sessions that nobody uses are stopped to make room; if there are none, its calls fail.
 */
void instance_bound(struct instance *i);
/* Told whenever it has published what it offers. */
void instance_on_lists(struct instance *i, void (*fn)(void *arg), void *arg);
/* Not ours any more. Its calls have `patience` ms to end by themselves. */
void instance_let_go(struct instance *i, uint64_t patience);

#endif
