/* Marks, and when they are due. Called by live.c. */
#include "admin/throttle.h"

bool throttle_mark(struct throttle *t, unsigned kind, uint64_t gap, uint64_t now)
{
    uint64_t soon = now + THROTTLE_GATHER, again = t->last[kind] ? t->last[kind] + gap : 0;

    if (t->marked & 1U << kind)
        return false;
    t->marked |= 1U << kind;
    t->due[kind] = soon > again ? soon : again;
    return true;
}

uint64_t throttle_next(const struct throttle *t)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < THROTTLE_KINDS; i++)
        if (t->marked & 1U << i && t->due[i] < next)
            next = t->due[i];
    return next;
}

unsigned throttle_take(struct throttle *t, uint64_t now)
{
    unsigned due = 0;

    for (unsigned i = 0; i < THROTTLE_KINDS; i++)
        if (t->marked & 1U << i && t->due[i] <= now) {
            due |= 1U << i;
            t->last[i] = now;
        }
    t->marked &= ~due;
    return due;
}
