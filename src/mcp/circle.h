/*
 * circle: bridges that lead back to themselves.
 *
 * A bridge that has itself as a server, directly or through another bridge, would offer its own
 * tools again under longer and longer names. So bridges tell each other with their lists which
 * bridges stand behind them: every server that is a bridge has a mark, random for each process, and
 * a view tells the marks of its members and the marks that these have told. A server that tells us
 * the mark we gave it leads back to us, and is given up. See docs/decisions/010-circles.md.
 *
 * A view also tells the mark of its process. A server that an agent registered (discreet) is given
 * up when it tells the mark of our process: it leads to us, and would close a circle that is broken
 * at another bridge.
 */
#ifndef RIALTO_MCP_CIRCLE_H
#define RIALTO_MCP_CIRCLE_H

#include "base/buf.h"
#include "core/view.h"
#include "mcp/server/upstream.h"

/* Is this the clientInfo or serverInfo (raw; may be empty) of a bridge like this one? */
bool circle_is_bridge(struct span info);

/* --- as a server --- */
/* Append the member of a list's `_meta` that tells another bridge what stands behind this view. */
void circle_put_marks(struct buf *out, const struct view *v);

/* --- as a client --- */
/* The handshake with the server is done: give the server a mark if it is a bridge. */
void circle_greeted(struct mcp_provider *p);
/* A list has come. True if the server leads back to us: then the server is given up. */
bool circle_found(struct mcp_provider *p, struct span result);
void circle_fini(struct mcp_provider *p);

#endif
