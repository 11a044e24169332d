/*
 * ws_agent: agents that come by WebSocket, one JSON-RPC message per text frame.
 *
 * The connection is the session. The subprotocol is `mcp`, for agents that offer one. A ws_agents
 * holds all agents of one view.
 *
 * Nouns: ws_agents_.
 */
#ifndef RIALTO_MCP_AGENT_WS_AGENT_H
#define RIALTO_MCP_AGENT_WS_AGENT_H

#include "io/ws.h"
#include "mcp/agent/session.h"

struct ws_agents;

struct ws_agents_options {
    size_t max_agents;
    size_t max_message;
};

struct ws_agents *ws_agents_new(struct loop *loop, const struct mcp_host *host,
                                const struct ws_agents_options *options);
/* A request for which ws_is_wanted is true: its connection becomes an agent, or the request is
 * refused. */
void ws_agents_accept(struct ws_agents *all, struct http_exchange *x,
                      const struct http_request *req);
size_t ws_agents_count(const struct ws_agents *all);
/*
 * The agents' calls end now; the connections are closed (1001, `why`) within a second. Then
 * `closed` is called, from the loop, and `all` is freed when `closed` returns. No agent may be
 * accepted meanwhile.
 */
void ws_agents_close(struct ws_agents *all, const char *why, void (*closed)(void *arg), void *arg);

#endif
