/*
 * on_demand: a daemon that a shim has started ends when nobody has used it for a while.
 *
 * The hub decides what counts as use. Even a hub with thousands of calls a second is not slowed
 * down: it is asked only a few times within the idle time, and a counter shows whether there was
 * any use in between. Owned by the hub.
 */
#ifndef RIALTO_HUB_ON_DEMAND_H
#define RIALTO_HUB_ON_DEMAND_H

#include "io/loop.h"

struct on_demand;

/* Is the daemon in use now? `*uses` gets a counter, which has grown if the daemon was used since
 * the last question. */
typedef bool on_demand_fn(void *owner, uint64_t *uses);

/* `over` is called once, from the loop, after `idle` ms without use; never if `idle` is 0. */
struct on_demand *on_demand_new(struct loop *loop, uint64_t idle, on_demand_fn *in_use, void *owner,
                                void (*over)(void *arg), void *arg);
void on_demand_free(struct on_demand *d);

#endif
