/*
 * outcome: how the end of a call reads in JSON-RPC.
 */
#ifndef RIALTO_MCP_OUTCOME_H
#define RIALTO_MCP_OUTCOME_H

#include "mcp/protocol.h"

/* Append the whole response message. */
void mcp_put_outcome(struct buf *out, struct span id, enum op op, const struct outcome *outcome);
/* Append only the error object {code, message, data}; for OUTCOME_ERROR and OUTCOME_FAILED. */
void mcp_put_error_object(struct buf *out, enum op op, const struct outcome *outcome);
/* The word for a failure that stands in error data and in metrics. */
const char *mcp_failure_word(enum failure why);

#endif
