/* Calls sent to a server as requests, their answers and cancellation, and the table of requests
 * that wait for an answer. The router calls the verbs; the other files that implement the provider
 * (upstream.h) send their requests through this file. */
#include "base/mem.h"
#include "core/route.h"
#include "mcp/legacy.h"
#include "mcp/outcome.h"
#include "mcp/param_headers.h"
#include "mcp/server/as_tools.h"
#include "mcp/server/task_request.h"
#include "mcp/tool_call.h"

#include <inttypes.h>

static struct mcp_provider *of_peer(struct peer *self)
{
    return CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct mcp_provider, core);
}

/* --- sending --- */

void upstream_sent_renew(struct mcp_provider *p, struct sent *sent)
{
    sent->id = ++p->last_id;
    idmap_put(&p->sent, sent->id, sent);
}

void upstream_sent_resume(struct mcp_provider *p, struct sent *sent, uint64_t id)
{
    idmap_take(&p->sent, sent->id);
    sent->id = id;
    idmap_put(&p->sent, id, sent);
}

struct sent *upstream_sent_new(struct mcp_provider *p, sent_answered_fn *answered,
                               sent_failed_fn *failed)
{
    struct sent *sent = MEM_NEW(struct sent);

    sent->answered = answered;
    sent->failed = failed;
    list_append(&p->all_sent, &sent->node);
    upstream_sent_renew(p, sent);
    return sent;
}

struct sent *upstream_sent_of(const struct mcp_provider *p, struct span raw_id)
{
    int64_t id;

    return json_int(raw_id, &id) && id > 0 ? idmap_get(&p->sent, (uint64_t)id) : NULL;
}

void upstream_sent_free(struct mcp_provider *p, struct sent *sent)
{
    idmap_take(&p->sent, sent->id);
    list_remove(&sent->node);
    upstream_modern_free(sent->rounds);
    task_request_free(sent->task_request);
    mem_free(sent);
}

static const char *version_of(const struct mcp_provider *p)
{
    return p->version[0] ? p->version : NULL;
}

void upstream_send(struct mcp_provider *p, struct mcp_parcel parcel)
{
    parcel.version = version_of(p);
    parcel.modern = p->modern;
    p->ops->end(p->link, &parcel);
}

void upstream_note(struct mcp_provider *p, bool in, struct span message)
{
    traffic_add(&p->traffic, router_timers(p->core.router)->now, in, message);
}

/* A method name of MCP needs no escapes in JSON; one that an agent made up may need some. */
static void begin_request(struct buf *out, uint64_t id, const char *method, bool is_ours)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_u64(out, id);
    buf_str(out, ",\"method\":");
    if (is_ours) {
        buf_char(out, '"');
        buf_str(out, method);
        buf_char(out, '"');
    } else {
        json_quote(out, span_str(method));
    }
}

void upstream_request(struct mcp_provider *p, const struct sent *sent, const char *method,
                      struct span members)
{
    upstream_request_named(p, sent, method, SPAN_EMPTY, members);
}

void upstream_request_named(struct mcp_provider *p, const struct sent *sent, const char *method,
                            struct span name, struct span members)
{
    struct buf *out = p->ops->begin(p->link);
    unsigned tasks = p->offers & OFFERS_TASKS ? ANSWERS_TASKS : 0u;
    size_t at = out->n;

    begin_request(out, sent->id, method, true);
    if (p->modern) {
        buf_str(out, ",\"params\":{\"_meta\":{");
        upstream_modern_put_meta(out, p->declares | tasks, SPAN(UPSTREAM_DECLARES));
        buf_str(out, members.n ? "}," : "}");
        buf_span(out, members);
        buf_char(out, '}');
    } else if (members.n) {
        buf_str(out, ",\"params\":{");
        buf_span(out, members);
        buf_char(out, '}');
    }
    buf_char(out, '}');
    if (!sent->call)
        upstream_note(p, false, span_from(buf_view(out), at));
    upstream_send(p, (struct mcp_parcel){
                         .kind = RPC_REQUEST, .id = sent->id, .method = method, .name = name});
}

void upstream_put_capabilities(struct buf *out, unsigned answers, struct span declares)
{
    struct json_slot extensions =
        declares.n ? json_get(declares, "extensions") : (struct json_slot){0};
    bool merged = (answers & ANSWERS_TASKS) && extensions.type == JSON_OBJECT;
    BUF_SCOPED own = {0}, all = {0};

    /* Tasks are an extension, too: there must be one object of that name. */
    mcp_put_capabilities(&own, merged ? answers & ~(unsigned)ANSWERS_TASKS : answers);
    if (merged) {
        size_t at = (size_t)(extensions.value.p - declares.p);
        buf_span(&all, span_cut(declares, 0, at));
        json_insert(&all, extensions.value, SPAN("\"" MCP_TASKS "\":{}"));
        buf_span(&all, span_from(declares, at + extensions.value.n));
        declares = buf_view(&all);
    }
    json_insert(out, buf_view(&own),
                declares.n ? span_cut(declares, 1, declares.n - 2) : SPAN_EMPTY);
}

void upstream_notify(struct mcp_provider *p, const char *method, struct span params)
{
    struct buf *out = p->ops->begin(p->link);
    size_t at = out->n;

    rpc_put_notification(out, method, params);
    upstream_note(p, false, span_from(buf_view(out), at));
    upstream_send(p, (struct mcp_parcel){.kind = RPC_NOTIFICATION, .method = method});
}

void upstream_withdraw(struct mcp_provider *p, uint64_t id, const char *reason)
{
    BUF_SCOPED params = {0};

    if (p->ops->forget && p->ops->forget(p->link, id))
        return;
    buf_printf(&params, "{\"requestId\":%" PRIu64 ",\"reason\":\"%s\"}", id, reason);
    upstream_notify(p, "notifications/cancelled", buf_view(&params));
}

/* --- verbs --- */

const struct item *upstream_tool(const struct mcp_provider *p, struct span own)
{
    const struct catalog *c = p->core.catalog;

    for (size_t i = 0; c && i < c->n[ITEM_TOOL]; i++) {
        const struct item *tool = &c->items[ITEM_TOOL][i];
        if (span_eq(tool->own.n ? tool->own : tool->name, own))
            return tool;
    }
    return NULL;
}

bool upstream_gives_any(const struct mcp_provider *p, struct span own)
{
    const struct item *tool = p->gives_any ? upstream_tool(p, own) : NULL;

    return tool && (tool->flags & ITEM_GIVES_ANY);
}

static void call_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    BUF_SCOPED text = {0}, body = {0};

    if (sent->task_request && upstream_tasks_made(p, sent, m))
        return;
    if (ok && !p->plain && m->slots[SLOT_RESULT_TYPE].type == JSON_STRING &&
        upstream_modern_ask_input(p, sent, m))
        return;
    if (!ok && sent->rounds && upstream_modern_ask_visits(p, sent, m))
        return;
    struct outcome outcome = mcp_outcome_read(m, &text);
    if (sent->made) {
        outcome = as_tools_outcome(sent->made, &outcome, &body);
    } else if (ok && (p->modern || p->gives_any) && !(sent->call->answers & ANSWERS_ANY_RETRY)) {
        const struct call *c = sent->call;
        bool wrap = c->op == OP_CALL_TOOL && upstream_gives_any(p, span_of(c->name, c->name_n));
        legacy_put_result(&body, c->op, outcome.body, wrap);
        outcome.body = buf_view(&body);
    }
    call_done(sent->call, &outcome);
}

static void call_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "server '%s' gave no answer: %s", p->alias, why);
    call_done(sent->call, &(struct outcome){.kind = OUTCOME_FAILED,
                                            .why = status ? FAIL_PROTOCOL : FAIL_UNAVAILABLE,
                                            .text = buf_view(&text),
                                            .locked = status == 401,
                                            .retryable = sent->call->repeatable});
}

/* Append the arguments that the tool wants repeated as headers; nearly all tools want none. */
static void put_param_headers(struct mcp_provider *p, const struct request *r, struct buf *out)
{
    const struct item *tool = NULL;

    if (p->param_headers && r->op == OP_CALL_TOOL)
        tool = upstream_tool(p, r->name);
    if (tool && param_headers_possible(tool->raw)) {
        struct json_slot arguments = json_get(r->params, "arguments");
        param_headers_put(out, tool->raw,
                          arguments.type == JSON_OBJECT ? arguments.value : SPAN_EMPTY);
    }
}

void upstream_send_call(struct mcp_provider *p, const struct sent *sent,
                        const struct request *request, struct span extra)
{
    BUF_SCOPED meta = {0}, headers = {0}, other = {0};
    const char *method = mcp_operations[request->op].method;

    if (!method) {
        buf_span(&other, request->name);
        method = buf_cstr(&other);
    }

    if (p->modern) {
        if (p->listen_due) /* a call must not overtake a subscription made before it */
            upstream_listen(p);
        upstream_modern_put_meta(&meta, request->answers, request->declares);
        if (request->log_level.n)
            buf_printf(&meta, ",\"" MCP_META_PREFIX "logLevel\":\"" SPAN_FMT "\"",
                       SPAN_ARG(request->log_level));
        put_param_headers(p, request, &headers);
    }
    /* Our request id is unique on this hop, so it serves as the progress token as well. */
    if (request->wants_progress)
        buf_printf(&meta, "%s\"progressToken\":%" PRIu64, meta.n ? "," : "", sent->id);

    struct buf *out = p->ops->begin(p->link);
    begin_request(out, sent->id, method, !other.n);
    if (request->params.n || meta.n || extra.n) {
        buf_str(out, ",\"params\":");
        params_put(out, request, buf_view(&meta), extra);
    }
    buf_char(out, '}');
    p->ops->end(p->link, &(struct mcp_parcel){.kind = RPC_REQUEST,
                                              .id = sent->id,
                                              .method = method,
                                              .name = other.n ? SPAN_EMPTY : request->name,
                                              .headers = buf_view(&headers),
                                              .version = version_of(p),
                                              .modern = p->modern,
                                              .own_id = request->own_id});
}

static void tell_server(struct mcp_provider *p, const struct request *request)
{
    char *method = mem_span(request->name);
    BUF_SCOPED params = {0};

    buf_span(&params, request->params);
    upstream_notify(p, method, buf_view(&params));
    mem_free(method);
}

/* Answer operations that the server's era does not have. False: send the call to the server. */
static bool answer_here(struct mcp_provider *p, struct call *call, const struct request *request)
{
    struct outcome fine = {.kind = OUTCOME_RESULT, .body = SPAN("{}")};
    struct outcome no = {.kind = OUTCOME_ERROR,
                         .body = SPAN("{\"code\":-32602,\"message\":\"Invalid requestState: "
                                      "this server has no such call\"}")};

    if (!p->modern && request->resumes) {
        call_done(call, &no);
        return true;
    }
    if (p->modern && request->op == OP_SUBSCRIBE) {
        upstream_subscribe(p, call, request->name);
        return true;
    }
    if (p->modern && request->op == OP_UNSUBSCRIBE) {
        upstream_unsubscribe(p, request->name);
        call_done(call, &fine);
        return true;
    }
    if (request->op == OP_ROOTS_CHANGED) {
        /* Modern servers ask for the roots when they need them. */
        if (!p->modern && (p->declares & ANSWERS_ROOTS_CHANGED))
            upstream_notify(p, "notifications/roots/list_changed", SPAN_EMPTY);
        call_done(call, &fine);
        return true;
    }
    if (request->op == OP_TELL) {
        /* In the stateless era clients send no notifications. */
        if (!p->modern)
            tell_server(p, request);
        call_done(call, &fine);
        return true;
    }
    if (p->modern && request->op == OP_SET_LEVEL) {
        call_done(call, &fine); /* in the stateless era every request has its level */
        return true;
    }
    return false;
}

static const struct mcp_override *override_of(const struct mcp_provider *p, const struct request *r)
{
    bool any = p->overrides.n && r->op == OP_CALL_TOOL;

    return any ? override_find(&p->overrides, r->name) : NULL;
}

static void refuse_evasion(struct call *call)
{
    call_done(call, &(struct outcome){
                        .kind = OUTCOME_ERROR,
                        .body = SPAN("{\"code\":-32602,\"message\":\"an argument has the name of "
                                     "one that this bridge sets itself, but for case: leave it "
                                     "out\"}"),
                    });
}

static void refuse_withheld(struct call *call)
{
    call_done(call, &(struct outcome){.kind = OUTCOME_FAILED,
                                      .why = FAIL_REFUSED,
                                      .text = SPAN("this tool is not the one that was approved: "
                                                   "an operator can compare it with mcp.lock")});
}

/* Put pinned arguments into the request, and turn a call of a made tool into the request that the
 * tool stands for. NULL, or what is wrong with the arguments. */
static const char *prepare(struct mcp_provider *p, const struct mcp_override *o, struct request *r,
                           enum op *made, struct buf *params, struct buf *other)
{
    const struct made_tool *tool = as_tools_find(p, r);

    if (o)
        *r = override_request(o, r, params);
    *made = tool ? as_tools_op(tool) : OP_STANDING;
    return tool ? as_tools_redirect(tool, r, other) : NULL;
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome);

/* A question that the server asked the daemon before us: send the answer if there is one, else ask
 * the agent again. */
static void settle_ask(struct mcp_provider *p, struct call *call, struct span ask,
                       struct span responses)
{
    BUF_SCOPED key = {0}, id = {0}, line = {0};
    struct json_slot params = json_get(ask, "params");
    struct span raw_id = json_text(json_get(ask, "id").value, &id);

    buf_span(&key, json_text(json_get(ask, "key").value, &line));
    struct json_slot response =
        responses.n ? json_get(responses, buf_cstr(&key)) : (struct json_slot){0};
    if (response.type == JSON_OBJECT) {
        on_answer(&p->core.peer, call, raw_id,
                  &(struct outcome){.kind = OUTCOME_RESULT, .body = response.value});
        return;
    }
    line.n = 0;
    buf_printf(&line, "{\"jsonrpc\":\"2.0\",\"id\":" SPAN_FMT ",\"method\":" SPAN_FMT,
               SPAN_ARG(raw_id), SPAN_ARG(json_get(ask, "method").value));
    if (params.type != JSON_NONE)
        buf_printf(&line, ",\"params\":" SPAN_FMT, SPAN_ARG(params.value));
    buf_char(&line, '}');
    mcp_provider_receive(p, buf_view(&line), ((struct sent *)call->provider_data)->id);
}

/* The daemon before us has sent this call, and the server waits for answers to its questions. */
static void go_on(struct mcp_provider *p, struct sent *sent, const struct going_on *g)
{
    struct call *call = sent->call;
    uint64_t handle = call->handle;
    struct provider_facts facts = {0};
    struct json_iter it = json_iter(span_str(g->asks));

    p->ops->describe(p->link, &facts);
    if (facts.pid != g->pid || idmap_get(&p->sent, g->id)) {
        upstream_sent_free(p, sent);
        call_done(call, &(struct outcome){.kind = OUTCOME_FAILED,
                                          .why = FAIL_CRASHED,
                                          .text = SPAN("the server was started again while the "
                                                       "call waited for its client")});
        return;
    }
    upstream_sent_resume(p, sent, g->id);
    call->repeatable = false;
    while (json_next(&it) && router_find(p->core.router, handle))
        settle_ask(p, call, it.value, span_str(g->responses ? g->responses : ""));
}

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct mcp_provider *p = of_peer(self);
    struct request r = *request;
    BUF_SCOPED params = {0}, other = {0};
    enum op made;

    if (request->op >= OP_TASK_GET) {
        upstream_tasks_open(p, call, request);
        return;
    }
    if (answer_here(p, call, request))
        return;
    /* The call may have waited for the start of a server whose tools have changed since. */
    if (p->withheld.n && r.op == OP_CALL_TOOL && map_get(&p->withheld, r.name)) {
        refuse_withheld(call);
        return;
    }
    const struct mcp_override *o = override_of(p, request);
    if (o && override_is_evaded(o, request)) {
        refuse_evasion(call);
        return;
    }
    const char *wrong = prepare(p, o, &r, &made, &params, &other);
    if (!wrong && made == OP_READ_RESOURCE && !route_may_read(call->view, &p->core, r.name))
        wrong = "resource not found";
    if (wrong) {
        tool_fail(call, wrong);
    } else {
        struct sent *sent = upstream_sent_new(p, call_answered, call_failed);
        sent->call = call;
        sent->made = made;
        call->provider_data = sent;
        struct span extra = SPAN_EMPTY;
        if ((p->offers & OFFERS_TASKS) && r.op == OP_CALL_TOOL)
            extra = upstream_tasks_begin(p, sent, &r);
        if ((r.answers & ANSWERS_ANY_RETRY) != (p->modern ? ANSWERS_BY_RETRY : 0u))
            upstream_modern_keep(p, sent, &r);
        if (request->goes_on)
            go_on(p, sent, request->goes_on);
        else
            upstream_send_call(p, sent, &r, extra);
    }
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome)
{
    struct mcp_provider *p = of_peer(self);
    struct sent *sent = call->op == OP_STANDING ? NULL : call->provider_data;
    BUF_SCOPED body = {0};
    struct outcome told = *outcome;

    if (sent && sent->task_request) {
        if (task_request_take_answer(p, sent, key, outcome))
            return;
        if (told.kind == OUTCOME_RESULT)
            told.body = upstream_tasks_relate_back(sent, told.body, &body);
    }
    if (sent && sent->rounds && (p->modern || span_starts(key, SPAN(UPSTREAM_VISIT_KEY)))) {
        upstream_modern_answered(p, sent, key, outcome);
        return;
    }
    /* The key is the raw id of the server's own request. */
    mcp_outcome_put(p->ops->begin(p->link), key, call->op, &told);
    upstream_send(p, (struct mcp_parcel){.kind = RPC_RESULT});
}

/* Pass a client's notifications/cancelled on, with our id instead of the client's. */
static void pass_cancelled(struct mcp_provider *p, uint64_t id, const struct call *call)
{
    struct span said = call->cancel_params;
    struct cut at = call->cancel_id_at;
    BUF_SCOPED params = {0};

    buf_span(&params, span_cut(said, 0, at.at));
    buf_u64(&params, id);
    buf_span(&params, span_from(said, at.at + at.n));
    upstream_notify(p, "notifications/cancelled", buf_view(&params));
}

static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    struct mcp_provider *p = of_peer(self);
    struct sent *sent = call->provider_data;

    if (sent->id && p->plain && call->cancel_params.n)
        pass_cancelled(p, sent->id, call);
    else if (sent->id)
        upstream_withdraw(p, sent->id, mcp_outcome_failure_word(why));
    if (sent->task_request)
        task_request_cancelled(p, sent);
    upstream_sent_free(p, sent);
}

const struct peer_verbs upstream_verbs = {
    .open = on_open, .answer = on_answer, .cancel = on_cancel};
