/*
 * timers: every deadline in the process; the time is passed in.
 *
 * A binary heap of timers that are embedded in their owners. Nothing here reads a clock: io/loop
 * calls timers_advance with the loop's time, tests call it with any time they like. Times are
 * milliseconds of one monotonic clock.
 *
 * Nouns: timers_, timer_.
 */
#ifndef RIALTO_BASE_TIMERS_H
#define RIALTO_BASE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timers;

struct timer {
    uint64_t at;
    void (*fire)(struct timer *t); /* the timer is unset when called and may be set again */
    size_t slot;                   /* 1-based place in the heap; 0 = not set */
};

struct timers {
    struct timer **heap;
    size_t n, cap;
    uint64_t now;
    bool firing; /* inside timers_advance */
};

void timers_fini(struct timers *ts);
/*
 * (Re)arm `t` to fire `delay` ms after the current time. Inside a callback the delay is at least
 * 1 ms: a timer that keeps setting itself to 0 must not hold up the loop.
 */
void timer_set(struct timers *ts, struct timer *t, uint64_t delay);
void timer_clear(struct timers *ts, struct timer *t);

static inline bool timer_is_set(const struct timer *t)
{
    return t->slot != 0;
}

/* Move the clock to `now` (never back) and fire what is due, earliest first. */
void timers_advance(struct timers *ts, uint64_t now);
/* Time of the earliest timer; UINT64_MAX when there is none. */
uint64_t timers_next(const struct timers *ts);

#endif
