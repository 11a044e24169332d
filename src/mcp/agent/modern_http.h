/*
 * modern_http: requests of the stateless era over HTTP.
 *
 * One POST, one request, one answer or stream; headers repeat what the body says and are checked
 * against it; closing the stream cancels the request. There is no session.
 */
#ifndef RIALTO_MCP_AGENT_MODERN_HTTP_H
#define RIALTO_MCP_AGENT_MODERN_HTTP_H

#include "io/http_server.h"
#include "mcp/agent/modern.h"

struct modern_http;

struct modern_http *modern_http_new(const struct mcp_host *host);
void modern_http_free(struct modern_http *h);

struct modern_agent *modern_http_agent(const struct modern_http *h);
/* Is this request of the stateless era, by its body or by its headers? */
bool modern_http_claims(const struct mcp_message *m, const struct http_request *req);
void modern_http_handle(struct modern_http *h, struct http_exchange *x,
                        const struct http_request *req, const struct mcp_message *m);
/* Does any POST wait for its answer? */
bool modern_http_waits(const struct modern_http *h);
/* Send a comment on each open stream, so that no proxy takes the stream for dead, and make streams
 * of POSTs that have waited long. */
void modern_http_keep_alive(struct modern_http *h);

#endif
