/*
 * router: takes calls from consumers to providers and sees to it that each ends exactly once.
 *
 * The router finds the provider by the consumer's view, gives the call a deadline and a slot,
 * queues the call while there is no slot, and ends the call when the provider answers or dies, the
 * deadline passes or the consumer cancels. Pure: gets the time from struct timers, does no I/O.
 *
 * Re-entrancy: every verb may be called inside the function that causes it. `event`, `ask` and
 * `done` may come inside call_open (which returns NULL after `done`), `answer` inside ask_put, a
 * provider's next `open` inside the end of another call. Inside any verb everything here may be
 * called again. A call must not be touched after its `done` or `cancel`.
 */
#ifndef RIALTO_CORE_ROUTER_H
#define RIALTO_CORE_ROUTER_H

#include "base/holdings.h"
#include "core/ask.h"
#include "core/call.h"
#include "core/events.h"
#include "core/provider.h"
#include "core/tasks.h"
#include "core/view.h"

struct router;

/* `seed` feeds the jitter; the same seed gives the same schedule in tests. */
struct router *router_new(struct timers *timers, uint64_t seed);
/* All providers must be removed and all calls ended. */
void router_free(struct router *r);
/* Kept requests count as a holding, and calls are refused when there is no room for more. */
void router_set_holdings(struct router *r, struct holdings *holdings);
/* NULL: what is held is not counted. */
struct holdings *router_holdings(const struct router *r);
/* How many bytes one provider may list; CATALOG_MAX unless set. */
void router_set_max_catalog(struct router *r, size_t bytes);
size_t router_max_catalog(const struct router *r);
struct timers *router_timers(const struct router *r);
uint64_t router_random(struct router *r);
/* The newest handle; router_skip_handles: the daemon before us has used all handles up to `last`,
 * so that ours must be above. */
uint64_t router_last_handle(const struct router *r);
void router_skip_handles(struct router *r, uint64_t last);
struct call *router_find(const struct router *r, uint64_t handle);
size_t router_call_count(const struct router *r);
const struct stats *router_stats(const struct router *r);
/* The tasks that servers run for callers. */
struct tasks *router_tasks(const struct router *r);
/* The events of the router, for watchers. */
struct events *router_events(struct router *r);
/* The observers of changes of any provider. */
struct observers *router_observers(struct router *r);

/* --- the graph --- */
void router_add_provider(struct router *r, struct provider *p);
/*
 * Take the provider out of all views: no new call finds it, and consumers are told that their lists
 * changed. First step of removing a provider that is in use; otherwise a call could start it again
 * while it is stopping.
 */
void router_withdraw_provider(struct router *r, struct provider *p);
/* Only when the provider is DOWN. Withdraws it as well. */
void router_remove_provider(struct router *r, struct provider *p);
struct provider *router_provider(const struct router *r, struct span alias);
/* In the order they were added: pass NULL for the first. */
struct provider *router_next_provider(const struct router *r, const struct provider *p);
/* Called each time a provider has stopped because it was not wanted any more. Remove the provider
 * in a later turn, not inside: the function that reported the loss, or one that ends a call of the
 * provider, may still be on the stack. */
void router_on_stopped(struct router *r, void (*fn)(void *arg, struct provider *p), void *arg);

/* Open the standing call: list changes and other events of the view come on it until cancelled. */
struct call *router_attach(struct router *r, struct peer *consumer, struct view *v,
                           unsigned answers, void *consumer_data);

/* --- for providers --- */
/* An event that belongs to no call: goes to every standing call whose view has the provider. */
void router_broadcast(struct provider *p, const struct event *event);
/*
 * An event that does not say which call it belongs to, such as a log line. If all open calls are of
 * one party, that party is told. Otherwise all consumers are told, but only if all of them see the
 * whole provider; else the event goes to our own log.
 */
void router_tell(struct provider *p, const struct event *event);

/* --- for provider.c, providers with tells_later, and after a change of a view's members --- */
/* Tell every standing call whose lists differ from those that it was last told of. */
void router_tell_changes(struct router *r, struct provider *from);
/* The same, and tell all consumers that see `from` of changes of these kinds (bits). */
void router_tell_changed(struct router *r, struct provider *from, unsigned kinds);

/* --- for provider.c --- */
/* The provider's state or catalog changed: its views build their lists again at the next use, and
 * observers are told. */
void router_provider_changed(struct router *r, struct provider *p);
void router_provider_stopped(struct router *r, struct provider *p);

#endif
