/*
 * outcome: how the end of a call reads in JSON-RPC.
 *
 * Nouns: mcp_outcome_.
 */
#ifndef RIALTO_MCP_OUTCOME_H
#define RIALTO_MCP_OUTCOME_H

#include "mcp/protocol.h"

/* The outcome of a response. `text` holds the reason of a failure, to which the outcome points. */
struct outcome mcp_outcome_read(const struct mcp_message *response, struct buf *text);
/*
 * A tool call that a person did not allow becomes a result that says it is an error, so that the
 * agent's model reads the reason; `body` holds that result. Every other outcome stays as it is.
 */
struct outcome mcp_outcome_of_refusal(enum op op, const struct outcome *outcome, struct buf *body);

/* Append the whole response message. */
void mcp_outcome_put(struct buf *out, struct span id, enum op op, const struct outcome *outcome);
/* The word for a failure in error data and in metrics. */
const char *mcp_outcome_failure_word(enum failure why);

#endif
