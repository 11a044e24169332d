/* Reading and checking the envelope of a JSON-RPC message, comparing its method, and writing
 * requests, notifications, results and errors. Called by mcp/, acp/, browser/agent.c, rockbot/,
 * hub/ and cmd/. */
#include "wire/rpc.h"

#include "wire/json_scan.h"

enum { ENV_JSONRPC, ENV_ID, ENV_METHOD, ENV_PARAMS, ENV_RESULT, ENV_ERROR, ENV_COUNT };

static bool is_id(const struct json_slot *id)
{
    return id->type == JSON_STRING || id->type == JSON_NUMBER;
}

/* What is wrong with the envelope, or NULL. */
static const char *envelope_fault(const struct json_slot *env, bool versioned)
{
    enum json_type params = env[ENV_PARAMS].type, id = env[ENV_ID].type;
    int bodies = (env[ENV_METHOD].type != JSON_NONE) + (env[ENV_RESULT].type != JSON_NONE) +
                 (env[ENV_ERROR].type != JSON_NONE);

    if (env[ENV_JSONRPC].type != JSON_NONE && !versioned)
        return "\"jsonrpc\" is not \"2.0\"";
    if (bodies == 0)
        return "neither \"method\" nor \"result\" nor \"error\"";
    if (bodies > 1)
        return "more than one of \"method\", \"result\" and \"error\"";
    if (id != JSON_NONE && !is_id(&env[ENV_ID]) &&
        !(id == JSON_NULL && env[ENV_ERROR].type != JSON_NONE))
        return "\"id\" is neither a string nor a number";
    if (env[ENV_METHOD].type != JSON_NONE && env[ENV_METHOD].type != JSON_STRING)
        return "\"method\" is not a string";
    if (params != JSON_NONE && params != JSON_OBJECT && params != JSON_ARRAY)
        return "\"params\" is neither an object nor an array";
    if (env[ENV_RESULT].type != JSON_NONE && id == JSON_NONE)
        return "a result without \"id\"";
    if (env[ENV_ERROR].type != JSON_NONE && env[ENV_ERROR].type != JSON_OBJECT)
        return "\"error\" is not an object";
    return NULL;
}

static enum rpc_kind envelope_kind(const struct json_slot *env)
{
    if (env[ENV_METHOD].type != JSON_NONE)
        return env[ENV_ID].type != JSON_NONE ? RPC_REQUEST : RPC_NOTIFICATION;
    return env[ENV_RESULT].type != JSON_NONE ? RPC_RESULT : RPC_ERROR;
}

int rpc_skim(struct span text, const struct json_shape *params_shape,
             const struct json_shape *result_shape, struct json_slot *slots, size_t n_slots,
             struct rpc_message *out)
{
    const struct json_shape_row rows[] = {
        {"jsonrpc", ENV_JSONRPC, NULL},       {"id", ENV_ID, NULL},
        {"method", ENV_METHOD, NULL},         {"params", ENV_PARAMS, params_shape},
        {"result", ENV_RESULT, result_shape}, {"error", ENV_ERROR, NULL},
    };
    const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot env[ENV_COUNT] = {0};
    enum json_type type;

    if (n_slots)
        memset(slots, 0, n_slots * sizeof *slots);
    *out = (struct rpc_message){.kind = RPC_INVALID, .text = scan_trim(text), .slots = slots};
    int error = json_skim_envelope(text, &shape, env, slots, &type, &out->one_line);
    if (error)
        return error;

    if (type == JSON_ARRAY) {
        out->kind = RPC_BATCH;
        return 0;
    }
    if (type != JSON_OBJECT) {
        out->why = "not an object";
        return 0;
    }
    struct span version = env[ENV_JSONRPC].value;
    out->versioned = span_eq(version, SPAN("\"2.0\"")) || json_string_is(version, SPAN("2.0"));
    /* The error answer to an invalid request needs the id, if the id is one that may be echoed. */
    if (is_id(&env[ENV_ID]) || env[ENV_ID].type == JSON_NULL)
        out->id = env[ENV_ID].value;
    out->why = envelope_fault(env, out->versioned);
    if (out->why)
        return 0;
    out->kind = envelope_kind(env);
    if (env[ENV_METHOD].type == JSON_STRING)
        out->method = span_of(env[ENV_METHOD].value.p + 1, env[ENV_METHOD].value.n - 2);
    out->params = env[ENV_PARAMS].value;
    out->result = env[ENV_RESULT].value;
    out->error = env[ENV_ERROR].value;
    return 0;
}

bool rpc_batch_fits(const struct rpc_message *batch, size_t max, struct buf *why)
{
    struct json_iter it = json_iter(batch->text);
    size_t n = 0;

    while (json_next(&it))
        n++;
    if (n <= max)
        return true;
    buf_printf(why,
               "a batch of %zu messages: at most %zu are taken at once (limits.batch), and none of "
               "these was run; send them in smaller batches",
               n, max);
    return false;
}

/* The method with its quotes, which are the bytes right around the span. */
struct span rpc_method_quoted(const struct rpc_message *m)
{
    return span_of(m->method.p - 1, m->method.n + 2);
}

bool rpc_method_is(const struct rpc_message *m, const char *name)
{
    return m->method.p && json_string_is(rpc_method_quoted(m), span_str(name));
}

bool rpc_method_resembles(const struct rpc_message *m, const char *name)
{
    return m->method.p && json_string_resembles(rpc_method_quoted(m), span_str(name));
}

struct span rpc_method_text(const struct rpc_message *m, struct buf *scratch)
{
    return m->method.p ? json_text(rpc_method_quoted(m), scratch) : SPAN_EMPTY;
}

struct rpc_error rpc_error_of(struct span error)
{
    struct rpc_error e = {.code = RPC_INTERNAL_ERROR};
    struct json_slot message = json_get(error, "message");
    int64_t code;

    if (json_int(json_get(error, "code").value, &code))
        e.code = code;
    if (message.type == JSON_STRING)
        e.message = message.value;
    e.data = json_get(error, "data").value;
    return e;
}

static void put_head(struct buf *out, struct span id)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\"");
    if (id.n) {
        buf_str(out, ",\"id\":");
        buf_span(out, id);
    }
}

static void put_method(struct buf *out, const char *method, struct span params)
{
    buf_str(out, ",\"method\":");
    json_quote(out, span_str(method));
    if (params.n) {
        buf_str(out, ",\"params\":");
        buf_span(out, params);
    }
    buf_char(out, '}');
}

void rpc_put_request(struct buf *out, uint64_t id, const char *method, struct span params)
{
    put_head(out, SPAN_EMPTY);
    buf_str(out, ",\"id\":");
    buf_u64(out, id);
    put_method(out, method, params);
}

void rpc_put_notification(struct buf *out, const char *method, struct span params)
{
    put_head(out, SPAN_EMPTY);
    put_method(out, method, params);
}

void rpc_put_result(struct buf *out, struct span id, struct span result)
{
    buf_room(out, id.n + result.n + 64);
    put_head(out, id);
    buf_str(out, ",\"result\":");
    buf_span(out, result);
    buf_char(out, '}');
}

void rpc_put_error_raw(struct buf *out, struct span id, struct span error)
{
    put_head(out, id);
    buf_str(out, ",\"error\":");
    buf_span(out, error);
    buf_char(out, '}');
}

void rpc_put_error(struct buf *out, struct span id, int64_t code, struct span message,
                   struct span data)
{
    put_head(out, id);
    buf_printf(out, ",\"error\":{\"code\":%lld,\"message\":", (long long)code);
    json_quote(out, message);
    if (data.n) {
        buf_str(out, ",\"data\":");
        buf_span(out, data);
    }
    buf_str(out, "}}");
}
