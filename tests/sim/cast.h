/*
 * cast: the fake peers, and what the simulator itself knows of every call.
 *
 * A flight is a call as its consumer knows it, a job is the same call as its provider knows it.
 * The simulator's expectations are in these structs, never in the core's own structs.
 */
#ifndef RIALTO_SIM_CAST_H
#define RIALTO_SIM_CAST_H

#include "base/list.h"
#include "base/mem.h"
#include "core/approval.h"
#include "core/router.h"
#include "core/subscriptions.h"

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

/* A question that is not answered yet, as both ends know it. */
struct question {
    unsigned key;
    bool open;
    char text[24]; /* the consumer's key */
};

/* A call as its consumer knows it, with what the simulator expects of it. */
struct flight {
    unsigned id;
    struct sim_consumer *consumer;
    struct sim_provider *provider; /* NULL: no provider has the name */
    struct call *call;             /* NULL until it is known */
    struct job *job;               /* while the call is at its provider */
    enum op op;
    bool standing, repeatable, wants_progress;
    bool held;    /* until a person approves the call */
    bool said_no; /* the person has refused */
    unsigned answers;
    unsigned handed; /* how often the call was sent to a provider */
    bool asked;      /* the consumer was asked a question on this call */
    bool opening;    /* call_open has not returned */
    bool finishing;  /* its provider is inside call_done */
    bool cancelling; /* its consumer is cancelling it */
    bool ended;
    uint64_t armed_at; /* when the current time limit began */
    unsigned events_sent, events_seen;
    struct question questions[MAX_ASKS];
    unsigned n_open;           /* of the questions */
    uint64_t told[ITEM_KINDS]; /* standing: fingerprints of the lists at the last change event */
    struct sim_provider *subscribed; /* standing: the provider of the subscribed resource */
    bool expects_update;             /* standing: it must get the update that is being sent */
    struct flight *next_dead;
};

/* A call as its provider knows it. */
struct job {
    struct sim_provider *provider;
    struct call *call;
    struct flight *flight; /* NULL: the router itself opened the call */
    struct question questions[MAX_ASKS];
    bool over;
    struct job *next_dead;
};

/* How often (in percent) an actor does the unexpected. */
struct temper {
    unsigned in_verb; /* acts inside a verb */
    unsigned at_once; /* up inside `start`, lost inside `stop` */
};

struct sim_provider {
    struct provider core;
    struct world *world;
    char alias[16];
    struct temper temper;
    bool alive;                  /* from `start` to provider_lost */
    bool up;                     /* provider_up was called */
    bool stopping;               /* `stop` was called */
    bool sent_away;              /* the stop comes from the simulator */
    bool failed;                 /* its last start or run failed */
    bool leaving;                /* reload: withdrawn, to be removed when it is down */
    bool halted;                 /* stopped by hand, until it is started by hand */
    unsigned falling, unwanting; /* inside provider_lost, inside provider_unwant */
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
    char remembered[8][96]; /* names from earlier lists */
};

#endif
