/*
 * entrance: every way by which agents on the network reach one view: Streamable HTTP, WebSocket and
 * the old HTTP+SSE.
 */
#ifndef RIALTO_MCP_AGENT_ENTRANCE_H
#define RIALTO_MCP_AGENT_ENTRANCE_H

#include "io/http_server.h"
#include "mcp/agent/session.h"

struct entrance;

struct entrance_options {
    size_t max_sessions;  /* for each of the three ways */
    uint64_t session_ttl; /* ms without a request or an open stream */
    size_t max_message;   /* bytes */
};

struct entrance *entrance_new(struct loop *loop, const struct mcp_host *host,
                              const struct entrance_options *options);
/*
 * A request for the view's own path, or, with `sse`, for the one of HTTP+SSE. A WebSocket is
 * recognised by its handshake.
 */
void entrance_handle(struct entrance *e, struct http_exchange *x, const struct http_request *req,
                     bool sse);
size_t entrance_sessions(const struct entrance *e);
/* All sessions end now. `closed` is called from the loop when the last connection is gone. */
void entrance_close(struct entrance *e, void (*closed)(void *arg), void *arg);

#endif
