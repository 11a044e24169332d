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
/* How a tool call that failed in the bridge is reported (`errors` in the configuration). */
enum mcp_errors {
    MCP_ERRORS_AUTO, /* depends on the agent's program */
    MCP_ERRORS_PROTOCOL,
    MCP_ERRORS_RESULTS,
};
/* Does the agent with this clientInfo (raw, may be empty) get results instead of errors? */
bool mcp_outcome_wants_results(enum mcp_errors errors, struct span client_info);
/*
 * A tool call that a person or a rule did not allow becomes a result that says it is an error, so
 * that the agent's model reads the reason; `body` holds that result. With `results`, so does every
 * other failure of the bridge, except an unknown tool and bad arguments, which are the agent's
 * mistakes. Answers of a server stay as they are.
 */
struct outcome mcp_outcome_for_model(enum op op, const struct outcome *outcome, bool results,
                                     struct buf *body);

/* Append the whole response message. */
void mcp_outcome_put(struct buf *out, struct span id, enum op op, const struct outcome *outcome);
/* The word for a failure in error data and in metrics. */
const char *mcp_outcome_failure_word(enum failure why);

/* Append an error response for text that is no message at all. */
void mcp_outcome_put_parse_error(struct buf *out, int code);

#endif
