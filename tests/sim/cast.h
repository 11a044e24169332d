/*
 * cast: who plays, and what the simulator itself knows of every call.
 *
 * A flight is a call as its consumer knows it, a job is the same call as its provider knows it.
 * What the simulator expects of the core is in them, never in the core's own structs.
 */
#ifndef RIALTO_SIM_CAST_H
#define RIALTO_SIM_CAST_H

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
    bool opening;    /* call_open has not returned */
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

#endif
