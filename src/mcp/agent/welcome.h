/*
 * welcome: what the bridge says of itself and of a view: capabilities, identity, instructions.
 */
#ifndef RIALTO_MCP_AGENT_WELCOME_H
#define RIALTO_MCP_AGENT_WELCOME_H

#include "base/buf.h"
#include "core/view.h"

/*
 * Append the members "capabilities", "serverInfo" and, if there are any, "instructions". A view of
 * several providers, or of one that is still unknown, declares every capability: providers may come
 * later, and an empty list is a valid answer until then.
 */
void welcome_put(struct buf *out, const struct view *v);
/* Only "capabilities":{...}. */
void welcome_put_capabilities(struct buf *out, const struct view *v, bool modern);
/* Has a server of the view tasks, as far as is known? Only then are they declared. */
bool welcome_has_tasks(const struct view *v);
/* Only ,"instructions":"..." with the comma before it, or nothing. */
void welcome_put_instructions(struct buf *out, const struct view *v);

#endif
