#include "mcp/provider.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/outcome.h"
#include "mcp/param_headers.h"
#include "mcp/upstream.h"

#include <inttypes.h>
#include <stdio.h>

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

void upstream_sent_free(struct mcp_provider *p, struct sent *sent)
{
    idmap_take(&p->sent, sent->id);
    list_remove(&sent->node);
    rounds_free(sent->rounds);
    mem_free(sent);
}

static void send_parcel(struct mcp_provider *p, struct mcp_parcel parcel)
{
    parcel.version = p->version[0] ? p->version : NULL;
    parcel.modern = p->modern;
    p->ops->end(p->link, &parcel);
}

static void begin_request(struct buf *out, uint64_t id, const char *method)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_u64(out, id);
    buf_str(out, ",\"method\":\"");
    buf_str(out, method);
    buf_char(out, '"');
}

void upstream_request(struct mcp_provider *p, const struct sent *sent, const char *method,
                      struct span members)
{
    struct buf *out = p->ops->begin(p->link);

    begin_request(out, sent->id, method);
    if (p->modern) {
        buf_str(out, ",\"params\":{\"_meta\":{");
        modern_put_meta(out, p->declares);
        buf_str(out, members.n ? "}," : "}");
        buf_span(out, members);
        buf_char(out, '}');
    } else if (members.n) {
        buf_str(out, ",\"params\":{");
        buf_span(out, members);
        buf_char(out, '}');
    }
    buf_char(out, '}');
    send_parcel(p, (struct mcp_parcel){.kind = RPC_REQUEST, .id = sent->id, .method = method});
}

void upstream_notify(struct mcp_provider *p, const char *method, struct span params)
{
    rpc_put_notification(p->ops->begin(p->link), method, params);
    send_parcel(p, (struct mcp_parcel){.kind = RPC_NOTIFICATION, .method = method});
}

void upstream_withdraw(struct mcp_provider *p, uint64_t id, const char *reason)
{
    struct buf params = {0};

    if (p->ops->forget && p->ops->forget(p->link, id))
        return;
    buf_printf(&params, "{\"requestId\":%" PRIu64 ",\"reason\":\"%s\"}", id, reason);
    upstream_notify(p, "notifications/cancelled", buf_view(&params));
    buf_fini(&params);
}

static void respond(struct mcp_provider *p, struct span id, struct span result)
{
    rpc_put_result(p->ops->begin(p->link), id, result);
    send_parcel(p, (struct mcp_parcel){.kind = RPC_RESULT});
}

static void respond_error(struct mcp_provider *p, struct span id, int code, const char *text)
{
    rpc_put_error(p->ops->begin(p->link), id, code, span_str(text), SPAN_EMPTY);
    send_parcel(p, (struct mcp_parcel){.kind = RPC_ERROR});
}

/* --- verbs --- */

static void call_answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    struct buf text = {0};

    if (ok && m->slots[SLOT_RESULT_TYPE].type == JSON_STRING && modern_ask_input(p, sent, m))
        return;
    struct outcome outcome = mcp_outcome_of(m, &text);
    router_done(sent->call, &outcome);
    buf_fini(&text);
}

static void call_failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    struct buf text = {0};

    buf_printf(&text, "server '%s' gave no answer: %s", p->alias, why);
    router_done(sent->call, &(struct outcome){.kind = OUTCOME_FAILED,
                                              .why = status ? FAIL_PROTOCOL : FAIL_UNAVAILABLE,
                                              .text = buf_view(&text),
                                              .retryable = sent->call->repeatable});
    buf_fini(&text);
}

/* Arguments that a tool wants repeated as headers; nothing for nearly all tools. */
static void put_param_headers(struct mcp_provider *p, const struct request *r, struct buf *out)
{
    const struct item *tool = NULL;

    if (p->param_headers && r->op == OP_CALL_TOOL)
        tool = catalog_find(p->core.catalog, ITEM_TOOL, r->name);
    if (tool && param_headers_possible(tool->raw)) {
        struct json_slot arguments = json_get(r->params, "arguments");
        param_headers_put(out, tool->raw,
                          arguments.type == JSON_OBJECT ? arguments.value : SPAN_EMPTY);
    }
}

void upstream_send_call(struct mcp_provider *p, const struct sent *sent,
                        const struct request *request, struct span extra)
{
    const char *method = mcp_operations[request->op].method;
    struct buf meta = {0}, headers = {0};

    if (p->modern) {
        modern_put_meta(&meta, request->answers);
        if (request->log_level.n)
            buf_printf(&meta, ",\"" MCP_META_PREFIX "logLevel\":\"" SPAN_FMT "\"",
                       SPAN_ARG(request->log_level));
        put_param_headers(p, request, &headers);
    }
    /* Our request id is unique on this hop, so it serves as the progress token as well. */
    if (request->wants_progress)
        buf_printf(&meta, "%s\"progressToken\":%" PRIu64, meta.n ? "," : "", sent->id);

    struct buf *out = p->ops->begin(p->link);
    begin_request(out, sent->id, method);
    buf_str(out, ",\"params\":");
    upstream_put_params(out, request, buf_view(&meta), extra);
    buf_char(out, '}');
    send_parcel(p, (struct mcp_parcel){.kind = RPC_REQUEST,
                                       .id = sent->id,
                                       .method = method,
                                       .name = request->name,
                                       .headers = buf_view(&headers)});
    buf_fini(&headers);
    buf_fini(&meta);
}

/* Operations that one era does not have are answered here. False: goes to the server. */
static bool answer_here(struct mcp_provider *p, struct call *call, const struct request *request)
{
    struct outcome fine = {.kind = OUTCOME_RESULT, .body = SPAN("{}")};
    struct outcome no = {.kind = OUTCOME_ERROR,
                         .body = SPAN("{\"code\":-32602,\"message\":\"Invalid requestState: "
                                      "this server has no such call\"}")};

    if (!p->modern && request->resumes) {
        router_done(call, &no);
        return true;
    }
    if (p->modern && (request->op == OP_SUBSCRIBE || request->op == OP_UNSUBSCRIBE)) {
        upstream_subscribe(p, request->name, request->op == OP_SUBSCRIBE);
        router_done(call, &fine);
        return true;
    }
    if (p->modern && request->op == OP_SET_LEVEL) {
        router_done(call, &fine); /* every request says its level */
        return true;
    }
    return false;
}

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct mcp_provider *p = of_peer(self);
    const struct mcp_override *o = NULL;
    struct request pinned;
    struct buf params = {0};

    if (answer_here(p, call, request))
        return;
    if (p->overrides.n && request->op == OP_CALL_TOOL)
        o = override_find(&p->overrides, request->name);
    if (o) {
        pinned = override_request(o, request, &params);
        request = &pinned;
    }
    struct sent *sent = upstream_sent_new(p, call_answered, call_failed);
    sent->call = call;
    call->provider_data = sent;
    if (p->modern)
        modern_keep(sent, request);
    upstream_send_call(p, sent, request, SPAN_EMPTY);
    buf_fini(&params);
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome)
{
    struct mcp_provider *p = of_peer(self);
    struct sent *sent = call->op == OP_STANDING ? NULL : call->provider_data;

    if (sent && sent->rounds) {
        modern_answered(p, sent, key, outcome);
        return;
    }
    /* The key is the raw id of the server's own request. */
    mcp_put_outcome(p->ops->begin(p->link), key, call->op, outcome);
    send_parcel(p, (struct mcp_parcel){.kind = RPC_RESULT, .about = sent ? sent->id : 0});
}

static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    struct mcp_provider *p = of_peer(self);
    struct sent *sent = call->provider_data;

    if (sent->id)
        upstream_withdraw(p, sent->id, mcp_failure_word(why));
    upstream_sent_free(p, sent);
}

static const struct peer_verbs verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};

/* --- what the server sends --- */

static struct sent *sent_of(const struct mcp_provider *p, struct span raw_id)
{
    int64_t id;

    return json_int(raw_id, &id) && id > 0 ? idmap_get(&p->sent, (uint64_t)id) : NULL;
}

static void receive_response(struct mcp_provider *p, const struct mcp_message *m)
{
    struct sent *sent = sent_of(p, m->rpc.id);

    if (!sent) {
        /* A second answer, or one to a call that was given up. */
        log_debug(p->alias, "answer to id " SPAN_FMT ", which is not open", SPAN_ARG(m->rpc.id));
        return;
    }
    idmap_take(&p->sent, sent->id);
    sent->id = 0;
    sent->keep = false;
    sent->answered(p, sent, m);
    if (!sent->keep)
        upstream_sent_free(p, sent);
}

/* The call that something unsolicited belongs to: by its stream, else the only one open. */
static struct call *owner_of(const struct mcp_provider *p, uint64_t about)
{
    const struct sent *sent = idmap_get(&p->sent, about);

    return sent && sent->call ? sent->call : router_sole_call(&p->core);
}

static void receive_request(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    struct call *owner = owner_of(p, about);
    struct buf params = {0};
    struct ask ask = {.key = m->rpc.id,
                      .method = m->rpc.method,
                      .params = m->rpc.params,
                      .needs = mcp_ask_needs(&m->rpc)};

    if (m->slots[SLOT_META_TOKEN].type != JSON_NONE) {
        upstream_put_ask_params(&params, m);
        ask.params = buf_view(&params);
    }
    if (rpc_method_is(&m->rpc, "ping")) {
        respond(p, m->rpc.id, SPAN("{}"));
    } else if (!ask.needs) {
        respond_error(p, m->rpc.id, RPC_METHOD_NOT_FOUND, "Method not found");
    } else if (owner) {
        router_ask(owner, &ask);
    } else if (!router_ask_standing(&p->core, &ask)) {
        /* A shared server's question that belongs to nobody in particular is never broadcast. */
        if (p->on_orphan)
            p->on_orphan(p->orphan_arg);
        respond_error(p, m->rpc.id, RPC_METHOD_NOT_FOUND,
                      "No client can be asked: this request belongs to no single open call");
    }
    buf_fini(&params);
}

static void receive_progress(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    const struct json_slot *token = &m->slots[SLOT_TOKEN];
    struct sent *sent = token->type == JSON_NUMBER ? sent_of(p, token->value) : NULL;

    (void)about;
    if (!sent || !sent->call)
        return;
    router_event(
        sent->call,
        &(struct event){.kind = EVENT_PROGRESS,
                        .params = m->rpc.params,
                        .token_at = {(size_t)(token->value.p - m->rpc.params.p), token->value.n},
                        .from = &p->core});
}

/* To the call it can only belong to, else to everybody who sees this server. */
static void tell(struct mcp_provider *p, uint64_t about, const struct event *event)
{
    struct call *owner = owner_of(p, about);

    if (owner)
        router_event(owner, event);
    else
        router_broadcast(&p->core, event);
}

static void receive_log(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    struct buf scratch = {0};
    struct event event = {.kind = EVENT_LOG, .params = m->rpc.params, .from = &p->core};

    if (m->slots[SLOT_LEVEL].type == JSON_STRING) {
        event.level = json_text(m->slots[SLOT_LEVEL].value, &scratch);
        tell(p, about, &event);
    }
    buf_fini(&scratch);
}

static void receive_updated(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    struct buf scratch = {0};

    (void)about;
    if (m->slots[SLOT_URI].type == JSON_STRING)
        router_broadcast(&p->core,
                         &(struct event){.kind = EVENT_UPDATED,
                                         .params = m->rpc.params,
                                         .name = json_text(m->slots[SLOT_URI].value, &scratch),
                                         .from = &p->core});
    buf_fini(&scratch);
}

static void tools_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)m, (void)about;
    upstream_fetch(p, 1u << ITEM_TOOL);
}

static void resources_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)m, (void)about;
    upstream_fetch(p, 1u << ITEM_RESOURCE | 1u << ITEM_TEMPLATE);
}

static void prompts_changed(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    (void)m, (void)about;
    upstream_fetch(p, 1u << ITEM_PROMPT);
}

static void receive_notification(struct mcp_provider *p, const struct mcp_message *m,
                                 uint64_t about)
{
    static const struct {
        const char *method;
        void (*handle)(struct mcp_provider *p, const struct mcp_message *m, uint64_t about);
    } rows[] = {
        {"notifications/progress", receive_progress},
        {"notifications/message", receive_log},
        {"notifications/resources/updated", receive_updated},
        {"notifications/tools/list_changed", tools_changed},
        {"notifications/resources/list_changed", resources_changed},
        {"notifications/prompts/list_changed", prompts_changed},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rpc_method_is(&m->rpc, rows[i].method)) {
            rows[i].handle(p, m, about);
            return;
        }
    }
    if (!rpc_method_is(&m->rpc, "notifications/cancelled"))
        tell(p, about,
             &(struct event){.kind = EVENT_OTHER,
                             .method = m->rpc.method,
                             .params = m->rpc.params,
                             .from = &p->core});
}

static void receive_one(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    switch (m->rpc.kind) {
    case RPC_RESULT:
    case RPC_ERROR:
        receive_response(p, m);
        break;
    case RPC_REQUEST:
        receive_request(p, m, about);
        break;
    case RPC_NOTIFICATION:
        receive_notification(p, m, about);
        break;
    case RPC_BATCH:
    case RPC_INVALID:
        log_warn(p->alias, "sent JSON that is no message (%s)", m->rpc.why);
        break;
    }
}

void mcp_provider_receive(struct mcp_provider *p, struct span text, uint64_t about)
{
    struct mcp_message m;
    int code = mcp_skim(text, &m);

    p->heard_at = router_timers(p->core.router)->now;
    if (code) {
        /* Servers do print banners and debug output: skip it, but let people see it. */
        struct span head = span_cut(text, 0, 120);
        log_warn(p->alias, "said something that is not JSON (%s): " SPAN_FMT "%s", err_name(code),
                 SPAN_ARG(head), head.n < text.n ? "..." : "");
        return;
    }
    if (m.rpc.kind != RPC_BATCH) {
        receive_one(p, &m, about);
        return;
    }
    struct json_iter it = json_iter(m.rpc.text);
    while (json_next(&it))
        if (mcp_skim(it.value, &m) == 0 && m.rpc.kind != RPC_BATCH)
            receive_one(p, &m, about);
}

void mcp_provider_failed(struct mcp_provider *p, uint64_t id, int status, bool delivered,
                         const char *why)
{
    struct sent *sent = idmap_take(&p->sent, id);

    if (!sent)
        return;
    if (!delivered && sent->call)
        sent->call->repeatable = true; /* calling again cannot do what the first call never did */
    sent->id = 0;
    sent->failed(p, sent, status, why);
    upstream_sent_free(p, sent);
}

bool mcp_provider_expects(const struct mcp_provider *p, uint64_t id)
{
    return idmap_get(&p->sent, id) != NULL;
}

void mcp_provider_greet_again(struct mcp_provider *p)
{
    log_info(p->alias, "forgot our session: introducing ourselves again");
    upstream_greet(p);
}

void mcp_provider_too_long(struct mcp_provider *p, struct span head, size_t limit)
{
    struct call *owner = router_sole_call(&p->core);
    struct span start = span_cut(head, 0, 80);
    struct buf text = {0};

    log_warn(p->alias,
             "sent a message of more than %zu bytes (limits.message): dropped; it began " SPAN_FMT,
             limit, SPAN_ARG(start));
    if (!owner)
        return; /* nobody knows whose answer it was: the deadlines of the open calls decide */
    upstream_sent_free(p, owner->provider_data);
    buf_printf(&text, "server '%s' answered with more than %zu bytes (limits.message)", p->alias,
               limit);
    router_done(owner, &(struct outcome){
                           .kind = OUTCOME_FAILED, .why = FAIL_PROTOCOL, .text = buf_view(&text)});
    buf_fini(&text);
}

/* --- life --- */

void mcp_provider_connected(struct mcp_provider *p)
{
    upstream_ping_start(p);
    upstream_greet(p);
}

static void drop_sent(struct mcp_provider *p)
{
    LIST_EACH_SAFE (&p->all_sent, it)
        upstream_sent_free(p, LIST_ENTRY(it, struct sent, node));
}

static void clear_timers(struct mcp_provider *p)
{
    upstream_ended(p);
    timer_clear(router_timers(p->core.router), &p->listen);
    timer_clear(router_timers(p->core.router), &p->ping);
}

void mcp_provider_closed(struct mcp_provider *p, const char *why)
{
    drop_sent(p);
    clear_timers(p);
    p->listen_id = 0;
    upstream_fetch_abort(p);
    provider_lost(&p->core, p->verdict[0] ? p->verdict : why);
}

static void start(struct provider *core)
{
    struct mcp_provider *p = CONTAINER_OF(core, struct mcp_provider, core);

    p->verdict[0] = '\0';
    p->ops->open(p->link);
}

static void stop(struct provider *core)
{
    struct mcp_provider *p = CONTAINER_OF(core, struct mcp_provider, core);

    p->ops->close(p->link);
}

static void describe(const struct provider *core, struct provider_facts *facts)
{
    const struct mcp_provider *p = CONTAINER_OF(core, struct mcp_provider, core);

    facts->version = p->version;
    if (p->ops->describe)
        p->ops->describe(p->link, facts);
}

static const struct provider_ops life = {.start = start, .stop = stop, .describe = describe};

struct mcp_provider *mcp_provider_new(const char *alias, const struct mcp_link_ops *ops, void *link)
{
    struct mcp_provider *p = MEM_NEW(struct mcp_provider);

    p->alias = mem_str(alias);
    p->ops = ops;
    p->link = link;
    p->declares = ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL | ANSWERS_SAMPLING;
    list_init(&p->all_sent);
    p->listen.fire = upstream_on_listen;
    p->probe.fire = upstream_on_silence;
    p->ping.fire = upstream_on_ping;
    provider_init(&p->core, &verbs, &life, p->alias);
    return p;
}

void mcp_provider_free(struct mcp_provider *p)
{
    p->ops->free(p->link);
    provider_fini(&p->core);
    drop_sent(p);
    idmap_fini(&p->sent);
    map_fini(&p->listen_uris);
    mem_free(p->instructions);
    mem_free(p->alias);
    mem_free(p);
}

struct provider *mcp_provider_core(struct mcp_provider *p)
{
    return &p->core;
}

void mcp_provider_set_overrides(struct mcp_provider *p, const struct mcp_overrides *overrides)
{
    p->overrides = *overrides;
}

void mcp_provider_set_answers(struct mcp_provider *p, unsigned answers)
{
    p->declares = answers;
}

void mcp_provider_on_orphan(struct mcp_provider *p, void (*fn)(void *arg), void *arg)
{
    p->on_orphan = fn;
    p->orphan_arg = arg;
}

void mcp_provider_set_era(struct mcp_provider *p, enum mcp_era era)
{
    p->wanted_era = era;
}

const char *mcp_provider_version(const struct mcp_provider *p)
{
    return p->version;
}
