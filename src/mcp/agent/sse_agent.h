/*
 * sse_agent: agents that speak HTTP+SSE, the transport of 2024-11-05.
 *
 * GET opens a stream whose first event names the address to POST messages to: the same path with an
 * unguessable session id. Each POST is answered with 202 at once, and all messages of the bridge
 * come on the stream. The stream is the session: when it closes, the session ends. An
 * sse_agents holds all agents of one view.
 *
 * Nouns: sse_agents_.
 */
#ifndef RIALTO_MCP_AGENT_SSE_AGENT_H
#define RIALTO_MCP_AGENT_SSE_AGENT_H

#include "io/http_server.h"
#include "mcp/agent/session.h"

struct sse_agents;

struct sse_agents *sse_agents_new(struct loop *loop, const struct mcp_host *host,
                                  size_t max_agents);
/* Ends all sessions and their streams. */
void sse_agents_free(struct sse_agents *all);
/* Handle a request for the path, of any method. */
void sse_agents_handle(struct sse_agents *all, struct http_exchange *x,
                       const struct http_request *req);
size_t sse_agents_count(const struct sse_agents *all);

#endif
