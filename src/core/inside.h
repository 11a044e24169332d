/*
 * inside: the router as its own files see it. router.c keeps the graph and tells what belongs to no
 * call; call.c leads each call from its opening to its end.
 */
#ifndef RIALTO_CORE_INSIDE_H
#define RIALTO_CORE_INSIDE_H

#include "base/map.h"
#include "core/router.h"

struct router {
    struct timers *timers;
    uint64_t random;
    uint64_t last_handle;
    struct idmap calls;
    struct list providers;
    struct list standing;
    struct view **views;
    size_t n_views;
    void (*on_stopped)(void *arg, struct provider *p);
    void *on_stopped_arg;
    struct stats stats;
    struct peer own; /* opens what the router wants by itself (wishes.c) */
};

extern const struct peer_verbs router_own_verbs;

/* A call that the consumer has opened and that nobody knows of yet. */
struct call *call_new(struct router *r, struct peer *consumer, enum op op, void *consumer_data);
/* Open a call at a provider that is known already; `request` has the provider's own name. */
struct call *call_open_on(struct router *r, struct peer *consumer, struct view *v,
                          struct provider *p, bool repeatable, const struct request *request,
                          void *consumer_data);

#endif
