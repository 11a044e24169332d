/* The binary heap of timers: setting, clearing, and firing those that are due. io/loop.c advances
 * the time; timers are set by every folder that has deadlines. */
#include "base/timers.h"

#include "base/mem.h"

void timers_fini(struct timers *ts)
{
    for (size_t i = 0; i < ts->n; i++)
        ts->heap[i]->slot = 0;
    mem_free(ts->heap);
    *ts = (struct timers){0};
}

static void place(struct timers *ts, size_t i, struct timer *t)
{
    ts->heap[i] = t;
    t->slot = i + 1;
}

static void sift_up(struct timers *ts, size_t i, struct timer *t)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (ts->heap[parent]->at <= t->at)
            break;
        place(ts, i, ts->heap[parent]);
        i = parent;
    }
    place(ts, i, t);
}

static void sift_down(struct timers *ts, size_t i, struct timer *t)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= ts->n)
            break;
        if (child + 1 < ts->n && ts->heap[child + 1]->at < ts->heap[child]->at)
            child++;
        if (ts->heap[child]->at >= t->at)
            break;
        place(ts, i, ts->heap[child]);
        i = child;
    }
    place(ts, i, t);
}

void timer_clear(struct timers *ts, struct timer *t)
{
    if (!t->slot)
        return;
    size_t hole = t->slot - 1;
    struct timer *last = ts->heap[--ts->n];
    t->slot = 0;
    if (last == t)
        return;
    if (hole > 0 && ts->heap[(hole - 1) / 2]->at > last->at)
        sift_up(ts, hole, last);
    else
        sift_down(ts, hole, last);
}

void timer_set(struct timers *ts, struct timer *t, uint64_t delay)
{
    timer_clear(ts, t);
    if (ts->firing && delay == 0)
        delay = 1;
    if (ts->n == ts->cap) {
        ts->cap = ts->cap ? ts->cap * 2 : 64;
        ts->heap = mem_resize(ts->heap, ts->cap * sizeof(struct timer *));
    }
    t->at = delay < UINT64_MAX - ts->now ? ts->now + delay : UINT64_MAX;
    ts->n++;
    sift_up(ts, ts->n - 1, t);
}

void timers_advance(struct timers *ts, uint64_t now)
{
    if (now > ts->now)
        ts->now = now;
    ts->firing = true;
    while (ts->n && ts->heap[0]->at <= ts->now) {
        struct timer *t = ts->heap[0];
        timer_clear(ts, t);
        t->fire(t);
    }
    ts->firing = false;
}

uint64_t timers_next(const struct timers *ts)
{
    return ts->n ? ts->heap[0]->at : UINT64_MAX;
}
