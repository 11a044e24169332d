/*
 * modern_request: the inside of a modern agent, shared by modern.c (methods and answers),
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

/* A request that is being worked on: waiting on its reply, or parked without one. */
struct modern_request {
    struct modern_agent *agent;
    struct list node;
    struct call *call; /* NULL until the call is opened */
    void *reply;
    bool waits;       /* the reply is open */
    bool parked;      /* counted in n_parked */
    uint64_t expires; /* when its agent must have come back */
    char *id, *token; /* raw; token NULL when no progress is wanted */
    int level;        /* least log level wanted, -1 = none */
    uint64_t principal, digest;

    struct list asks;   /* struct modern_ask: open questions */
    struct timer flush; /* ends the reply with input_required at the end of the turn */

    /* A call that ended while it was parked, until its agent comes back or has no time left. */
    uint64_t ended; /* its handle, or 0 */
    enum op op;
    unsigned lacks;
    struct outcome end;
    struct buf end_bytes; /* what `end` points to */

    unsigned listens; /* item kinds a listen wants to hear of */
    struct map uris;  /* and the resources (uri -> itself) */
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
/* Tell how the call ended (`lacks` as in struct call), and free the request. */
void modern_request_finish(struct modern_request *r, enum op op, unsigned lacks,
                           const struct outcome *outcome);

/* --- modern_park.c --- */
void modern_on_ask(struct peer *self, struct call *call, const struct ask *ask);
void modern_ask_free(struct modern_ask *ask);
/* The provider does not wait for this answer any more: one that still comes is dropped. */
void modern_unask(struct modern_request *r, struct span provider_key);
/* True if the message was a retry of a parked call, which has been dealt with. */
bool modern_resume(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal);
/* The call has ended while it was parked. True if that is kept for the agent, which comes back. */
bool modern_keep_end(struct modern_request *r, const struct call *call,
                     const struct outcome *outcome);
/* What a retry must have in common with its first request. */
uint64_t modern_digest(const struct mcp_message *m);

/* --- modern_listen.c --- */
void modern_listen(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal, int arg);
void modern_listen_event(struct modern_request *r, const struct event *event);
void modern_listen_ended(struct modern_request *r);

#endif
