/*
 * outcome: how the end of a call reads in JSON-RPC.
 *
 * Nouns: mcp_outcome_.
 */
#ifndef RIALTO_MCP_OUTCOME_H
#define RIALTO_MCP_OUTCOME_H

#include "mcp/protocol.h"

/* What a response means. `text` takes the reason of a failure, which the outcome points to. */
struct outcome mcp_outcome_read(const struct mcp_message *response, struct buf *text);
/*
 * A tool call that a person did not allow is told as the tool's own failure, so that the agent's
 * model hears of it: gives that result, its body in `body`. Every other outcome stays as it is.
 */
struct outcome mcp_outcome_of_refusal(enum op op, const struct outcome *outcome, struct buf *body);

/* Append the whole response message. */
void mcp_outcome_put(struct buf *out, struct span id, enum op op, const struct outcome *outcome);
/* The word for a failure that stands in error data and in metrics. */
const char *mcp_outcome_failure_word(enum failure why);

#endif
