/*
 * http_agent: MCP over Streamable HTTP at one path, for one view.
 *
 * POST carries messages in and their answers out (JSON, or an SSE stream as soon as a call sends
 * more than its answer), GET is the standing stream of a session, DELETE ends the session. An
 * endpoint owns its sessions. Requests of the stateless era come to the same path by POST, and each
 * is recognised by its content; they have no session.
 */
#ifndef RIALTO_MCP_AGENT_HTTP_AGENT_H
#define RIALTO_MCP_AGENT_HTTP_AGENT_H

#include "io/http_server.h"
#include "mcp/agent/session.h"

struct http_agent;

struct http_agent_options {
    size_t max_sessions;
    uint64_t session_ttl; /* ms without a request or an open stream */
};

struct http_agent *http_agent_new(struct loop *loop, const struct mcp_host *host,
                                  const struct http_agent_options *options);
/* Ends all sessions; their exchanges are answered or closed. */
void http_agent_free(struct http_agent *e);
void http_agent_handle(struct http_agent *e, struct http_exchange *x,
                       const struct http_request *request);
size_t http_agent_sessions(const struct http_agent *e);

#endif
