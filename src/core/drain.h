/*
 * drain: the last calls of a router that is to be stopped.
 *
 * From the beginning on a call that a consumer opens ends at once with FAIL_SHUTDOWN. Calls
 * that no server works on, because they wait for a slot or for a person, end in the same way. Calls
 * that a server works on have some time to end by themselves; those that have not are ended with
 * the same failure, so that each consumer is told of the end of its calls while it can still be
 * told.
 *
 * Nouns: drain_.
 */
#ifndef RIALTO_CORE_DRAIN_H
#define RIALTO_CORE_DRAIN_H

#include "core/observers.h"

struct router;

/* Embedded in the object that waits, zeroed. */
struct drain {
    struct router *router; /* NULL until it begins */
    struct observer calls;
    struct timer grace;
    void (*done)(void *arg);
    void *arg;
};

/* `done` is called when no call is open any more: inside if there was none, else by the loop. */
void drain_begin(struct drain *d, struct router *r, void (*done)(void *arg), void *arg);
/* Wait no longer, and call nobody. Fine for one that has not begun, or is through. */
void drain_forget(struct drain *d);

#endif
