/*
 * subscriptions: what consumers want from providers besides calls: news of resources, and log
 * lines.
 *
 * Subscriptions are remembered as long as their standing call lives, and sent to a provider each
 * time it comes up, so that a restarted server goes on as if nothing had happened.
 *
 * A call may depend on a subscription or log level, and could overtake it on the way to the server.
 * So calls wait, for a short time at most, until the provider has confirmed a new log level and all
 * subscriptions that it was told when it came up. A new subscription keeps no call waiting: its
 * consumer learns when the provider has confirmed it (subscriptions_pending).
 */
#ifndef RIALTO_CORE_SUBSCRIPTIONS_H
#define RIALTO_CORE_SUBSCRIPTIONS_H

#include "core/router.h"

/*
 * Subscribe on the consumer's behalf; the provider is told unless another consumer is subscribed to
 * the resource already. False if no provider offers the resource, or subscriptions_refuse has a
 * reason.
 */
bool subscriptions_add(struct call *standing, struct span uri);
/* Why the consumer may not subscribe to this resource as well, or NULL: there is a limit to what is
 * remembered. */
const char *subscriptions_refuse(const struct call *standing, struct span uri);
/* Is a subscription of this standing call not confirmed yet? EVENT_SETTLED follows. A provider may
 * never confirm it: the consumer decides how long to wait. One that the provider refuses is
 * forgotten. */
bool subscriptions_pending(const struct call *standing);
/* The provider has accepted a subscription that the consumer opened itself: remember it. `uri` is
 * the resource as the consumer knows it. */
void subscriptions_note(struct call *standing, struct provider *p, struct span own,
                        struct span uri);
/* Forget the subscription, if there is one; true if no other consumer of that provider is
 * subscribed to the resource, or is opening a subscription to it. */
bool subscriptions_remove(struct call *standing, struct span uri);

/* Log lines from this rank on (0 = debug ... 7) are wanted from all providers of the view. */
enum { LOG_RANK_NONE = 8 };
void subscriptions_want_log(struct router *r, struct view *v, int rank, const char *word);

/* Another instance takes a provider's place: the subscriptions of consumers that see `to` move
 * there, and the log level is wanted from it too. It is told at once, or when it is ready. */
void subscriptions_hand_over(struct provider *from, struct provider *to);

/* The consumer's roots changed: told to the providers that serve this consumer alone. */
void subscriptions_roots_changed(struct call *standing);

/* --- for call.c and router.c --- */
void subscriptions_standing_ended(struct call *standing);
void subscriptions_provider_ready(struct provider *p);
/* The URI by which the consumer has subscribed to the provider's resource `own`; empty if it has
 * not. */
struct span subscriptions_uri(const struct call *standing, const struct provider *p,
                              struct span own);
/* The provider is being removed: forget all subscriptions to its resources. */
void subscriptions_provider_withdrawn(const struct router *r, const struct provider *p);

/* --- for provider.c --- */
/* Is a consumer subscribed to a resource of this provider? */
bool subscriptions_any(const struct provider *p);
/* The time for confirmations is over (struct provider.confirm). */
void subscriptions_unconfirmed(struct timer *t);

#endif
