/*
 * endpoint: every way by which agents on the network reach one view: Streamable HTTP, WebSocket and
 * the old HTTP+SSE.
 */
#ifndef RIALTO_MCP_AGENT_ENDPOINT_H
#define RIALTO_MCP_AGENT_ENDPOINT_H

#include "io/http_server.h"
#include "mcp/agent/inherited.h"
#include "mcp/agent/modern.h"

struct endpoint;

struct endpoint_options {
    size_t max_sessions;         /* for each of the three ways */
    uint64_t session_ttl;        /* ms without a request or an open stream */
    size_t max_message;          /* bytes */
    struct inherited *inherited; /* sessions of the daemon before us; may be NULL */
};

/* `home` (inherited.h) names this endpoint when sessions are handed to the next daemon; NULL: none
 * are handed over. */
struct endpoint *endpoint_new(struct loop *loop, const struct mcp_host *host,
                              const struct endpoint_options *options, const char *home);
/*
 * A request for the view's own path, or, with `sse`, for the view's path of HTTP+SSE. A WebSocket
 * is recognised by its handshake.
 */
void endpoint_handle(struct endpoint *e, struct http_exchange *x, const struct http_request *req,
                     bool sse);
size_t endpoint_sessions(const struct endpoint *e);
/* Is an agent there: a session, or an open request of the stateless era, which has none? */
bool endpoint_in_use(const struct endpoint *e);
/* Another daemon takes over: see the functions with the same endings in http_agent.h. */
void endpoint_show(const struct endpoint *e, inherited_show_fn *show, void *arg);
void endpoint_show_parked(struct endpoint *e, modern_parked_fn *show, void *arg);
void endpoint_end_streams(struct endpoint *e);
void endpoint_pass(struct endpoint *e, uint64_t session, struct span message);
/* End all sessions now; `why` is sent where the transport can carry a reason. `closed` is called
 * from the loop when the last connection is gone. */
void endpoint_close(struct endpoint *e, const char *why, void (*closed)(void *arg), void *arg);

#endif
