/*
 * task_request: the work for one request of a caller that concerns a task, which often takes more
 * than one request to the server.
 *
 * Owned by its `struct sent`, which is the pending request. Each step is a function that takes the
 * answer and either sends the next request (task_request_go_on) or ends the call. A *watch*
 * (task_watch.h) is such a request without a call.
 */
#ifndef RIALTO_MCP_SERVER_TASK_REQUEST_H
#define RIALTO_MCP_SERVER_TASK_REQUEST_H

#include "mcp/server/upstream.h"
#include "mcp/task_text.h"

#define TASK_NOT_FOUND                                                                             \
    "{\"code\":-32602,\"message\":\"Task not found: its server has forgotten it\"}"

typedef void task_request_step(struct mcp_provider *p, struct sent *sent,
                               const struct mcp_message *m);

struct task_request {
    struct mcp_provider *provider;
    struct sent *sent;
    task_request_step *next; /* takes the answer to the pending request */
    bool as_task;            /* the caller gets the task, not its result */
    bool declared;           /* we have told the server that we accept tasks */
    char *own;               /* the server's id of the task; NULL until there is one */
    struct kept_request kept;
    struct buf state;   /* the last state of the task, raw */
    struct timer poll;  /* asks for the state again */
    struct sent *token; /* takes the progress of the request that made the task */
    struct buf told;    /* the last status message that was sent as progress */
    unsigned ticks;     /* how many were sent */

    struct map asked; /* keys of questions that were asked -> the request */
    size_t open;      /* questions without an answer */
    struct buf responses;
    struct buf refusal; /* raw error, or our text: a question was not answered */
    enum failure why;
    struct list questions; /* of a watch: struct task_question */
    size_t n_questions;
    unsigned answers; /* of a watch: what its agent can be asked */
};

/* The request of `sent`; `own` is the server's id of the task, empty until there is one. */
struct task_request *task_request_new(struct mcp_provider *p, struct sent *sent, struct span own);
/* Send the next request. */
void task_request_go_on(struct mcp_provider *p, struct sent *sent, const char *method,
                        struct span members, task_request_step *next);
/* Run the task to its end: the caller gets the result of the task. */
void task_request_run(struct mcp_provider *p, struct sent *sent);
/* The progress token of the request that made the task stays valid as long as the task runs. */
void task_request_keep_token(struct mcp_provider *p, struct task_request *tr, struct span raw_id);

/* --- for upstream_calls.c --- */
/* An ask was answered: true if the task of the request had asked. */
bool task_request_take_answer(struct mcp_provider *p, struct sent *sent, struct span key,
                              const struct outcome *outcome);
/* The call was cancelled: cancel the task that was run for it. */
void task_request_cancelled(struct mcp_provider *p, struct sent *sent);
void task_request_free(struct task_request *r);

/* For the `struct sent` of such a request. */
void task_request_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);
void task_request_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why);

/* --- the end: the call is done --- */
void task_request_end_result(struct sent *sent, struct span body);
void task_request_end_error(struct sent *sent, struct span error);
void task_request_end_failed(struct sent *sent, enum failure why, struct span text);
/* True, and the call has ended, if the answer is an error. */
bool task_request_ended_by_error(struct sent *sent, const struct mcp_message *m);
/* The result of the task, as the caller's era needs it. */
void task_request_end_with(struct mcp_provider *p, struct sent *sent, struct span result);
/* The task itself, with another `status` and `more` members if they are given. */
void task_request_end_with_task(struct mcp_provider *p, struct sent *sent, struct span raw,
                                const char *status, struct span more);

/* --- the table of tasks --- */
struct tasks *task_request_tasks(const struct mcp_provider *p);
struct task *task_request_task(const struct mcp_provider *p, struct span own);
/* The server's task after this one in the table of tasks; NULL for the first. */
const struct task *task_request_next_task(const struct mcp_provider *p, const struct task *after);
/* Remember the state that the server has sent; NULL: the task is not known here. */
struct task *task_request_note(struct mcp_provider *p, const struct task_text *text);
/* Is the caller of the stateless era? */
bool task_request_for_modern(const struct call *c);

#endif
