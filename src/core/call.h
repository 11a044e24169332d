/*
 * call: one operation in flight, from a consumer to a provider.
 *
 * The router owns it. The two data pointers belong to the families at its ends: the consumer's (set
 * through router_open) finds the waiting request of its hop there, the provider's (set in its
 * `open` verb) finds the request it sent. The handle outlives nothing and is never reused, so a
 * family that must name a call outside of the process (a sealed requestState) names it by handle.
 */
#ifndef RIALTO_CORE_CALL_H
#define RIALTO_CORE_CALL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/timers.h"
#include "core/peer.h"

struct view;

enum call_state {
    CALL_WAITING, /* for a slot, or for its provider to come up */
    CALL_OPEN,    /* handed to its provider */
    CALL_ENDING,  /* `done` is being told */
};

/* A request kept beyond the callback it came in: for waiting calls and for those that may be
 * sent again. */
struct kept_request {
    struct request request;
    struct buf bytes;
};

struct call {
    uint64_t handle;
    enum op op;
    enum call_state state;
    struct router *router;

    struct peer *consumer;
    void *consumer_data;
    struct list in_consumer;

    struct provider *provider; /* NULL for standing calls */
    void *provider_data;
    struct list in_provider; /* provider->open or ->waiting */

    struct view *view;    /* standing calls: what changes are told about */
    struct list standing; /* in router->standing */

    unsigned answers;
    bool wants_progress;
    bool repeatable; /* read-only or idempotent: may be sent again after a crash */
    bool retried;
    uint64_t opened_at;
    struct timer deadline;
    struct list asks; /* struct open_ask, in the order they were asked */
    struct kept_request kept;
};

#endif
