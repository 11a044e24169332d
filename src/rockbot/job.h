/*
 * job: a message that is being worked on, from its delivery to the confirmation of its reply.
 *
 * Part of the worker (worker_inside.h). The kind of message decides what is done (`resume`,
 * `finish`) and how an error is reported (`fail`); everything else, that is waiting for servers,
 * limits, sending the reply, and acknowledging the delivery, is the same for all.
 */
#ifndef RIALTO_ROCKBOT_JOB_H
#define RIALTO_ROCKBOT_JOB_H

#include "base/arena.h"
#include "rockbot/recent.h"
#include "rockbot/rockbot.h"
#include "rockbot/trace.h"
#include "rockbot/worker.h"

enum { JOB_MAX_CLAIMS = 8 };
/* When its budget is used up, a job ends its call and its requests itself: their own limits are
 * this many ms later, so that they are never first. */
enum { JOB_ENDS_FIRST_MS = 2000 };
/* The questions of servers that get an answer on every job's call: they are handed back or
 * declined. */
enum { JOB_ANSWERS = ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL };

/* A delivery that waits for a job's reply. */
struct claim {
    struct bus_sub *sub;
    uint64_t tag;
};

struct job {
    struct bus_worker *worker; /* NULL: closed, and only the reply is still being sent */
    struct list node;
    struct claim claims[JOB_MAX_CLAIMS];
    size_t n_claims;
    struct recent_entry *memory;
    struct arena arena;
    struct span agent, correlation, reply_topic;
    struct trace trace;
    enum rockbot_record type; /* of the request */
    struct span server, tool; /* the tool, prompt or uri */
    struct span call_id;      /* of an invoke */
    struct span arguments;    /* raw object */
    struct span session;      /* of an invoke or answer; may be empty */
    struct span question;     /* of an answer: the question's id */
    bool can_answer;          /* the agent takes questions of servers (handback.c) */
    uint64_t asked;           /* questions of the call so far that the agent was asked */
    uint64_t began, budget;   /* ms; the budget is what the call may take */
    struct timer timer;       /* the end of the budget; then the next try to send */
    bool timed_out;
    void (*resume)(struct job *j); /* set while the job waits: called when a server changed */
    bool awaits;                   /* the job has asked for its server to be started */
    uint64_t starts;               /* number of starts of the server before that */
    bool relisted;                 /* the server was asked for its lists because of this job */
    uint64_t generation;           /* generation of the catalog at that time */
    struct call *call;
    struct enclosures
        *enclosures;     /* of the arguments or the result, on their way (enclosures.h); or NULL */
    struct buf outgoing; /* the arguments with files in them; empty: they are as they came */
    bool packed;         /* files were looked for in the arguments */
    bool asks;           /* with the arguments as they came, a person must allow the call */
    bool saves;          /* the result is a file that is to be saved */
    /* Replies with an error, in the form of this kind. `retryable`: calling again may help. */
    void (*fail)(struct job *j, const char *code, bool retryable, struct span text);
    /* Replies with the outcome of the call. */
    void (*finish)(struct job *j, const struct outcome *outcome);
    struct buf reply;
    enum rockbot_record reply_type;
    uint64_t send_until;
    bool is_error, sending;
};

/*
 * NULL when the message came before: then it is handled already. The caller sets `fail` and
 * `finish` next, and the budget with job_limit.
 */
struct job *job_new(struct bus_worker *w, const struct bus_delivery *d, enum rockbot_record type);
void job_limit(struct job *j, uint64_t budget);
/* A copy of a text of the message that lives as long as the job. */
struct span job_text(struct job *j, const struct json_slot *slot);
/* Each ends the job's work; the caller must not use the job afterwards. */
void job_reply(struct job *j, enum rockbot_record type, const struct span *values);
void job_fail(struct job *j, const char *code, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Open the job's call; `finish` may be called inside. */
void job_open(struct job *j, struct view *v, const struct request *request);
/*
 * The job's server, once its catalog is known. NULL: the job has failed, or waits and `resume` will
 * be called; the caller has nothing to do.
 */
struct provider *job_server(struct job *j, void (*resume)(struct job *j));
/* Asks for the server to be started. True as long as it may still come up: it is not up, and has
 * not failed since the job first asked. */
bool job_awaits(struct job *j, struct provider *p);
void job_fail_unreachable(struct job *j, const struct provider *p);
/* The worker does not wait any longer: the job fails, or, if it has a reply, is dropped. */
void job_abandon(struct job *j);
extern const struct peer_verbs job_verbs;

#endif
