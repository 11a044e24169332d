/*
 * tool_call: tool calls that the bridge answers itself or turns into something else.
 *
 * What a model did wrong is told as a result that says it is an error, not as an error of the
 * protocol: only results reach the model, and it can do better next time.
 *
 * Nouns: tool_.
 */
#ifndef RIALTO_MCP_TOOL_CALL_H
#define RIALTO_MCP_TOOL_CALL_H

#include "core/router.h"

/* Append a result of one text that says it is an error. */
void tool_put_failure(struct buf *out, struct span why);

/* Each ends the call. */
void tool_fail(struct call *call, const char *why);
/* `object` is raw JSON: given as structured content, and as text to clients that have none. */
void tool_finish_structured(struct call *call, struct span object);

/*
 * Give the request other params: `members` ("k":v,...), and whatever else than a name, arguments
 * and hop-scoped things the old ones have. `params` holds the text, in which `members` begin at 1.
 */
void tool_redirect(struct request *r, struct span members, struct buf *params);

#endif
