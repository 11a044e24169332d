/* The timer that ends a daemon which nobody uses. Called by hub.c. */
#include "hub/on_demand.h"

#include "base/mem.h"

enum { LOOKS = 8 }; /* checks within the idle time */

struct on_demand {
    struct timers *timers;
    uint64_t idle, used_at, uses;
    on_demand_fn *in_use;
    void *owner;
    void (*over)(void *arg);
    void *arg;
    struct timer look;
};

static void on_look(struct timer *t)
{
    struct on_demand *d = CONTAINER_OF(t, struct on_demand, look);
    uint64_t uses = 0;

    if (d->in_use(d->owner, &uses) || uses != d->uses)
        d->used_at = d->timers->now;
    d->uses = uses;
    if (d->timers->now - d->used_at >= d->idle)
        d->over(d->arg); /* frees `d` */
    else
        timer_set(d->timers, &d->look, d->idle / LOOKS);
}

struct on_demand *on_demand_new(struct loop *loop, uint64_t idle, on_demand_fn *in_use, void *owner,
                                void (*over)(void *arg), void *arg)
{
    struct on_demand *d = MEM_NEW(struct on_demand);

    d->timers = loop_timers(loop);
    d->idle = idle;
    d->used_at = d->timers->now;
    d->in_use = in_use;
    d->owner = owner;
    d->over = over;
    d->arg = arg;
    d->look.fire = on_look;
    if (idle)
        timer_set(d->timers, &d->look, idle / LOOKS);
    return d;
}

void on_demand_free(struct on_demand *d)
{
    timer_clear(d->timers, &d->look);
    mem_free(d);
}
