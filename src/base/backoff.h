/*
 * backoff: how long to wait before trying again.
 *
 * The wait doubles from `first` to `max` with jitter (each wait is between half and all of the
 * step), so that peers that died together do not come back together. Pure: the caller passes in
 * the randomness.
 */
#ifndef RIALTO_BASE_BACKOFF_H
#define RIALTO_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    uint64_t first, max; /* ms */
    unsigned failures;   /* in a row */
};

/* The next wait in ms; counts one more failure. `random` is any uniformly random number. */
uint64_t backoff_next(struct backoff *b, uint64_t random);
void backoff_reset(struct backoff *b);

#endif
