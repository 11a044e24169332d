/*
 * circle: bridges that lead back to themselves.
 *
 * A bridge among whose servers is the bridge itself, or another bridge that has it as a server,
 * would offer its own tools again under longer and longer names. So bridges tell each other with
 * their lists which bridges stand behind them: every server that is a bridge has a mark, random for
 * each process, and a view tells the marks of its members and those that they have told. A server
 * that is told its own mark leads back, and is given up. See docs/decisions/010-circles.md.
 *
 * A view also tells the mark of its process. A server that an agent registered (discreet) is given
 * up when it tells ours: it leads to us, and would close a circle that breaks somewhere else.
 */
#ifndef RIALTO_MCP_CIRCLE_H
#define RIALTO_MCP_CIRCLE_H

#include "base/buf.h"
#include "core/view.h"
#include "mcp/server/upstream.h"

/* Does this clientInfo or serverInfo (raw; may be empty) say that it is one of us? */
bool circle_is_bridge(struct span info);

/* --- as a server --- */
/* Append the member of a list's `_meta` that tells another bridge what stands behind this view. */
void circle_put_marks(struct buf *out, const struct view *v);

/* --- as a client --- */
/* The server has introduced itself: it gets a mark if it is a bridge. */
void circle_greeted(struct mcp_provider *p);
/* A list has come. True if it leads back to us: the server is given up then. */
bool circle_found(struct mcp_provider *p, struct span result);
void circle_fini(struct mcp_provider *p);

#endif
