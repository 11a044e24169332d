/* Methods of the stateless era, requests in flight, their events and answers; and whether a message
 * is of that era, and what is wrong with its version or capabilities. Called by duplex.c and
 * modern_http.c for each message; modern_park.c and modern_listen.c share its requests, and
 * http_agent.c and hub/conductor_join.c ask for the era. */
#include "mcp/agent/modern.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/subscriptions.h"
#include "mcp/agent/modern_request.h"
#include "mcp/agent/modern_result.h"
#include "mcp/agent/seal.h"
#include "mcp/agent/welcome.h"
#include "mcp/circle.h"
#include "mcp/outcome.h"

/* --- answering --- */

static struct buf *begin(struct modern_agent *a, void *reply, enum mcp_out_kind kind)
{
    return a->out->begin(a->owner, reply, kind);
}

static void end(struct modern_agent *a, void *reply, enum mcp_out_kind kind)
{
    a->out->end(a->owner, reply, kind);
}

static void set_status(struct modern_agent *a, void *reply, int status)
{
    if (a->out->set_status)
        a->out->set_status(a->owner, reply, status);
}

static void reply_fault(struct modern_agent *a, void *reply, struct span id,
                        const struct modern_fault *fault)
{
    set_status(a, reply, fault->status);
    modern_put_fault(begin(a, reply, MCP_OUT_FINAL), id, fault);
    end(a, reply, MCP_OUT_FINAL);
}

static void reply_invalid(struct modern_agent *a, void *reply, struct span id, const char *text)
{
    reply_fault(a, reply, id, &(struct modern_fault){200, RPC_INVALID_PARAMS, text, NULL});
}

static void begin_result(struct buf *out, struct span id)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, id);
    buf_str(out, ",\"result\":");
}

const struct modern_fault modern_needs_tasks = {
    400, MCP_ERROR_CAPABILITY, "Missing required client capability: tasks need the extension",
    "{\"requiredCapabilities\":{\"extensions\":{\"" MCP_TASKS "\":{}}}}"};

/* --- requests in flight --- */

struct modern_request *modern_request_new(struct modern_agent *a, const struct mcp_message *m,
                                          void *reply)
{
    struct modern_request *r = MEM_NEW(struct modern_request);

    r->agent = a;
    r->level = -1;
    list_init(&r->asks);
    holding_init(&r->held, router_holdings(a->host.router), NULL);
    list_append(&a->requests, &r->node);
    a->n_requests++;
    modern_request_bind(r, m, reply);
    return r;
}

/* From now on the answer is sent as the response to this message. */
void modern_request_bind(struct modern_request *r, const struct mcp_message *m, void *reply)
{
    const struct json_slot *token = &m->slots[SLOT_META_TOKEN];

    mem_free(r->id);
    mem_free(r->token);
    r->id = mem_span(m->rpc.id);
    r->token = token->type == JSON_NONE ? NULL : mem_span(token->value);
    r->reply = reply;
    r->waits = true;
}

bool modern_request_hold(struct modern_request *r, size_t bytes)
{
    bool fits = !r->held.in || holdings_fit(r->held.in, bytes);

    if (r->held.in && fits)
        holding_set(&r->held, bytes);
    return fits;
}

void modern_request_free(struct modern_request *r)
{
    struct modern_agent *a = r->agent;

    holding_set(&r->held, 0);
    if (r->parked)
        a->n_parked--;
    timer_clear(router_timers(a->host.router), &r->flush);
    LIST_EACH_SAFE (&r->asks, it)
        modern_ask_free(LIST_ENTRY(it, struct modern_ask, node));
    list_remove(&r->node);
    a->n_requests--;
    buf_fini(&r->end_bytes);
    mem_free(r->id);
    mem_free(r->token);
    mem_free(r->text);
    mem_free(r);
}

/* --- verbs --- */

/* The HTTP status: some errors have one of their own. */
static int status_of(enum op op, const struct outcome *outcome)
{
    int64_t code = outcome->kind == OUTCOME_ERROR ? rpc_error_of(outcome->body).code : 0;

    if (code == MCP_ERROR_CAPABILITY)
        return 400;
    if (outcome->kind == OUTCOME_FAILED && outcome->why == FAIL_LIMITED)
        return 429;
    return op == OP_OTHER && code == RPC_METHOD_NOT_FOUND ? 404 : 200;
}

/* The stateless era has no error code for a missing resource. */
static void put_error(struct buf *out, struct span id, enum op op, const struct outcome *outcome)
{
    if (op == OP_READ_RESOURCE && outcome->kind == OUTCOME_ERROR) {
        struct rpc_error error = rpc_error_of(outcome->body);
        if (error.code == MCP_ERROR_NO_RESOURCE) {
            BUF_SCOPED text = {0};
            json_unescape(&text, error.message.n ? error.message : SPAN("\"\""));
            rpc_put_error(out, id, RPC_INVALID_PARAMS, buf_view(&text), error.data);
            return;
        }
    }
    /* OP_CALL_TOOL: so our own failures get the common code, not that of a missing resource. */
    mcp_outcome_put(out, id, op == OP_READ_RESOURCE ? OP_CALL_TOOL : op, outcome);
}

static bool went_wrong(const struct outcome *outcome)
{
    return outcome->kind != OUTCOME_RESULT || outcome->is_error;
}

/*
 * A server of the initialize era asked for input that this client never declared, was refused, and
 * failed. In the stateless era that is an error with its own code, which names the capabilities.
 */
static void reply_lacking(struct modern_request *r, unsigned lacks)
{
    BUF_SCOPED data = {0};

    if (lacks & ANSWERS_SAMPLING_TOOLS)
        lacks |= ANSWERS_SAMPLING;
    buf_str(&data, "{\"requiredCapabilities\":");
    mcp_put_capabilities(&data, lacks);
    buf_char(&data, '}');
    reply_fault(r->agent, r->reply, span_str(r->id),
                &(struct modern_fault){400, MCP_ERROR_CAPABILITY,
                                       "Missing required client capability: the server asked the "
                                       "client for something it did not declare",
                                       buf_cstr(&data)});
}

static void put_end(struct modern_request *r, enum op op, const struct outcome *outcome)
{
    struct modern_agent *a = r->agent;
    BUF_SCOPED body = {0};
    struct outcome told = mcp_outcome_for_model(op, outcome, r->results, &body);

    set_status(a, r->reply, status_of(op, &told));
    struct buf *out = begin(a, r->reply, MCP_OUT_FINAL);
    if (told.kind == OUTCOME_RESULT) {
        begin_result(out, span_str(r->id));
        modern_result_put(out, told.body, op == OP_READ_RESOURCE);
        buf_char(out, '}');
    } else {
        put_error(out, span_str(r->id), op, &told);
    }
    end(a, r->reply, MCP_OUT_FINAL);
}

void modern_request_finish(struct modern_request *r, enum op op, unsigned lacks,
                           const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_FAILED && outcome->why == FAIL_CANCELLED)
        r->agent->out->abandon(r->agent->owner, r->reply);
    else if (lacks && went_wrong(outcome))
        reply_lacking(r, lacks);
    else
        put_end(r, op, outcome);
    modern_request_free(r);
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct modern_request *r = call->consumer_data;

    (void)self;
    if (call->op == OP_STANDING) {
        modern_listen_ended(r);
    } else if (r->waits) {
        modern_request_finish(r, call->op, call->lacks, outcome);
    } else if (!modern_keep_end(r, call, outcome)) {
        /* Nobody waits for the answer: the agent closed its stream, or did not retry in time. */
        log_debug("mcp", "a parked call ended: " SPAN_FMT, SPAN_ARG(outcome->text));
        modern_request_free(r);
    }
}

static void send_progress(struct modern_request *r, const struct event *e)
{
    struct modern_agent *a = r->agent;
    struct buf *out = begin(a, r->reply, MCP_OUT_RELATED);

    buf_str(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":");
    buf_span(out, span_cut(e->params, 0, e->token_at.at));
    buf_str(out, r->token);
    buf_span(out, span_from(e->params, e->token_at.at + e->token_at.n));
    buf_char(out, '}');
    end(a, r->reply, MCP_OUT_RELATED);
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct modern_agent *a = CONTAINER_OF(self, struct modern_agent, peer);
    struct modern_request *r = call->consumer_data;

    if (call->op == OP_STANDING) {
        modern_listen_event(r, event);
        return;
    }
    if (event->kind == EVENT_UNASKED) {
        modern_unask(r, event->name);
        return;
    }
    if (!r->waits)
        return; /* parked: there is no stream to send the event on */
    if (event->kind == EVENT_PROGRESS && r->token) {
        send_progress(r, event);
    } else if (event->kind == EVENT_LOG && r->level >= 0 && mcp_level(event->level) >= r->level) {
        rpc_put_notification(begin(a, r->reply, MCP_OUT_RELATED), "notifications/message",
                             event->params);
        end(a, r->reply, MCP_OUT_RELATED);
    }
}

static const struct peer_verbs verbs = {.event = on_event, .ask = modern_on_ask, .done = on_done};

/* --- methods --- */

struct modern_handler {
    const char *method;
    void (*handle)(struct modern_agent *a, const struct mcp_message *m, void *reply,
                   struct span principal, int arg);
    int arg;
};

static void handle_discover(struct modern_agent *a, const struct mcp_message *m, void *reply,
                            struct span principal, int arg)
{
    (void)principal, (void)arg;
    struct buf *out = begin(a, reply, MCP_OUT_FINAL);
    begin_result(out, m->rpc.id);
    buf_str(out, "{\"resultType\":\"complete\",\"supportedVersions\":[\"" MCP_MODERN "\"],");
    welcome_put_capabilities(out, a->host.view, true);
    welcome_put_instructions(out, a->host.view);
    buf_str(out, "," MODERN_NO_CACHE "," MODERN_IDENTITY "}}");
    end(a, reply, MCP_OUT_FINAL);
}

static struct span client_info(const struct mcp_message *m)
{
    return json_get(m->slots[SLOT_META].value, MCP_META_PREFIX "clientInfo").value;
}

static void handle_list(struct modern_agent *a, const struct mcp_message *m, void *reply,
                        struct span principal, int kind)
{
    (void)principal;
    if (m->slots[SLOT_CURSOR].type != JSON_NONE) {
        reply_invalid(a, reply, m->rpc.id,
                      "Invalid cursor: this server gives its lists in one page");
        return;
    }
    struct span list = view_list(a->host.view, (enum item_kind)kind);
    struct buf *out = begin(a, reply, MCP_OUT_FINAL);
    begin_result(out, m->rpc.id);
    buf_printf(out, "{\"resultType\":\"complete\",\"%s\":", mcp_lists[kind].member);
    buf_span(out, list);
    buf_str(out, "," MODERN_NO_CACHE ",\"_meta\":{" MODERN_SERVER_INFO);
    if (circle_is_bridge(client_info(m))) {
        buf_char(out, ',');
        circle_put_marks(out, a->host.view);
    }
    buf_str(out, "}}}");
    end(a, reply, MCP_OUT_FINAL);
}

/* `request` has op, name and the name's place; the rest is filled in here. */
static void open_call(struct modern_agent *a, const struct mcp_message *m, void *reply,
                      struct span principal, struct request request)
{
    const struct json_slot *level = &m->slots[SLOT_META_LOG_LEVEL];
    BUF_SCOPED kept_meta = {0}, level_text = {0}, declares = {0};

    if (modern_resume(a, m, reply, principal, &request.goes_on))
        return;
    mcp_put_foreign_meta(&kept_meta, m->slots[SLOT_META].value);
    struct modern_request *r = modern_request_new(a, m, reply);
    r->principal = seal_digest(principal);
    r->digest = modern_digest(m);
    r->results = mcp_outcome_wants_results(a->host.errors, m->slots[SLOT_META_INFO].value);
    struct span wanted =
        level->type == JSON_STRING ? json_text(level->value, &level_text) : SPAN_EMPTY;
    r->level = mcp_level(wanted);
    if (r->level >= 0)
        subscriptions_want_log(a->host.router, a->host.view, r->level, mcp_levels[r->level]);
    request.params = m->rpc.params;
    request.meta_at = mcp_cut(m->rpc.params, &m->slots[SLOT_META]);
    request.meta_keep = buf_view(&kept_meta);
    request.log_level = r->level >= 0 ? wanted : SPAN_EMPTY;
    request.answers = mcp_answers_of(m->slots[SLOT_META_CAPABILITIES].value) | ANSWERS_BY_RETRY;
    mcp_merge_extras(&declares, m->slots[SLOT_META_CAPABILITIES].value, SPAN_EMPTY);
    request.declares = buf_view(&declares);
    request.wants_progress = r->token != NULL;
    request.takes_structured = true;
    request.party = r->principal;
    request.anybody = reply && !principal.n; /* on HTTP, without a token */
    request.as_task = request.op == OP_CALL_TOOL && m->slots[SLOT_TASK].type == JSON_OBJECT;
    request.resumes = !request.goes_on && (m->slots[SLOT_REQUEST_STATE].type != JSON_NONE ||
                                           m->slots[SLOT_INPUT_RESPONSES].type != JSON_NONE);
    /* call_open may call `done`, which frees r: r is valid only if a call is returned. */
    struct call *call = call_open(a->host.router, &a->peer, a->host.view, &request, r);
    if (call)
        r->call = call;
}

static void handle_open(struct modern_agent *a, const struct mcp_message *m, void *reply,
                        struct span principal, int op)
{
    struct request request = {.op = (enum op)op};
    BUF_SCOPED scratch = {0};

    if (mcp_read_named(m, &request, &scratch))
        open_call(a, m, reply, principal, request);
    else
        reply_invalid(a, reply, m->rpc.id, buf_cstr(&scratch));
}

/* The server may know a method that MCP does not define. */
static void pass_on(struct modern_agent *a, const struct mcp_message *m, void *reply,
                    struct span principal, int op)
{
    BUF_SCOPED method = {0};

    open_call(a, m, reply, principal,
              (struct request){.op = (enum op)op, .name = rpc_method_text(&m->rpc, &method)});
}

static bool takes_tasks(const struct mcp_message *m)
{
    return (mcp_answers_of(m->slots[SLOT_META_CAPABILITIES].value) & ANSWERS_TASKS) != 0;
}

static void handle_task(struct modern_agent *a, const struct mcp_message *m, void *reply,
                        struct span principal, int op)
{
    if (takes_tasks(m))
        handle_open(a, m, reply, principal, op);
    else
        reply_fault(a, reply, m->rpc.id, &modern_needs_tasks);
}

/* clang-format off */
static const struct modern_handler handlers[] = {
    {"tools/call", handle_open, OP_CALL_TOOL},
    {"tools/list", handle_list, ITEM_TOOL},
    {"resources/read", handle_open, OP_READ_RESOURCE},
    {"resources/list", handle_list, ITEM_RESOURCE},
    {"resources/templates/list", handle_list, ITEM_TEMPLATE},
    {"prompts/get", handle_open, OP_GET_PROMPT},
    {"prompts/list", handle_list, ITEM_PROMPT},
    {"completion/complete", handle_open, OP_COMPLETE},
    {"subscriptions/listen", modern_listen, 0},
    {"server/discover", handle_discover, 0},
};

/* Used only if a server of the view has tasks. */
static const struct modern_handler task_handlers[] = {
    {"tasks/get", handle_task, OP_TASK_GET},
    {"tasks/update", handle_task, OP_TASK_UPDATE},
    {"tasks/cancel", handle_task, OP_TASK_CANCEL},
};
/* clang-format on */

static const struct modern_handler *handler_of(const struct mcp_host *host,
                                               const struct mcp_message *m)
{
    static const struct modern_handler any_other = {NULL, pass_on, OP_OTHER};

    for (size_t i = 0; i < COUNT_OF(handlers); i++)
        if (rpc_method_is(&m->rpc, handlers[i].method))
            return &handlers[i];
    for (size_t i = 0; i < COUNT_OF(task_handlers); i++)
        if (rpc_method_is(&m->rpc, task_handlers[i].method))
            return welcome_has_tasks(host->view) ? &task_handlers[i] : NULL;
    return mcp_host_passes(host, m) ? &any_other : NULL;
}

bool modern_knows_method(const struct mcp_host *host, const struct mcp_message *m)
{
    return handler_of(host, m) != NULL;
}

/* Only on pipes: on HTTP an agent cancels by closing the stream. */
static void handle_cancelled(struct modern_agent *a, const struct mcp_message *m)
{
    const struct json_slot *id = &m->slots[SLOT_REQUEST_ID];

    if (id->type == JSON_NONE)
        return;
    LIST_EACH (&a->requests, it) {
        struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        if (r->call && span_is(id->value, r->id)) {
            r->waits = r->waits && r->call->op != OP_STANDING; /* a listen just ends */
            call_cancel(r->call, FAIL_CANCELLED);
            return;
        }
    }
}

void modern_agent_receive(struct modern_agent *a, const struct mcp_message *m, void *reply,
                          struct span principal)
{
    if (m->rpc.kind == RPC_NOTIFICATION && rpc_method_is(&m->rpc, "notifications/cancelled"))
        handle_cancelled(a, m);
    if (m->rpc.kind != RPC_REQUEST)
        return;
    const struct modern_handler *h = handler_of(&a->host, m);
    if (!h) {
        reply_fault(a, reply, m->rpc.id,
                    &(struct modern_fault){404, RPC_METHOD_NOT_FOUND, "Method not found", NULL});
        return;
    }
    BUF_SCOPED why = {0};
    if (h->handle != pass_on && mcp_params_mislead(m, &why)) {
        reply_invalid(a, reply, m->rpc.id, buf_cstr(&why));
    } else {
        if (a->host.wake)
            a->host.wake(a->host.arg);
        h->handle(a, m, reply, principal, h->arg);
    }
}

void modern_agent_cancel(struct modern_agent *a, void *reply)
{
    LIST_EACH (&a->requests, it) {
        struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        if (r->waits && r->reply == reply && r->call) {
            r->waits = false; /* the reply is closed already */
            call_cancel(r->call, FAIL_CANCELLED);
            return;
        }
    }
}

/* --- life --- */

struct modern_agent *modern_agent_new(const struct mcp_host *host, const struct mcp_out *out,
                                      void *owner)
{
    struct modern_agent *a = MEM_NEW(struct modern_agent);

    peer_init(&a->peer, &verbs);
    a->peer.principal = host->principal;
    a->peer.endpoint = host->endpoint;
    a->host = *host;
    a->out = out;
    a->owner = owner;
    list_init(&a->requests);
    return a;
}

void modern_agent_free(struct modern_agent *a)
{
    call_cancel_all(&a->peer);
    LIST_EACH_SAFE (&a->requests, it) /* what is left: requests whose call has ended */
        modern_request_free(LIST_ENTRY(it, struct modern_request, node));
    mem_free(a);
}

size_t modern_agent_pending(const struct modern_agent *a)
{
    return a->n_requests - a->n_parked;
}

size_t modern_agent_calls(const struct modern_agent *a)
{
    size_t n = a->n_requests;

    LIST_EACH (&a->requests, it) {
        const struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        n -= r->text || r->moved || r->ended;
    }
    return n;
}

void modern_agent_put_listens(const struct modern_agent *a, struct buf *out)
{
    LIST_EACH (&a->requests, it) {
        const struct modern_request *r = LIST_ENTRY(it, struct modern_request, node);
        if (!r->text)
            continue;
        json_one_line(out, span_str(r->text));
        buf_char(out, '\n');
    }
}

/* --- the envelope --- */

bool modern_claims(const struct mcp_message *m)
{
    return m->slots[SLOT_META_VERSION].type != JSON_NONE;
}

bool modern_check(const struct mcp_message *m, struct modern_fault *fault, struct buf *scratch)
{
    const struct json_slot *version = &m->slots[SLOT_META_VERSION];

    if (version->type != JSON_STRING) {
        *fault = (struct modern_fault){
            400, RPC_INVALID_PARAMS,
            "params._meta needs " MCP_META_PREFIX "protocolVersion, a string", NULL};
        return false;
    }
    if (m->slots[SLOT_META_CAPABILITIES].type != JSON_OBJECT) {
        *fault = (struct modern_fault){
            400, RPC_INVALID_PARAMS,
            "params._meta needs " MCP_META_PREFIX "clientCapabilities, an object", NULL};
        return false;
    }
    if (!json_string_is(version->value, SPAN(MCP_MODERN))) {
        buf_str(scratch, "{\"supported\":[\"" MCP_MODERN "\"],\"requested\":");
        buf_span(scratch, version->value);
        buf_char(scratch, '}');
        *fault = (struct modern_fault){400, MCP_ERROR_VERSION, "Unsupported protocol version",
                                       buf_cstr(scratch)};
        return false;
    }
    return true;
}

void modern_put_fault(struct buf *out, struct span id, const struct modern_fault *fault)
{
    rpc_put_error(out, id, fault->code, span_str(fault->text), span_str(fault->data));
}
