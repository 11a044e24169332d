/* Marks, and when they are due. Called by live.c. */
#include "admin/throttle.h"

bool throttle_mark(struct throttle *p, unsigned kind, uint64_t gap, uint64_t now)
{
    uint64_t soon = now + PACE_GATHER, again = p->last[kind] ? p->last[kind] + gap : 0;

    if (p->marked & 1U << kind)
        return false;
    p->marked |= 1U << kind;
    p->due[kind] = soon > again ? soon : again;
    return true;
}

uint64_t throttle_next(const struct throttle *p)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < PACE_KINDS; i++)
        if (p->marked & 1U << i && p->due[i] < next)
            next = p->due[i];
    return next;
}

unsigned throttle_take(struct throttle *p, uint64_t now)
{
    unsigned due = 0;

    for (unsigned i = 0; i < PACE_KINDS; i++)
        if (p->marked & 1U << i && p->due[i] <= now) {
            due |= 1U << i;
            p->last[i] = now;
        }
    p->marked &= ~due;
    return due;
}
