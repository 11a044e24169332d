/*
 * welcome: what the bridge says of itself and of a view: capabilities, identity, instructions.
 */
#ifndef RIALTO_MCP_AGENT_WELCOME_H
#define RIALTO_MCP_AGENT_WELCOME_H

#include "base/buf.h"
#include "core/view.h"

/* The answer to initialize. `server_info` (raw) stands in place of our own, by a view that has
 * tools alone; or NULL. */
void welcome_put_answer(struct buf *out, struct span id, const char *version, const struct view *v,
                        const char *server_info);
/* Only "capabilities":{...}. */
void welcome_put_capabilities(struct buf *out, const struct view *v, bool modern);
/* Has a server of the view tasks, as far as is known? Only then are they declared. */
bool welcome_has_tasks(const struct view *v);
/* Only ,"instructions":"..." with the comma before it, or nothing. */
void welcome_put_instructions(struct buf *out, const struct view *v);

#endif
