/*
 * sim: random schedules on the core, replayed by seed.
 *
 * A world is a router with its clock, some fake providers and consumers, and what the simulator
 * itself knows of every call (a flight). One seed is one schedule: thousands of steps chosen at
 * random, some of them inside the verbs of others. Nothing here looks at a clock or at an address,
 * so a seed is the same schedule each time.
 *
 *     schedule.c   picks and takes the steps
 *     actors.h     what providers and consumers do by themselves (fake_provider.c, fake_consumer.c)
 *     check.c      what must be true of the core between two steps
 *
 * What must be true inside a verb is checked where the verb arrives. The first thing that is not
 * true ends the program with the command that replays it.
 */
#ifndef RIALTO_SIM_H
#define RIALTO_SIM_H

#include "base/list.h"
#include "base/mem.h"
#include "core/approval.h"
#include "core/router.h"
#include "core/wishes.h"

enum {
    MAX_PROVIDERS = 4,
    MAX_VIEWS = 3,
    MAX_CONSUMERS = 4,
    MAX_FLIGHTS = 48, /* open at once */
    MAX_JOBS = 256,
    MAX_ASKS = 3, /* open at once on one call */
    MAX_DEPTH = 4,
};

struct sim_provider;
struct sim_consumer;
struct job;

/* A question on its way, as both ends know it. */
struct question {
    unsigned key;
    bool open;
    char text[24]; /* the key as the consumer was told it */
};

/* A call as its consumer knows it, with what the simulator expects of it. */
struct flight {
    unsigned id;
    struct sim_consumer *consumer;
    struct sim_provider *provider; /* NULL: nobody offers the name */
    struct call *call;             /* NULL until it is known */
    struct job *job;               /* while its provider has it */
    enum op op;
    bool standing, repeatable, wants_progress;
    bool held;    /* until a person allows it */
    bool said_no; /* the person did not */
    unsigned answers;
    unsigned handed; /* times a provider was given it */
    bool asked;      /* somebody was asked on its behalf */
    bool opening;    /* router_open has not returned */
    bool finishing;  /* its provider is saying `done` */
    bool cancelling; /* its consumer takes it back */
    bool ended;
    uint64_t armed_at; /* since when its present time limit counts */
    unsigned events_sent, events_seen;
    struct question questions[MAX_ASKS];
    unsigned n_open;           /* of the questions */
    uint64_t told[ITEM_KINDS]; /* standing: the lists when it was last told */
    struct sim_provider *wish; /* standing: whose resource it subscribed to */
    bool expects_update;       /* standing: it must hear of the update that is being told */
    struct flight *next_dead;
};

/* A call as its provider knows it. */
struct job {
    struct sim_provider *provider;
    struct call *call;
    struct flight *flight; /* NULL: the router opened it by itself */
    struct question questions[MAX_ASKS];
    bool over;
    struct job *next_dead;
};

/* How often (in percent) an actor does the unexpected. */
struct temper {
    unsigned in_verb; /* does something inside of a verb */
    unsigned at_once; /* up inside `start`, lost inside `stop` */
};

struct sim_provider {
    struct provider core;
    struct world *world;
    char alias[16];
    struct temper temper;
    bool alive;                  /* from `start` to provider_lost */
    bool up;                     /* it has said so */
    bool stopping;               /* it was told to */
    bool sent_away;              /* the one who stops it is us */
    bool failed;                 /* its last start or run ended badly */
    bool leaving;                /* reload: withdrawn, to be removed when it is down */
    bool halted;                 /* by hand, until it is started by hand */
    unsigned falling, unwanting; /* inside of provider_lost, of provider_unwant */
    uint64_t used_at;
    struct question questions[MAX_ASKS]; /* asked on no call */
    size_t n_jobs;
    unsigned generation;
};

struct sim_consumer {
    struct peer peer;
    struct world *world;
    char name[8];
    struct temper temper;
    struct view *view;
    struct flight *standing;
    unsigned answers;
    bool leaving;
    char remembered[8][96]; /* names it has called before */
};

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
    bool advancing; /* inside of timers_advance */
    bool dirty;     /* lists may have changed since they were last checked */
    unsigned depth;
    unsigned last_id, last_key, last_alias;
    struct approver approver;
    struct timers timers;
    struct router *router;
    struct sim_provider *providers[MAX_PROVIDERS]; /* NULL where none is */
    struct sim_consumer consumers[MAX_CONSUMERS];
    size_t n_consumers;
    struct sim_view views[MAX_VIEWS];
    size_t n_views;
    struct flight *flights[MAX_FLIGHTS];
    size_t n_flights;
    struct job *jobs[MAX_JOBS];
    size_t n_jobs;
    struct flight *dead_flights; /* freed between two steps: somebody may be looking still */
    struct job *dead_jobs;
};

/* One seed from its beginning to its end. */
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
