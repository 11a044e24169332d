#include "mcp/outcome.h"

/* clang-format off */
static const struct {
    int code;
    const char *word;
} failures[FAIL_COUNT] = {
    [FAIL_NONE] = {RPC_INTERNAL_ERROR, "none"},
    [FAIL_UNKNOWN] = {RPC_INVALID_PARAMS, "unknown"},
    [FAIL_UNAVAILABLE] = {MCP_ERROR_SERVER, "unavailable"},
    [FAIL_CRASHED] = {MCP_ERROR_SERVER, "crashed"},
    [FAIL_TIMEOUT] = {MCP_ERROR_TIMEOUT, "timeout"},
    [FAIL_BUSY] = {MCP_ERROR_SERVER, "busy"},
    [FAIL_CANCELLED] = {MCP_ERROR_SERVER, "cancelled"},
    [FAIL_REFUSED] = {RPC_METHOD_NOT_FOUND, "refused"},
    [FAIL_PROTOCOL] = {RPC_INTERNAL_ERROR, "protocol"},
    [FAIL_SHUTDOWN] = {MCP_ERROR_SERVER, "shutdown"},
};
/* clang-format on */

const char *mcp_failure_word(enum failure why)
{
    return failures[why].word;
}

void mcp_put_error_object(struct buf *out, enum op op, const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_ERROR) {
        mcp_put_raw(out, outcome->body);
        return;
    }
    int code = failures[outcome->why].code;
    if (outcome->why == FAIL_UNKNOWN && op == OP_READ_RESOURCE)
        code = MCP_ERROR_NO_RESOURCE;
    buf_printf(out, "{\"code\":%d,\"message\":", code);
    json_quote(out, outcome->text);
    buf_printf(out, ",\"data\":{\"reason\":\"%s\",\"retryable\":%s}}", failures[outcome->why].word,
               outcome->retryable ? "true" : "false");
}

void mcp_put_outcome(struct buf *out, struct span id, enum op op, const struct outcome *outcome)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, id);
    if (outcome->kind == OUTCOME_RESULT) {
        buf_str(out, ",\"result\":");
        mcp_put_raw(out, outcome->body);
    } else {
        buf_str(out, ",\"error\":");
        mcp_put_error_object(out, op, outcome);
    }
    buf_char(out, '}');
}
