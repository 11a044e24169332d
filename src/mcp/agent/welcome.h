/*
 * welcome: what the bridge says of itself and of a view: capabilities, identity, instructions.
 */
#ifndef RIALTO_MCP_AGENT_WELCOME_H
#define RIALTO_MCP_AGENT_WELCOME_H

#include "base/buf.h"
#include "core/view.h"

/*
 * Append the members "capabilities", "serverInfo" and, if there are any, "instructions". A view of
 * several providers, or of one that is still unknown, offers everything: what comes later must not
 * have been denied before, and an empty list is a true answer.
 */
void mcp_put_welcome(struct buf *out, const struct view *v);
/* Only "capabilities":{...}. */
void mcp_put_capabilities_of(struct buf *out, const struct view *v);
/* Only ,"instructions":"..." with the comma before it, or nothing. */
void mcp_put_instructions_of(struct buf *out, const struct view *v);

#endif
