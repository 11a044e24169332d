/*
 * tap: sees every call with its params and result on the way through the router: for a recorder.
 *
 * Watchers (events.h) are told that something happened, without contents; a tap is shown the
 * contents as well. There is one tap at most. It is called from inside the router, so it must not
 * call the router: it copies and reads the copies later.
 */
#ifndef RIALTO_CORE_TAP_H
#define RIALTO_CORE_TAP_H

#include "base/span.h"

struct call;
struct outcome;
struct request;
struct router;

struct tap {
    /* `c->provider` is NULL for a call of a name that no provider offers; such a call ends at once.
     */
    void (*opened)(struct tap *self, const struct call *c, const struct request *request);
    void (*ended)(struct tap *self, const struct call *c, const struct outcome *outcome);
    /* A held call (core/approval.h) was allowed or refused; `by` names the decider, for people. */
    void (*decided)(struct tap *self, const struct call *c, bool allowed, struct span by);
};

/* NULL: no tap any more. Calls that the router opens by itself are not shown. */
void router_set_tap(struct router *r, struct tap *tap);

#endif
