/* Calls of a remote server: sends tools, prompts and resource reads over the bus, and turns replies
 * into outcomes. Called by the core through remote_verbs, which remote.c registers. */
#include "base/mem.h"
#include "rockbot/proxy_parts.h"
#include "rockbot/trace.h"

#include <inttypes.h>
#include <stdio.h>

static struct remote *of_peer(struct peer *self)
{
    return CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct remote, core);
}

static void finish(struct remote_request *q, const struct outcome *outcome)
{
    struct call *call = q->call;

    call->provider_data = NULL;
    call_done(call, outcome);
}

static void call_failed(struct remote_request *q, enum failure why, bool retryable,
                        const char *reason)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "server '%s': %s", q->remote->alias, reason);
    finish(q, &(struct outcome){.kind = OUTCOME_FAILED,
                                .why = why,
                                .text = buf_view(&text),
                                .retryable = retryable});
}

static const struct {
    const char *code;
    enum failure why;
} tool_errors[] = {
    {"tool_not_found", FAIL_UNKNOWN},
    {"timeout", FAIL_TIMEOUT},
    {"execution_failed", FAIL_UNAVAILABLE},
    {"auth_required", FAIL_REFUSED},
};

/* The bridge's ToolError. Wrong arguments become a result with isError, because the model can
 * correct them. */
static void tool_failed(struct remote_request *q, const struct json_slot *in)
{
    BUF_SCOPED message = {0}, body = {0};
    enum failure why = FAIL_UNAVAILABLE;

    for (size_t i = 0; i < COUNT_OF(tool_errors); i++)
        if (json_string_is(in[ERROR_CODE].value, span_str(tool_errors[i].code)))
            why = tool_errors[i].why;
    json_unescape(&message, in[ERROR_MESSAGE].value);
    if (json_string_is(in[ERROR_CODE].value, SPAN("invalid_arguments"))) {
        buf_str(&body, "{\"content\":[{\"type\":\"text\",\"text\":");
        json_quote(&body, buf_view(&message));
        buf_str(&body, "}],\"isError\":true}");
        finish(q, &(struct outcome){.kind = OUTCOME_RESULT,
                                    .body = buf_view(&body),
                                    .is_error = true,
                                    .text = buf_view(&message)});
    } else {
        /* For RockBot a timeout is retryable, although the tool may have done its work. */
        bool again = in[ERROR_RETRYABLE].type == JSON_TRUE && q->call->repeatable;
        call_failed(q, why, again, buf_cstr(&message));
    }
}

static void invoke_answered(struct remote_request *q, enum rockbot_record type, struct span body)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    BUF_SCOPED result = {0}, why = {0};
    bool is_error = false;
    struct err err;

    if (type == ROCKBOT_ERROR && rockbot_read(type, body, in, &err) == 0)
        tool_failed(q, in);
    else if (type == ROCKBOT_ERROR)
        call_failed(q, FAIL_PROTOCOL, false, err.text);
    else if (remote_put_result(&result, body, &is_error, &why))
        finish(q, &(struct outcome){.kind = OUTCOME_RESULT,
                                    .body = buf_view(&result),
                                    .is_error = is_error,
                                    .text = buf_view(&why)});
    else
        call_failed(q, FAIL_PROTOCOL, false, buf_cstr(&why));
}

static const struct remote_request_kind invoke = {.request = ROCKBOT_INVOKE,
                                                  .response = ROCKBOT_RESULT,
                                                  .is_invoke = true,
                                                  .answered = invoke_answered,
                                                  .failed = call_failed};

typedef bool put_fn(struct buf *out, struct span body, struct buf *why);

/* An answer on the manage topic: a result, or the bridge's error. */
static void finish_managed(struct remote_request *q, struct span body, put_fn *put, int code)
{
    BUF_SCOPED result = {0}, why = {0}, error = {0};

    if (put(&result, body, &why)) {
        finish(q, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
    } else {
        buf_printf(&error, "{\"code\":%d,\"message\":", code);
        json_quote(&error, buf_view(&why));
        buf_char(&error, '}');
        finish(q, &(struct outcome){
                      .kind = OUTCOME_ERROR, .body = buf_view(&error), .text = buf_view(&why)});
    }
}

enum { ERROR_PARAMS = -32602, ERROR_NO_RESOURCE = -32002 };

static void prompt_answered(struct remote_request *q, enum rockbot_record type, struct span body)
{
    (void)type;
    finish_managed(q, body, remote_put_prompt, ERROR_PARAMS);
}

static void resource_answered(struct remote_request *q, enum rockbot_record type, struct span body)
{
    (void)type;
    finish_managed(q, body, remote_put_contents, ERROR_NO_RESOURCE);
}

static const struct remote_request_kind get_prompt = {.request = ROCKBOT_GET_PROMPT,
                                                      .response = ROCKBOT_PROMPT,
                                                      .answered = prompt_answered,
                                                      .failed = call_failed};
static const struct remote_request_kind read_resource = {.request = ROCKBOT_READ_RESOURCE,
                                                         .response = ROCKBOT_RESOURCE,
                                                         .answered = resource_answered,
                                                         .failed = call_failed};

/* The time limit for the bus and the bridge: shorter than the rest of the call's time, so that
 * their errors, which say more than a timeout, come first. */
static uint64_t time_for_bridge(const struct remote *r, const struct call *call)
{
    const struct bus_proxy_options *options = &r->proxy->options;
    uint64_t now = loop_now(r->proxy->loop), margin = options->margin;
    uint64_t left = call->deadline.at > now ? call->deadline.at - now : 1;

    if (!timer_is_set(&call->deadline))
        left = options->timeout + margin;
    uint64_t for_bridge = left > 2 * margin ? left - margin : left / 2 + 1;
    return for_bridge < options->timeout ? for_bridge : options->timeout;
}

/* Continues the consumer's trace with a new span. */
static void add_trace(struct message *m, struct trace *trace, const struct request *request,
                      struct buf *scratch)
{
    struct span meta = span_cut(request->params, request->meta_at.at, request->meta_at.n);
    static const char *const keys[] = {ROCKBOT_TRACEPARENT, ROCKBOT_TRACESTATE};
    struct message from = {0};

    for (size_t i = 0; meta.n && i < COUNT_OF(keys); i++) {
        struct json_slot slot = json_get(meta, keys[i]);
        if (slot.type == JSON_STRING)
            (void)message_add_header(&from, keys[i], json_text(slot.value, &scratch[i]));
    }
    if (trace_extract(trace, &from)) {
        trace_descend(trace);
        trace_inject(trace, m);
    }
}

static struct remote_request *send_invoke(struct remote *r, struct call *call,
                                          const struct request *request)
{
    struct json_slot arguments = json_get(request->params, "arguments");
    struct message m = {0};
    struct buf body = {0}, scratch[2] = {{0}, {0}};
    struct trace trace;
    char id[ID_TOKEN_SIZE], timeout[24];
    uint64_t for_bridge = time_for_bridge(r, call);

    id_token(id);
    snprintf(timeout, sizeof timeout, "%" PRIu64, for_bridge);
    rockbot_put(
        &body, ROCKBOT_INVOKE,
        (const struct span[]){
            [INVOKE_CALL] = span_str(id),
            [INVOKE_TOOL] = request->name,
            [INVOKE_ARGUMENTS] = arguments.type == JSON_OBJECT ? arguments.value : SPAN_EMPTY,
            [INVOKE_BATCH] = SPAN_EMPTY,
        });
    (void)message_add_header(&m, ROCKBOT_TRUST, SPAN(ROCKBOT_TRUST_REQUEST));
    (void)message_add_header(&m, ROCKBOT_PROVIDER, SPAN(ROCKBOT_PROVIDER_MCP));
    (void)message_add_header(&m, ROCKBOT_TIMEOUT, span_str(timeout));
    (void)message_add_header(&m, ROCKBOT_SERVER, span_str(r->name));
    add_trace(&m, &trace, request, scratch);
    struct remote_request *q =
        remote_request_send(r, &invoke, call, buf_view(&body), &m, for_bridge);
    buf_fini(&scratch[0]);
    buf_fini(&scratch[1]);
    buf_fini(&body);
    return q;
}

static struct remote_request *send_managed(struct remote *r, struct call *call,
                                           const struct request *request)
{
    bool prompt = request->op == OP_GET_PROMPT;
    struct json_slot arguments = json_get(request->params, "arguments");
    struct message m = {0};
    BUF_SCOPED body = {0};

    if (prompt)
        rockbot_put(&body, ROCKBOT_GET_PROMPT,
                    (const struct span[]){
                        [GET_PROMPT_SERVER] = span_str(r->name),
                        [GET_PROMPT_NAME] = request->name,
                        [GET_PROMPT_ARGUMENTS] =
                            arguments.type == JSON_OBJECT ? arguments.value : SPAN_EMPTY,
                    });
    else
        rockbot_put(
            &body, ROCKBOT_READ_RESOURCE,
            (const struct span[]){[READ_SERVER] = span_str(r->name), [READ_URI] = request->name});
    return remote_request_send(r, prompt ? &get_prompt : &read_resource, call, buf_view(&body), &m,
                               MANAGE_WAIT_MS);
}

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct remote *r = of_peer(self);

    if (request->op == OP_CALL_TOOL)
        call->provider_data = send_invoke(r, call, request);
    else if (request->op == OP_GET_PROMPT || request->op == OP_READ_RESOURCE)
        call->provider_data = send_managed(r, call, request);
    else if (request->op == OP_COMPLETE)
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT,
                                          .body = SPAN("{\"completion\":{\"values\":[]}}")});
    else
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome)
{
    (void)self, (void)call, (void)key, (void)outcome;
}

/*
 * The bus has no message that cancels a call: its answer will be dropped. After a timeout the
 * server's details are asked for, to find out whether the bridge is still there.
 */
static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    struct remote *r = of_peer(self);

    if (call->provider_data)
        remote_request_drop(call->provider_data);
    call->provider_data = NULL;
    if (why == FAIL_TIMEOUT && r->indexed && r->core.state == PROVIDER_READY && r->proxy->is_up)
        remote_ask(r);
}

const struct peer_verbs remote_verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};
