/*
 * worker_inside: the structs and functions that the files of the worker share.
 *
 *     worker.c          start and close, subscriptions, agents, when to look
 *     job.c             a message that is being worked on, up to its confirmed reply
 *     worker_invoke.c   tool calls
 *     handback.c        questions of servers that agents answer
 *     worker_manage.c   what agents ask about servers
 *     worker_announce.c what agents are told about servers
 */
#ifndef RIALTO_ROCKBOT_WORKER_INSIDE_H
#define RIALTO_ROCKBOT_WORKER_INSIDE_H

#include "base/id.h"
#include "rockbot/content.h"
#include "rockbot/job.h"
#include "rockbot/recent.h"

/* The three subscriptions for an agent, or for all agents. */
struct station {
    struct bus_worker *worker;
    const char *agent; /* "*" = all agents */
    struct bus_sub *invoke, *refresh, *manage;
};

/* An agent that gets announcements. */
struct bus_listener {
    struct list node;
    uint64_t since;    /* Unix time in ms: earlier announcements did not reach the agent */
    int64_t delay;     /* ms from stamp to arrival of the agent's quickest message: mostly the
                          difference between the clocks */
    uint64_t delay_at; /* by the loop's clock; 0 = not known */
    char agent[];
};

/* An agent whose refresh is answered with the next list. */
struct bus_asker {
    struct list node;
    uint64_t heard; /* announcements of the server before the request */
    char agent[];
};

/* A server as announced to the agents. */
struct known {
    struct list node;
    char *alias;
    bool announced;
    bool there;             /* used while looking: the server still exists */
    uint64_t digest;        /* of the server's lists and facts at the last look */
    uint64_t due;           /* when to announce a change; 0 = nothing changed */
    uint64_t announced_at;  /* Unix time in ms */
    uint64_t n_announced;   /* number of announcements */
    uint64_t timeout_ms;    /* the server's own limit for calls; 0 = none */
    uint64_t relisted_at;   /* when the server was last asked for its lists, */
    uint64_t relisted_from; /* and the generation that it had then */
    struct list askers;     /* of struct bus_asker */
    size_t n_askers;
    bool relisting; /* asked for the askers: a generation other than `generation` is the answer */
    uint64_t generation;
    char fingerprint[65];    /* as announced */
    uint64_t facts;          /* the same: a digest of the entry without the lists */
    struct buf entry, tools; /* as announced: entry of the index, JSON array of the tools' names */
};

struct bus_worker {
    struct loop *loop;
    struct bus *bus;
    const struct bus_host *host;
    const struct bus_worker_options *options;
    struct content_options content;
    struct peer peer; /* the consumer of all calls */
    struct station *stations;
    size_t n_stations;
    struct list listeners;
    size_t n_listeners;
    struct list jobs;
    struct recent recent;
    struct list known;
    struct list questions; /* of struct handback (handback.c), oldest first */
    size_t n_questions;
    char token[ID_TOKEN_SIZE]; /* tells the questions of this worker from those before a restart */
    struct bus_sub *approvals; /* of answers to questions; NULL when options->approvals is off */
    bool was_up, said_anything;
    struct observer servers;
    struct timer next_look;         /* for a look without a change of a server */
    bool closing, failing, leaving; /* takes no messages; fails open calls; no job is left */
    struct timer grace;
    struct deferred leave;
    void (*closed)(void *arg);
    void *closed_arg;
    struct bus_worker_counts counts;
};
/* --- worker.c --- */
struct provider *worker_server(const struct bus_worker *w, struct span name);
/* Looks at the servers and resumes jobs in `ms` at the latest. */
void worker_look_within(struct bus_worker *w, uint64_t ms);
void worker_job_ended(struct bus_worker *w);
/* How many ms the message took longer than the agent's quickest message; 0 = not known. */
int64_t worker_travel_time(const struct bus_worker *w, const struct message *m);
/* NULL: nothing is announced to this agent, and it must ask. */
const struct bus_listener *worker_listener(const struct bus_worker *w, struct span agent);
/* "a, b, c" of all servers; "none" when there are none. */
void worker_put_servers(struct buf *out, const struct bus_worker *w);
/* The same for the items of a server's view; of many, the first. */
void worker_put_names(struct buf *out, struct view *v, enum item_kind kind);

/* --- handback.c --- */
void handback_init(struct bus_worker *w);
/* Ends the calls that wait for answers. */
void handback_end_all(struct bus_worker *w);
void handback_fini(struct bus_worker *w);
/* The job's server asks. True: the agent has the question as the job's reply, and the call waits.
 */
bool handback_ask(struct job *j, const struct ask *ask);
/* About a waiting call: the server took its question back; the call has ended. */
void handback_withdrawn(struct bus_worker *w, const struct call *call);
void handback_done(struct bus_worker *w, const struct call *call, const struct outcome *outcome);
/* An agent's answer: `slots` of ROCKBOT_ANSWER. */
void handback_answer(struct job *j, const struct json_slot *slots);
/* A session of the agent has ended, and its questions with it. */
void handback_release(struct bus_worker *w, struct span agent, struct span session);
/* Is the question with this id one of a worker with another name? */
bool handback_is_elsewhere(const struct bus_worker *w, struct span id);

/* --- worker_invoke.c, worker_manage.c --- */
/* Replies to an invoke or an answer: with this result; with the outcome of the call. */
void worker_reply_result(struct job *j, struct span text, struct span blocks, bool is_error);
void worker_finish_invoke(struct job *j, const struct outcome *outcome);
void worker_invoke(struct bus_worker *w, const struct bus_delivery *d);
void worker_manage(struct bus_worker *w, const struct bus_delivery *d);

/* --- worker_announce.c --- */
void worker_refresh(struct bus_worker *w, const struct bus_delivery *d);
/* Announces all known servers to a new agent. */
void worker_greet(struct bus_worker *w, const char *agent);
/* Looks at all servers. Returns in how many ms to look again without a change, or UINT64_MAX. */
uint64_t worker_look(struct bus_worker *w);
void worker_forget_all(struct bus_worker *w);
/* Asks the server for its lists. False if the server is not up or was asked just now; the answer to
 * that may still be on its way (worker_is_relisting). */
bool worker_relist(struct bus_worker *w, struct provider *p);
bool worker_is_relisting(const struct bus_worker *w, const struct provider *p);
/* The server's own limit for a call, in ms, as of the last look; 0 = none. */
uint64_t worker_timeout_of(struct bus_worker *w, const struct provider *p);

#endif
