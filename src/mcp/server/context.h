/*
 * context: prompts and resources whose text agents get as a part of the instructions.
 *
 * Each time the server's prompts or resources were listed, those that the configuration names are
 * fetched, one after the other; when their text has changed, the catalog is published again with
 * the new text. A prompt that needs arguments which are not configured is left out.
 */
#ifndef RIALTO_MCP_SERVER_CONTEXT_H
#define RIALTO_MCP_SERVER_CONTEXT_H

#include "mcp/server/upstream.h"

/* The prompts or resources were listed and published. */
void context_refresh(struct mcp_provider *p);
/* The text that follows the server's own instructions; empty when there is none. */
struct span context_text(const struct mcp_provider *p);
void context_fini(struct mcp_provider *p);

#endif
