/*
 * tap: sees every call, with what it carries, on its way through the router: for a recorder.
 *
 * Watchers (events.h) are told that something happened and never what was said; a tap is shown the
 * whole of it. There is one at most, it is told inside of whatever happens, so it must not call the
 * router: it copies and looks at its copies later.
 */
#ifndef RIALTO_CORE_TAP_H
#define RIALTO_CORE_TAP_H

#include "base/span.h"

struct call;
struct outcome;
struct request;
struct router;

struct tap {
    /* `c->provider` is NULL for a call of a name that nobody offers; such a call ends at once. */
    void (*opened)(struct tap *self, const struct call *c, const struct request *request);
    void (*ended)(struct tap *self, const struct call *c, const struct outcome *outcome);
    /* Somebody has said whether a held call (core/approval.h) may go on; `by` is for people. */
    void (*decided)(struct tap *self, const struct call *c, bool allowed, struct span by);
};

/* NULL: no tap any more. Calls that the router opens by itself are not shown. */
void router_set_tap(struct router *r, struct tap *tap);

#endif
