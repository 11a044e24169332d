/* The list of observers and the timer that tells them of a change. Notified by router.c, provider.c
 * and call.c; observers are added by provider.c, drain.c, hub/, admin/live.c, rockbot/worker.c and
 * cmd/query.c. */
#include "core/observers.h"

static bool is_added(const struct observer *o)
{
    return o->node.next && !list_empty(&o->node);
}

static void tell_soon(struct observers *os)
{
    if (!timer_is_set(&os->tell))
        timer_set(os->timers, &os->tell, 0);
}

/*
 * Once around the list: an observer that is called goes to the end of the list, behind the marker,
 * as does an observer that is added meanwhile, so `changed` may remove any node. A change meanwhile
 * sets the timer again: observers that keep changing something do not hold up the loop.
 */
static void on_tell(struct timer *t)
{
    struct observers *os = CONTAINER_OF(t, struct observers, tell);

    list_append(&os->all, &os->marker);
    while (os->all.next != &os->marker) {
        struct observer *o = LIST_ENTRY(os->all.next, struct observer, node);
        list_remove(&o->node);
        list_append(&os->all, &o->node);
        if (o->seen == os->changes)
            continue;
        o->seen = os->changes;
        o->changed(o);
    }
    list_remove(&os->marker);
}

void observers_init(struct observers *os, struct timers *timers)
{
    *os = (struct observers){.timers = timers, .tell.fire = on_tell, .changes = 1};
    list_init(&os->all);
}

void observers_fini(struct observers *os)
{
    timer_clear(os->timers, &os->tell);
}

void observers_add(struct observers *os, struct observer *o)
{
    if (is_added(o))
        return;
    o->seen = 0;
    list_append(&os->all, &o->node);
    tell_soon(os);
}

void observer_remove(struct observer *o)
{
    if (is_added(o))
        list_remove(&o->node);
}

void observers_note(struct observers *os)
{
    os->changes++;
    if (!list_empty(&os->all))
        tell_soon(os);
}
