/*
 * circle: bridges that lead back to themselves.
 *
 * A bridge that has itself as a server, directly or through another bridge, would offer its own
 * tools again under longer and longer names. So bridges send marks with their lists: every server
 * that is a bridge gets a mark, random for each process, and a list of a view carries the marks of
 * the view's servers and all marks that these servers have sent. A server that sends us the mark
 * that we gave it leads back to us, and is given up. See docs/decisions/010-circles.md.
 *
 * A list also carries the mark of the process. A server that an agent registered (discreet) is
 * given up as soon as it sends the mark of our process: it leads to us, and would close a circle
 * that might then be broken at a server of the operator.
 */
#ifndef RIALTO_MCP_CIRCLE_H
#define RIALTO_MCP_CIRCLE_H

#include "base/buf.h"
#include "core/view.h"
#include "mcp/server/upstream.h"

/* Is this the clientInfo or serverInfo (raw; may be empty) of a bridge like this one? */
bool circle_is_bridge(struct span info);

/* --- as a server --- */
/* Append the member of a list's `_meta` that carries the marks of this view to another bridge. */
void circle_put_marks(struct buf *out, const struct view *v);

/* --- as a client --- */
/* The handshake with the server is done: give the server a mark if it is a bridge. */
void circle_greeted(struct mcp_provider *p);
/* A list has come. True if the server is given up: it leads back to us, or to too many bridges. */
bool circle_found(struct mcp_provider *p, struct span result);
void circle_fini(struct mcp_provider *p);

#endif
