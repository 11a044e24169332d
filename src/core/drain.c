/* Waiting for the last calls of a router, and ending those that take too long. Called by hub/hub.c
 * and cmd/stdio.c when a signal stops the program, and by hub/upgrade.c. */
#include "core/drain.h"

#include "base/log.h"
#include "core/inside.h"

/* Shorter than the time that service managers wait before they kill a program. */
enum { GRACE_MS = 10 * 1000 };

/* Standing calls and the router's own calls do not count. */
size_t drain_count(const struct router *r)
{
    size_t n = r->calls.n;

    LIST_EACH (&r->standing, it)
        n--;
    LIST_EACH (&r->own.opened, it)
        n--;
    return n;
}

void drain_retire(struct router *r)
{
    r->draining = true;
    call_end_held(r);
}

void drain_end(struct router *r)
{
    call_end_all(r, false);
}

static void finish(struct drain *d)
{
    drain_forget(d);
    d->done(d->arg);
}

static void on_calls(struct observer *o)
{
    struct drain *d = CONTAINER_OF(o, struct drain, calls);

    if (!drain_count(d->router))
        finish(d);
}

static void on_grace(struct timer *t)
{
    struct drain *d = CONTAINER_OF(t, struct drain, grace);

    call_end_all(d->router, false);
    finish(d);
}

void drain_begin(struct drain *d, struct router *r, void (*done)(void *arg), void *arg)
{
    *d = (struct drain){
        .router = r, .calls.changed = on_calls, .grace.fire = on_grace, .done = done, .arg = arg};
    r->draining = true;
    call_end_all(r, true);
    size_t n = drain_count(r);
    if (!n) {
        done(arg);
        return;
    }
    log_info("rialto", "%zu calls are open: they have %d s to end", n, GRACE_MS / 1000);
    timer_set(r->timers, &d->grace, GRACE_MS);
    observers_add(&r->observers, &d->calls);
}

void drain_forget(struct drain *d)
{
    if (!d->router)
        return;
    observer_remove(&d->calls);
    timer_clear(d->router->timers, &d->grace);
}
