/*
 * on_demand: a daemon that a shim has started ends when nobody has used it for a while.
 *
 * What counts as use is the hub's to say. A hub with thousands of calls a second is not slowed down
 * by this: the hub is asked a few times in that while, and what happened in between it sees by a
 * count. Owned by the hub.
 */
#ifndef RIALTO_HUB_ON_DEMAND_H
#define RIALTO_HUB_ON_DEMAND_H

#include "io/loop.h"

struct on_demand;

/* Is it in use now? `*uses` is a count that has grown if it was used since the last question. */
typedef bool on_demand_fn(void *owner, uint64_t *uses);

/* `over` is called once, from the loop, after `idle` ms without use; never if that is 0. */
struct on_demand *on_demand_new(struct loop *loop, uint64_t idle, on_demand_fn *in_use, void *owner,
                                void (*over)(void *arg), void *arg);
void on_demand_free(struct on_demand *d);

#endif
