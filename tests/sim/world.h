/*
 * world: one schedule of random steps on the core, which its seed reproduces.
 *
 * A world is a router with its clock, some fake providers and consumers, and the calls between
 * them. One seed is one schedule: thousands of steps chosen at random, some of them inside the
 * verbs of others. Nothing depends on a real clock or on addresses of memory, so a seed gives the
 * same schedule each time.
 *
 *     schedule.c   chooses and takes the steps
 *     actors.h     the actions of providers and consumers (fake_provider.c, fake_consumer.c)
 *     check.c      what must be true of the core between two steps
 *
 * What must be true inside a verb is checked in the fake peer that receives it. The first failed
 * check ends the program, which prints the command that replays the seed.
 */
#ifndef RIALTO_SIM_WORLD_H
#define RIALTO_SIM_WORLD_H

#include "cast.h"

struct member {
    struct sim_provider *provider;
    bool filtered;
};

struct sim_view {
    struct view *view;
    const char *pattern;
    struct member members[16];
    size_t n;
};

struct world {
    uint64_t seed, random;
    size_t steps, step;
    bool verbose;
    bool draining;
    bool advancing; /* inside timers_advance */
    bool dirty;     /* lists may have changed since they were last checked */
    unsigned depth;
    unsigned last_id, last_key, last_alias;
    struct approver approver;
    struct timers timers;
    struct router *router;
    struct sim_provider *providers[MAX_PROVIDERS]; /* NULL for a free slot */
    struct sim_consumer consumers[MAX_CONSUMERS];
    size_t n_consumers;
    struct sim_view views[MAX_VIEWS];
    size_t n_views;
    struct flight *flights[MAX_FLIGHTS];
    size_t n_flights;
    struct job *jobs[MAX_JOBS];
    size_t n_jobs;
    struct flight *dead_flights; /* freed between two steps: callers may still use them */
    struct job *dead_jobs;
};

/* Runs one seed from its beginning to its end. */
void world_run(uint64_t seed, size_t steps, bool verbose);

/* splitmix64. */
static inline uint64_t world_random(struct world *w)
{
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 to n - 1. */
static inline unsigned pick(struct world *w, size_t n)
{
    return (unsigned)(world_random(w) % n);
}

static inline bool chance(struct world *w, unsigned percent)
{
    return pick(w, 100) < percent;
}

#define PICK(w, array) ((array)[pick((w), COUNT_OF(array))])

void sim_trace(const struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_fail(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#define TRACE(w, ...)                                                                              \
    do {                                                                                           \
        if ((w)->verbose)                                                                          \
            sim_trace((w), __VA_ARGS__);                                                           \
    } while (0)

#define CHECK(w, truth, ...)                                                                       \
    do {                                                                                           \
        if (!(truth))                                                                              \
            sim_fail((w), __VA_ARGS__);                                                            \
    } while (0)

#endif
