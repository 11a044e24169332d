/*
 * tool_result: ends of tool calls that the bridge itself answers.
 *
 * What a model did wrong is told as a result that says it is an error, not as an error of the
 * protocol: only results reach the model, and it can do better next time.
 */
#ifndef RIALTO_MCP_TOOL_RESULT_H
#define RIALTO_MCP_TOOL_RESULT_H

#include "core/router.h"

/* Each ends the call. */
void tool_fail(struct call *call, const char *why);
/* `object` is raw JSON: given as structured content, and as text to clients that have none. */
void tool_finish_structured(struct call *call, struct span object);

#endif
