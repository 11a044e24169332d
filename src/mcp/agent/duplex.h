/*
 * duplex: an agent on a pipe that carries everything in one stream, either era (stdio, WebSocket,
 * HTTP+SSE).
 *
 * Each request says which era it belongs to. Text that is no message is answered with an error. All
 * messages to the agent go through the transport's mcp_out with `reply` NULL.
 */
#ifndef RIALTO_MCP_AGENT_DUPLEX_H
#define RIALTO_MCP_AGENT_DUPLEX_H

#include "mcp/agent/modern.h"

struct duplex;

struct duplex *duplex_new(const struct mcp_host *host, const struct mcp_out *out, void *owner);
/* Cancels the agent's calls; their last messages are sent before this returns. */
void duplex_free(struct duplex *d);

/* One message, or a batch of them, as text. */
void duplex_receive(struct duplex *d, struct span text);
/* The same for a message that was skimmed already. */
void duplex_deliver(struct duplex *d, const struct mcp_message *m);
/* Send an error as the answer to the request with this raw id; empty: to no request in
 * particular. */
void duplex_complain(struct duplex *d, struct span id, int code, const char *text);
/*
 * The agent's greeting and the messages after it wait until duplex_release: for a host that asks
 * for lists only once, right after it started us, and would miss tools that come a moment later. A
 * list request without a greeting before it does not wait.
 */
void duplex_hold_greeting(struct duplex *d);
void duplex_release(struct duplex *d);
/* Do messages wait for duplex_release? */
bool duplex_is_holding(const struct duplex *d);
/* Set the view of an agent of the stateless era; call this before its first request. */
void duplex_show(struct duplex *d, struct view *view);
/* Another daemon takes over. Must we still answer a request? Listens and held messages do not
 * count: the other daemon receives them again. */
bool duplex_is_busy(const struct duplex *d);
/* Append what that daemon must know: to `out` members of an object, to `lines` the messages that it
 * must receive again. */
void duplex_export(const struct duplex *d, struct buf *out, struct buf *lines);
void duplex_show_parked(const struct duplex *d, modern_parked_fn *show, void *arg);
void duplex_import(struct duplex *d, struct span state);
/* Requests that are not answered yet. */
size_t duplex_pending(const struct duplex *d);

#endif
