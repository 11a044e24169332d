/*
 * drain: the last calls of a router that is to be stopped.
 *
 * After drain_begin a call that a consumer opens ends at once with FAIL_SHUTDOWN. Calls that no
 * server works on, because they wait for a slot or for a person, end in the same way. Calls that a
 * server works on have some time to end by themselves; the rest are then ended with the same
 * failure, so that each consumer gets an answer to its calls while its connection is open.
 *
 * Nouns: drain_.
 */
#ifndef RIALTO_CORE_DRAIN_H
#define RIALTO_CORE_DRAIN_H

#include "core/observers.h"

struct router;

/* Embedded in the object that waits, zeroed. */
struct drain {
    struct router *router; /* NULL before drain_begin */
    struct observer calls;
    struct timer grace;
    void (*done)(void *arg);
    void *arg;
};

/* `done` is called when no call is open any more: at once if none is open now, else by the loop. */
void drain_begin(struct drain *d, struct router *r, void (*done)(void *arg), void *arg);
/* How many calls consumers wait for. */
size_t drain_count(const struct router *r);
/* Another daemon takes new calls from now on: none may be opened here, and calls that wait for a
 * person end. The other calls go on. */
void drain_retire(struct router *r);
/* All calls end now. */
void drain_end(struct router *r);
/* Stop waiting without calling `done`. May be called before drain_begin and after `done`. */
void drain_forget(struct drain *d);

#endif
