/* Responses read as outcomes, outcomes written as responses, and the table of failures. Called by
 * agent/ and server/upstream_calls.c; admin/metrics.c and admin/audit.c use the words for failures.
 */
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
    [FAIL_DENIED] = {RPC_INVALID_REQUEST, "denied"},
    [FAIL_ARGUMENTS] = {RPC_INVALID_PARAMS, "arguments"},
    [FAIL_PROTOCOL] = {RPC_INTERNAL_ERROR, "protocol"},
    [FAIL_SHUTDOWN] = {MCP_ERROR_SERVER, "shutdown"},
    [FAIL_LIMITED] = {MCP_ERROR_SERVER, "limited"},
};
/* clang-format on */

/* The first text of a result that says it is an error. */
static struct span error_text(struct span result, struct buf *text)
{
    struct json_slot content = json_get(result, "content");
    struct json_iter it = json_iter(content.value);
    struct json_slot first = {0};

    if (content.type == JSON_ARRAY && json_next(&it) && it.type == JSON_OBJECT)
        first = json_get(it.value, "text");
    return first.type == JSON_STRING ? json_text(first.value, text) : SPAN_EMPTY;
}

struct outcome mcp_outcome_read(const struct mcp_message *m, struct buf *text)
{
    struct outcome o = {.kind = OUTCOME_RESULT, .body = m->rpc.result};

    if (m->rpc.kind == RPC_ERROR) {
        struct json_slot message = json_get(m->rpc.error, "message");
        o = (struct outcome){.kind = OUTCOME_ERROR, .body = m->rpc.error};
        if (message.type == JSON_STRING)
            o.text = json_text(message.value, text);
    } else if (m->slots[SLOT_IS_ERROR].type == JSON_TRUE) {
        o.is_error = true;
        o.text = error_text(o.body, text);
    }
    return o;
}

/*
 * Programs that do not show JSON-RPC errors to their models, by the clientInfo.name they send. The
 * OpenAI Agents SDK for JavaScript sends its transport and address as the name. The one for Python
 * sends "mcp", which the Python SDK sends for every program that chose no name: those are agents
 * as well, and their models can do more with a result than with an exception.
 */
static const char *const hiding_clients[] = {"mcp", "streamable-http: *", "sse: *", "stdio: *"};

bool mcp_outcome_wants_results(enum mcp_errors errors, struct span client_info)
{
    struct json_slot name = client_info.n ? json_get(client_info, "name") : (struct json_slot){0};
    BUF_SCOPED scratch = {0};
    bool hides = false;

    if (errors != MCP_ERRORS_AUTO || name.type != JSON_STRING)
        return errors == MCP_ERRORS_RESULTS;
    struct span text = json_text(name.value, &scratch);
    for (size_t i = 0; i < COUNT_OF(hiding_clients) && !hides; i++)
        hides = span_glob(span_str(hiding_clients[i]), text);
    return hides;
}

struct outcome mcp_outcome_for_model(enum op op, const struct outcome *outcome, bool results,
                                     struct buf *body)
{
    bool refused = outcome->why == FAIL_REFUSED || outcome->why == FAIL_DENIED;
    bool mistake = outcome->why == FAIL_UNKNOWN || outcome->why == FAIL_ARGUMENTS;

    if (op != OP_CALL_TOOL || outcome->kind != OUTCOME_FAILED ||
        !(refused || (results && !mistake)))
        return *outcome;
    buf_str(body, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(body, outcome->text);
    buf_str(body, "}],\"isError\":true");
    if (!refused)
        buf_printf(body, ",\"_meta\":{\"rialto/reason\":\"%s\",\"rialto/retryable\":%s}",
                   failures[outcome->why].word, outcome->retryable ? "true" : "false");
    buf_char(body, '}');
    return (struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(body)};
}

const char *mcp_outcome_failure_word(enum failure why)
{
    return failures[why].word;
}

/* The error object {code, message, data}; for OUTCOME_ERROR and OUTCOME_FAILED. */
static void put_error_object(struct buf *out, enum op op, const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_ERROR) {
        buf_span(out, outcome->body);
        return;
    }
    int code = failures[outcome->why].code;
    if (outcome->why == FAIL_UNKNOWN && op == OP_READ_RESOURCE)
        code = MCP_ERROR_NO_RESOURCE;
    if (outcome->why == FAIL_UNKNOWN && op == OP_OTHER)
        code = RPC_METHOD_NOT_FOUND;
    buf_printf(out, "{\"code\":%d,\"message\":", code);
    json_quote(out, outcome->text);
    buf_printf(out, ",\"data\":{\"reason\":\"%s\",\"retryable\":%s", failures[outcome->why].word,
               outcome->retryable ? "true" : "false");
    if (outcome->retry_ms)
        buf_printf(out, ",\"retryAfterMs\":%llu", (unsigned long long)outcome->retry_ms);
    buf_str(out, "}}");
}

void mcp_outcome_put(struct buf *out, struct span id, enum op op, const struct outcome *outcome)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, id);
    if (outcome->kind == OUTCOME_RESULT) {
        buf_str(out, ",\"result\":");
        buf_span(out, outcome->body);
    } else {
        buf_str(out, ",\"error\":");
        put_error_object(out, op, outcome);
    }
    buf_char(out, '}');
}

void mcp_outcome_put_parse_error(struct buf *out, int code)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "Parse error: %s", err_name(code));
    rpc_put_error(out, SPAN_EMPTY, RPC_PARSE_ERROR, buf_view(&text), SPAN_EMPTY);
}
