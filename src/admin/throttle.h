/*
 * throttle: when to report changes that come faster than anybody reads.
 *
 * Each kind of change is marked as often as it happens. It is due a moment after the first mark, so
 * that changes which come together are reported together, and not before `gap` ms after the last
 * time. Pure: the time is passed in. Without marks nothing is ever due, so the caller needs no
 * timer then.
 */
#ifndef RIALTO_ADMIN_THROTTLE_H
#define RIALTO_ADMIN_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

enum { THROTTLE_KINDS = 16, THROTTLE_GATHER = 20 /* ms from the first mark */ };

struct throttle {
    unsigned marked; /* bits */
    uint64_t due[THROTTLE_KINDS],
        last[THROTTLE_KINDS]; /* of the marked ones; when each was last taken */
};

/* True if the kind was not marked yet: then throttle_next may be earlier than before. */
bool throttle_mark(struct throttle *t, unsigned kind, uint64_t gap, uint64_t now);
/* When something is due; UINT64_MAX while nothing is marked. */
uint64_t throttle_next(const struct throttle *t);
/* Returns the kinds (bits) that are due, and removes their marks. */
unsigned throttle_take(struct throttle *t, uint64_t now);

#endif
