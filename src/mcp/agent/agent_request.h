/*
 * agent_request: a request of an agent of the initialize era that waits for its answer.
 *
 * Owned by the agent's session (session.c); freed when its call is done.
 *
 * Nouns: agent_request_, agent_requests_.
 */
#ifndef RIALTO_MCP_AGENT_AGENT_REQUEST_H
#define RIALTO_MCP_AGENT_AGENT_REQUEST_H

#include "base/list.h"
#include "mcp/protocol.h"

struct call;

/* All requests that wait for their answers. */
struct agent_requests {
    struct list all;
    size_t n;
};

struct agent_request {
    struct list node;
    struct agent_requests *among;
    struct call *call; /* NULL while the call is being opened */
    void *reply;       /* the transport's handle of the request */
    bool unsubscribed; /* of a subscription: it was ended before it was confirmed */
    size_t id_n, token_n, uri_n;
    char bytes[]; /* the raw id, the raw progress token, the uri of a subscription */
};

void agent_requests_init(struct agent_requests *r);
struct agent_request *agent_requests_add(struct agent_requests *r, const struct mcp_message *m,
                                         void *reply, struct span uri);
/* Find a request by its raw id; NULL: there is none. */
struct agent_request *agent_requests_find(const struct agent_requests *r, struct span id);
/* The agent ends its subscription to this resource: those that wait do not count any more. */
void agent_requests_unsubscribe(struct agent_requests *r, struct span uri);
void agent_request_free(struct agent_request *p);
struct span agent_request_id(const struct agent_request *p);
/* Empty: the agent wants no progress. */
struct span agent_request_token(const struct agent_request *p);
struct span agent_request_uri(const struct agent_request *p);

#endif
