/*
 * inside: the router as its own files see it. router.c keeps the graph and tells what belongs to no
 * call; call.c leads each call from its opening to its end.
 */
#ifndef RIALTO_CORE_INSIDE_H
#define RIALTO_CORE_INSIDE_H

#include "base/holdings.h"
#include "base/map.h"
#include "core/events.h"
#include "core/observers.h"
#include "core/router.h"
#include "core/tap.h"

struct approver;

struct router {
    struct timers *timers;
    uint64_t random;
    uint64_t last_handle;
    struct idmap calls;
    size_t max_catalog;  /* bytes that one provider may list */
    struct holding kept; /* the requests of those that wait, or may have to be sent again */
    struct list providers;
    struct list standing;
    struct view **views;
    size_t n_views;
    void (*on_stopped)(void *arg, struct provider *p);
    void *on_stopped_arg;
    bool draining; /* no consumer may open a call any more (drain.h) */
    struct stats stats;
    struct events events;
    struct observers observers;
    const struct approver *approver; /* NULL: nobody can be asked */
    struct tap *tap;                 /* NULL: nobody looks on */
    struct peer own; /* consumer of the calls that the router opens by itself (wishes.c) */
};

extern const struct peer_verbs wishes_verbs;

/* A call that the consumer has opened and that nobody knows of yet. */
struct call *call_new(struct router *r, struct peer *consumer, enum op op, struct span name,
                      void *consumer_data);
/* Open a call of the router's own; `request` has the provider's name of the thing. */
void call_open_own(struct provider *p, const struct request *request);
/*
 * Hand the call to its provider if there is a slot, else let the call wait or refuse it: the call
 * may have ended afterwards. `request` may be the copy that the call has kept; the call was
 * admitted before, then.
 */
void call_admit(struct call *c, const struct request *request);
/* All calls end with FAIL_SHUTDOWN, but for standing ones. `waiting_only`: those that wait for a
 * slot, for their server or for a person, which no server works on. */
void call_end_all(struct router *r, bool waiting_only);
/* Keep a copy of the call's request. */
void call_keep(struct call *c, const struct request *request);
/* Start the call's deadline again, with the limit of the call's present state. */
void call_arm_deadline(struct call *c);

#endif
