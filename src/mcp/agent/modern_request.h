/*
 * modern_request: the private structs of a modern agent, shared by modern.c (methods and answers),
 * modern_park.c (input_required and retries) and modern_listen.c (subscriptions).
 */
#ifndef RIALTO_MCP_AGENT_MODERN_REQUEST_H
#define RIALTO_MCP_AGENT_MODERN_REQUEST_H

#include "mcp/agent/modern.h"

struct modern_agent {
    struct peer peer;
    struct mcp_host host;
    const struct mcp_out *out;
    void *owner;
    struct list requests;
    size_t n_requests, n_parked;
    uint64_t last_ask;
};

/* A request in progress: its reply is open, or it is parked without a reply. */
struct modern_request {
    struct modern_agent *agent;
    struct list node;
    struct call *call; /* NULL until the call is opened */
    void *reply;
    bool waits;       /* the reply is open */
    bool parked;      /* counted in n_parked */
    bool moved;       /* to another daemon */
    uint64_t expires; /* until when the agent of a parked request must retry */
    char *id, *token; /* raw; token NULL when no progress is wanted */
    int level;        /* least log level wanted, -1 = none */
    bool results;     /* a failure of the tool call is sent as a result */
    uint64_t principal, digest;

    struct list asks;   /* struct modern_ask: open questions */
    struct timer flush; /* ends the reply with input_required, from the loop; or ends the wait of
                         * a listen for the servers' confirmation */

    /* A call that ended while it was parked, kept until its agent retries or the time is up. */
    uint64_t ended; /* the handle of that call, or 0 */
    enum op op;
    unsigned lacks;
    struct outcome end;
    struct buf end_bytes; /* what `end` points to */

    unsigned listens; /* of a listen: the item kinds whose changes it reports */
    unsigned changed; /* kinds that changed before the listen was acknowledged */
    struct map tasks; /* of a listen: the tasks (id -> this request) */
    char *text;       /* of a listen on a pipe: the message, for another daemon that takes over */
    struct holding held; /* accounts for what a listen keeps, and for `end_bytes` */
};

/* A question of the provider that the agent has to answer in its retry. */
struct modern_ask {
    struct list node;
    char key[24]; /* ours, in inputRequests */
    char *provider_key;
    char *method, *params; /* params raw, or NULL */
};

struct modern_request *modern_request_new(struct modern_agent *a, const struct mcp_message *m,
                                          void *reply);
void modern_request_bind(struct modern_request *r, const struct mcp_message *m, void *reply);
void modern_request_free(struct modern_request *r);
/* Count what the request keeps. False, and nothing done, if there is no room (limits.memory). */
MUST_CHECK bool modern_request_hold(struct modern_request *r, size_t bytes);
/* Send the agent how the call ended (`lacks` as in struct call), and free the request. */
void modern_request_finish(struct modern_request *r, enum op op, unsigned lacks,
                           const struct outcome *outcome);

/* The fault of a client that uses tasks but has not declared their extension. */
extern const struct modern_fault modern_needs_tasks;

/* --- modern_park.c --- */
void modern_on_ask(struct peer *self, struct call *call, const struct ask *ask);
void modern_ask_free(struct modern_ask *ask);
/* The provider does not wait for this answer any more: if the answer still comes, drop it. */
void modern_unask(struct modern_request *r, struct span provider_key);
/* True if the message was a retry of a parked call, and has been handled. False with `*goes_on`
 * set: the call was parked in the daemon before us; the caller opens it with `goes_on`. */
bool modern_resume(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal, const struct going_on **goes_on);
/* The call has ended while it was parked. True if the outcome is kept for the agent's retry. */
bool modern_keep_end(struct modern_request *r, const struct call *call,
                     const struct outcome *outcome);
/* Digest of the parts that a retry must have in common with its first request. */
uint64_t modern_digest(const struct mcp_message *m);

/* --- modern_listen.c --- */
void modern_listen(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal, int arg);
void modern_listen_event(struct modern_request *r, const struct event *event);
void modern_listen_ended(struct modern_request *r);

#endif
