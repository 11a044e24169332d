/*
 * welcome: what the bridge says of itself and of a view: capabilities, identity, instructions.
 */
#ifndef RIALTO_MCP_AGENT_WELCOME_H
#define RIALTO_MCP_AGENT_WELCOME_H

#include "base/buf.h"
#include "core/view.h"

/* The answer to initialize. `server_info` (raw) replaces our own, for a view that has only tools;
 * or NULL. */
void welcome_put_answer(struct buf *out, struct span id, const char *version, const struct view *v,
                        const char *server_info);
/* Only "capabilities":{...}. */
void welcome_put_capabilities(struct buf *out, const struct view *v, bool modern);
/* Is any server of the view known to support tasks? Only then we declare tasks. */
bool welcome_has_tasks(const struct view *v);
/* Only ,"instructions":"..." with the comma before it, or nothing. */
void welcome_put_instructions(struct buf *out, const struct view *v);

#endif
