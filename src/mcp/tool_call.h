/*
 * tool_call: tool calls that the bridge answers itself or turns into another request.
 *
 * A mistake of the model is answered with a result that says it is an error, not with an error of
 * the protocol: only results reach the model, which can then correct the call.
 *
 * Nouns: tool_.
 */
#ifndef RIALTO_MCP_TOOL_CALL_H
#define RIALTO_MCP_TOOL_CALL_H

#include "core/router.h"

/* Append a result of one text that says it is an error. */
void tool_put_failure(struct buf *out, struct span why);

/* Each of these ends the call. */
void tool_fail(struct call *call, const char *why);
/* `object` is raw JSON: sent as structured content, and as text for clients without that. */
void tool_finish_structured(struct call *call, struct span object);

/*
 * Give the request new params: `members` ("k":v,...), and all members of the old params except
 * name, uri, arguments and `_meta`. `params` holds the text, in which `members` begin at 1.
 */
void tool_redirect(struct request *r, struct span members, struct buf *params);

#endif
