/* An agent of the initialize era: the methods that it sends, its calls with their progress, asks
 * and answers, and the session's start and end. Called by duplex.c, http_agent.c and
 * http_session.c; the router calls the verbs. */
#include "mcp/agent/session.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/principal.h"
#include "core/subscriptions.h"
#include "mcp/agent/agent_asks.h"
#include "mcp/agent/agent_request.h"
#include "mcp/agent/elicited.h"
#include "mcp/agent/introduction.h"
#include "mcp/agent/own_tasks.h"
#include "mcp/agent/welcome.h"
#include "mcp/legacy.h"
#include "mcp/outcome.h"
#include "wire/json_out.h"

struct mcp_session {
    struct peer peer;
    struct mcp_host host;
    void *lease; /* what host.enter gave us */
    const struct mcp_out *out;
    void *owner;
    struct call *standing;
    bool greeted; /* initialize was answered */
    bool results; /* failures of tool calls are sent as results */
    struct introduction intro;
    struct agent_asks asks;
    struct elicited elicited;
    struct agent_requests pending;
    struct session_list_entry entry;
};

static struct buf *session_begin(struct mcp_session *s, void *reply, enum mcp_out_kind kind)
{
    return s->out->begin(s->owner, reply, kind);
}

static void session_end(struct mcp_session *s, void *reply, enum mcp_out_kind kind)
{
    s->out->end(s->owner, reply, kind);
}

/* --- what the provider side tells us --- */

/* The agent need not answer our request `id` any more; 0: there was none. */
static void withdraw_ask(struct mcp_session *s, void *reply, uint64_t id)
{
    enum mcp_out_kind kind = reply ? MCP_OUT_RELATED : MCP_OUT_UNRELATED;

    if (!id)
        return;
    agent_asks_put_cancelled(session_begin(s, reply, kind), id);
    session_end(s, reply, kind);
}

/* Withdraw all asks of a call that is over. */
static void withdraw_asks(struct mcp_session *s, const struct call *call)
{
    const struct agent_request *p = call->consumer_data;
    uint64_t id;

    while ((id = agent_asks_drop(&s->asks, call->handle)))
        withdraw_ask(s, p->reply, id);
}

/* Open the standing call, unless it is open. */
static void session_attach(struct mcp_session *s)
{
    if (!s->standing)
        s->standing = router_attach(s->host.router, &s->peer, s->host.view, s->intro.answers, NULL);
}

/* The server accepted the subscription: its updates of this resource are for this session from now
 * on. */
static void note_subscription(struct mcp_session *s, const struct agent_request *p,
                              const struct call *call)
{
    session_attach(s);
    subscriptions_note(s->standing, call->provider, span_of(call->name, call->name_n),
                       agent_request_uri(p));
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct mcp_session *s = CONTAINER_OF(self, struct mcp_session, peer);

    if (call->op == OP_STANDING)
        s->standing = NULL;
    if (call->op == OP_STANDING || call->op == OP_TELL)
        return;
    struct agent_request *p = call->consumer_data;
    withdraw_asks(s, call);
    if (call->op == OP_SUBSCRIBE && outcome->kind == OUTCOME_RESULT && !p->unsubscribed)
        note_subscription(s, p, call);
    if (outcome->kind == OUTCOME_ERROR)
        elicited_note_error(&s->elicited, outcome->body);
    if (outcome->kind == OUTCOME_FAILED && outcome->why == FAIL_CANCELLED) {
        s->out->abandon(s->owner, p->reply);
    } else {
        BUF_SCOPED body = {0};
        struct outcome told = mcp_outcome_for_model(call->op, outcome, s->results, &body);
        mcp_outcome_put(session_begin(s, p->reply, MCP_OUT_FINAL), agent_request_id(p), call->op,
                        &told);
        session_end(s, p->reply, MCP_OUT_FINAL);
    }
    agent_request_free(p);
}

static struct own_tasks tasks_of(const struct mcp_session *s)
{
    return (struct own_tasks){.all = router_tasks(s->host.router),
                              .owner = principal_name(s->peer.principal),
                              .session = s->intro.number};
}

static void send_notification(struct mcp_session *s, void *reply, const char *method,
                              struct span params)
{
    enum mcp_out_kind kind = reply ? MCP_OUT_RELATED : MCP_OUT_UNRELATED;

    rpc_put_notification(session_begin(s, reply, kind), method, params);
    session_end(s, reply, kind);
}

static void send_progress(struct mcp_session *s, const struct agent_request *p,
                          const struct event *e)
{
    struct buf *out = session_begin(s, p->reply, MCP_OUT_RELATED);
    size_t after = e->token_at.at + e->token_at.n;

    buf_str(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":");
    buf_span(out, span_cut(e->params, 0, e->token_at.at));
    buf_span(out, agent_request_token(p));
    buf_span(out, span_from(e->params, after));
    buf_char(out, '}');
    session_end(s, p->reply, MCP_OUT_RELATED);
}

static void send_changed(struct mcp_session *s, unsigned kinds)
{
    /* Resources and their templates share one notification. */
    if (kinds & (1u << ITEM_TEMPLATE))
        kinds |= 1u << ITEM_RESOURCE;
    kinds &= ~(1u << ITEM_TEMPLATE);
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        if (kinds & (1u << kind))
            send_notification(s, NULL, mcp_lists[kind].changed, SPAN_EMPTY);
}

/* The server's params, with the URI by which the agent has subscribed. */
static void send_updated(struct mcp_session *s, const struct event *e)
{
    BUF_SCOPED params = {0};

    buf_span(&params, span_cut(e->params, 0, e->token_at.at));
    json_quote(&params, e->name);
    buf_span(&params, span_from(e->params, e->token_at.at + e->token_at.n));
    send_notification(s, NULL, "notifications/resources/updated", buf_view(&params));
}

/* A task has changed: if it is this agent's, the agent is told. */
static void send_task(struct mcp_session *s, const struct event *event)
{
    const struct own_tasks own = tasks_of(s);
    BUF_SCOPED params = {0};

    if (own_tasks_put_change(&own, event, &params))
        send_notification(s, NULL, "notifications/tasks/status", buf_view(&params));
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct mcp_session *s = CONTAINER_OF(self, struct mcp_session, peer);
    struct agent_request *p = call->op == OP_STANDING ? NULL : call->consumer_data;
    void *reply = p ? p->reply : NULL;

    switch (event->kind) {
    case EVENT_PROGRESS:
        if (p)
            send_progress(s, p, event);
        break;
    case EVENT_LOG:
        if (mcp_level(event->level) >= s->intro.level)
            send_notification(s, reply, "notifications/message", event->params);
        break;
    case EVENT_CHANGED:
        send_changed(s, event->changed);
        break;
    case EVENT_UPDATED:
        send_updated(s, event);
        break;
    case EVENT_OTHER: {
        if (span_is(event->method, MCP_ELICITATION_COMPLETE) &&
            !elicited_knows(&s->elicited, event->params))
            break;
        char *method = mem_span(event->method);
        send_notification(s, reply, method, event->params);
        mem_free(method);
        break;
    }
    case EVENT_TASK:
        send_task(s, event);
        break;
    case EVENT_SETTLED: /* not needed: each subscription is a call with its own answer */
        break;
    case EVENT_UNASKED:
        withdraw_ask(s, reply, agent_asks_forget(&s->asks, call->handle, event->name));
        break;
    }
}

static void on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct mcp_session *s = CONTAINER_OF(self, struct mcp_session, peer);
    struct agent_request *p = call->consumer_data;
    if (p && s->out->is_cut_off && s->out->is_cut_off(s->owner, p->reply)) {
        ask_nobody(self, call, ask);
        return;
    }
    char *method = mem_span(ask->method);
    uint64_t id = agent_asks_add(&s->asks, call->handle, ask->key);

    elicited_note_request(&s->elicited, ask->params);
    /* An ask on the standing call belongs to no request of the agent. */
    void *reply = p ? p->reply : NULL;
    enum mcp_out_kind kind = p ? MCP_OUT_RELATED : MCP_OUT_UNRELATED;
    BUF_SCOPED params = {0};
    rpc_put_request(session_begin(s, reply, kind), id, method,
                    mcp_legacy_ask_params(ask, id, &params));
    session_end(s, reply, kind);
    mem_free(method);
}

static const struct peer_verbs session_verbs = {.event = on_event, .ask = on_ask, .done = on_done};

/* --- what the agent wants --- */

/* Pass a notification of the agent on to the view's only provider. */
static void session_tell(struct mcp_session *s, const struct mcp_message *m)
{
    BUF_SCOPED method = {0};
    const struct request request = {
        .op = OP_TELL, .name = rpc_method_text(&m->rpc, &method), .params = m->rpc.params};

    call_open(s->host.router, &s->peer, s->host.view, &request, NULL);
}

/* The agent answers one of our asks. */
static void session_answered(struct mcp_session *s, const struct mcp_message *m)
{
    struct agent_ask *ask = agent_asks_take(&s->asks, m->rpc.id);

    if (!ask) {
        log_debug("mcp", "agent answered id " SPAN_FMT ", which was not asked",
                  SPAN_ARG(m->rpc.id));
        return;
    }
    struct call *call = router_find(s->host.router, ask->call);
    if (call) {
        bool ok = m->rpc.kind == RPC_RESULT;
        ask_answer(call, span_of(ask->key, ask->key_n),
                   &(struct outcome){.kind = ok ? OUTCOME_RESULT : OUTCOME_ERROR,
                                     .body = ok ? m->rpc.result : m->rpc.error});
    }
    mem_free(ask);
}

static void reply_result(struct mcp_session *s, void *reply, struct span id, struct span result)
{
    rpc_put_result(session_begin(s, reply, MCP_OUT_FINAL), id, result);
    session_end(s, reply, MCP_OUT_FINAL);
}

static void reply_error(struct mcp_session *s, void *reply, struct span id, int64_t code,
                        const char *text)
{
    rpc_put_error(session_begin(s, reply, MCP_OUT_FINAL), id, code, span_str(text), SPAN_EMPTY);
    session_end(s, reply, MCP_OUT_FINAL);
}

/* --- what the agent sends --- */

struct handler {
    const char *method;
    void (*handle)(struct mcp_session *s, const struct mcp_message *m, void *reply, int arg);
    int arg;
};

static void enter_roll(struct mcp_session *s)
{
    uint64_t now = router_timers(s->host.router)->now;

    if (!s->host.sessions || !s->out->way)
        return;
    s->entry = (struct session_list_entry){.node = s->entry.node,
                                           .sessions = s->entry.sessions,
                                           .label = s->intro.label,
                                           .client = s->intro.client,
                                           .version = s->intro.version,
                                           .way = s->out->way,
                                           .endpoint = s->host.endpoint,
                                           .view = s->host.view_name,
                                           .principal = s->host.principal,
                                           .since = now,
                                           .last = now,
                                           .open = &s->pending.n,
                                           .hang_up = s->out->hang_up,
                                           .owner = s->owner};
    session_list_enter(s->host.sessions, &s->entry);
}

/* Version and capabilities are known: record who the agent is, and get a view of its own for it if
 * it needs one. */
static void session_enter(struct mcp_session *s, const struct json_slot *info)
{
    introduction_set_client(&s->intro, info);
    s->results = mcp_outcome_wants_results(s->host.errors, info->value);
    s->peer.client = s->intro.client;
    if (s->host.enter && !s->lease) {
        struct view *own = s->host.enter(s->host.arg, s->host.view, s->host.principal,
                                         s->intro.answers, &s->lease);
        s->host.view = own ? own : s->host.view;
    }
    s->greeted = true;
    enter_roll(s);
    if (s->host.wake)
        s->host.wake(s->host.arg);
}

static void handle_initialize(struct mcp_session *s, const struct mcp_message *m, void *reply,
                              int arg)
{
    (void)arg;
    if (m->slots[SLOT_VERSION].type != JSON_STRING) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "initialize needs params.protocolVersion, a string");
        return;
    }
    introduction_read(&s->intro, m);
    session_enter(s, &m->slots[SLOT_INFO]);
    struct buf *out = session_begin(s, reply, MCP_OUT_FINAL);
    welcome_put_answer(out, m->rpc.id, s->intro.version, s->host.view, s->host.server_info);
    session_end(s, reply, MCP_OUT_FINAL);
}

static void handle_initialized(struct mcp_session *s, const struct mcp_message *m, void *reply,
                               int arg)
{
    (void)m, (void)reply, (void)arg;
    if (s->greeted)
        session_attach(s);
}

static void handle_roots_changed(struct mcp_session *s, const struct mcp_message *m, void *reply,
                                 int arg)
{
    (void)m, (void)reply, (void)arg;
    if (s->standing)
        subscriptions_roots_changed(s->standing);
}

static void handle_ping(struct mcp_session *s, const struct mcp_message *m, void *reply, int arg)
{
    (void)arg;
    reply_result(s, reply, m->rpc.id, SPAN("{}"));
}

/* Every page of every server is collected, so there is one page and no valid cursor. */
static void handle_list(struct mcp_session *s, const struct mcp_message *m, void *reply, int kind)
{
    if (m->slots[SLOT_CURSOR].type != JSON_NONE) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "Invalid cursor: this server gives its lists in one page");
        return;
    }
    struct buf *out = session_begin(s, reply, MCP_OUT_FINAL);
    legacy_put_list(out, m->rpc.id, s->host.view, (enum item_kind)kind, s->intro.bridge);
    session_end(s, reply, MCP_OUT_FINAL);
}

static void set_level(struct mcp_session *s, int level)
{
    s->intro.level = level;
    if (level >= 0)
        subscriptions_want_log(s->host.router, s->host.view, level, mcp_levels[level]);
}

static void handle_set_level(struct mcp_session *s, const struct mcp_message *m, void *reply,
                             int arg)
{
    BUF_SCOPED scratch = {0};
    int level = -1;

    (void)arg;
    if (m->slots[SLOT_LEVEL].type == JSON_STRING)
        level = mcp_level(json_text(m->slots[SLOT_LEVEL].value, &scratch));
    if (level < 0) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "params.level must be one of debug, info, notice, warning, error, critical, "
                    "alert, emergency");
        return;
    }
    set_level(s, level);
    reply_result(s, reply, m->rpc.id, SPAN("{}"));
}

static void handle_open(struct mcp_session *s, const struct mcp_message *m, void *reply, int op)
{
    const struct json_slot *meta = &m->slots[SLOT_META];
    struct request request = {.op = (enum op)op};
    BUF_SCOPED scratch = {0}, kept_meta = {0};

    const char *why = mcp_read_named(m, &request, &scratch) ? NULL : buf_cstr(&scratch);
    if (!why && op == OP_SUBSCRIBE) {
        session_attach(s);
        why = subscriptions_refuse(s->standing, request.name);
    }
    if (why) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS, why);
        return;
    }
    bool subscribes = op == OP_SUBSCRIBE || op == OP_UNSUBSCRIBE;
    struct agent_request *p =
        agent_requests_add(&s->pending, m, reply, subscribes ? request.name : SPAN_EMPTY);

    if (meta->type == JSON_OBJECT)
        mcp_put_foreign_meta(&kept_meta, meta->value);
    request.params = m->rpc.params;
    request.meta_at = mcp_cut(m->rpc.params, meta);
    request.meta_keep = buf_view(&kept_meta);
    request.log_level = s->intro.level >= 0 ? span_str(mcp_levels[s->intro.level]) : SPAN_EMPTY;
    request.answers = s->intro.answers;
    request.wants_progress = p->token_n > 0;
    request.party = s->intro.number;
    request.as_task = op == OP_CALL_TOOL && m->slots[SLOT_TASK].type == JSON_OBJECT;
    request.takes_structured = strcmp(s->intro.version, "2025-06-18") >= 0;
    s->entry.calls++;
    s->entry.last = router_timers(s->host.router)->now;
    struct call *call = call_open(s->host.router, &s->peer, s->host.view, &request, p);
    if (call)
        p->call = call; /* else the call has ended, and `p` is gone */
}

static void handle_task_list(struct mcp_session *s, const struct mcp_message *m, void *reply,
                             int arg)
{
    const struct own_tasks own = tasks_of(s);
    BUF_SCOPED page = {0};

    (void)arg;
    if (own_tasks_put_page(&own, &m->slots[SLOT_CURSOR], &page))
        reply_result(s, reply, m->rpc.id, buf_view(&page));
    else
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "Invalid cursor: take nextCursor of the page before, or start again without");
}

/* The server gets the request only if no other session is still subscribed to the resource. */
static void handle_unsubscribe(struct mcp_session *s, const struct mcp_message *m, void *reply,
                               int arg)
{
    const struct json_slot *uri = &m->slots[SLOT_URI];
    BUF_SCOPED scratch = {0};
    bool last = true;

    (void)arg;
    session_attach(s);
    if (uri->type == JSON_STRING) {
        struct span text = json_text(uri->value, &scratch);
        agent_requests_unsubscribe(&s->pending, text);
        last = subscriptions_remove(s->standing, text);
    }
    if (last)
        handle_open(s, m, reply, OP_UNSUBSCRIBE);
    else
        reply_result(s, reply, m->rpc.id, SPAN("{}"));
}

static void handle_cancelled(struct mcp_session *s, const struct mcp_message *m, void *reply,
                             int arg)
{
    const struct json_slot *id = &m->slots[SLOT_REQUEST_ID];
    const struct agent_request *p =
        id->type == JSON_NONE ? NULL : agent_requests_find(&s->pending, id->value);

    (void)reply, (void)arg;
    if (p && p->call)
        call_cancel(p->call, FAIL_CANCELLED);
}

/* clang-format off */
static const struct handler requests[] = {
    {"tools/call", handle_open, OP_CALL_TOOL},
    {"tools/list", handle_list, ITEM_TOOL},
    {"resources/read", handle_open, OP_READ_RESOURCE},
    {"resources/list", handle_list, ITEM_RESOURCE},
    {"resources/templates/list", handle_list, ITEM_TEMPLATE},
    {"resources/subscribe", handle_open, OP_SUBSCRIBE},
    {"resources/unsubscribe", handle_unsubscribe, 0},
    {"prompts/get", handle_open, OP_GET_PROMPT},
    {"prompts/list", handle_list, ITEM_PROMPT},
    {"completion/complete", handle_open, OP_COMPLETE},
    {"logging/setLevel", handle_set_level, 0},
    {"ping", handle_ping, 0},
    {"initialize", handle_initialize, 0},
};

/* Used only if a server of the view has tasks. */
static const struct handler task_requests[] = {
    {"tasks/get", handle_open, OP_TASK_GET},
    {"tasks/result", handle_open, OP_TASK_RESULT},
    {"tasks/cancel", handle_open, OP_TASK_CANCEL},
    {"tasks/list", handle_task_list, 0},
};

static const struct handler notifications[] = {
    {"notifications/cancelled", handle_cancelled, 0},
    {"notifications/initialized", handle_initialized, 0},
    {"notifications/roots/list_changed", handle_roots_changed, 0},
};
/* clang-format on */

static const struct handler *find_handler(const struct handler *rows, size_t n,
                                          const struct mcp_message *m)
{
    for (size_t i = 0; i < n; i++)
        if (rpc_method_is(&m->rpc, rows[i].method))
            return &rows[i];
    return NULL;
}

static bool refuse_misleading(struct mcp_session *s, const struct mcp_message *m, void *reply)
{
    BUF_SCOPED why = {0};
    bool misleads = mcp_params_mislead(m, &why);

    if (misleads)
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS, buf_cstr(&why));
    return misleads;
}

/* The handler of the request; NULL: the request was refused. */
static const struct handler *admit_request(struct mcp_session *s, const struct mcp_message *m,
                                           void *reply)
{
    static const struct handler other = {NULL, handle_open, OP_OTHER};
    const struct handler *h = find_handler(requests, COUNT_OF(requests), m);

    if (!s->greeted && !rpc_method_is(&m->rpc, "initialize") && !rpc_method_is(&m->rpc, "ping")) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_REQUEST,
                    "Not initialized: send initialize first");
        return NULL;
    }
    if (!h && welcome_has_tasks(s->host.view))
        h = find_handler(task_requests, COUNT_OF(task_requests), m);
    if (!h && mcp_host_passes(&s->host, m))
        return &other;
    if (!h) {
        BUF_SCOPED text = {0};
        buf_printf(&text, "Method not found: " SPAN_FMT, SPAN_ARG(m->rpc.method));
        reply_error(s, reply, m->rpc.id, RPC_METHOD_NOT_FOUND, buf_cstr(&text));
        return NULL;
    }
    return refuse_misleading(s, m, reply) ? NULL : h;
}

void mcp_session_receive(struct mcp_session *s, const struct mcp_message *m, void *reply)
{
    const struct handler *h;

    switch (m->rpc.kind) {
    case RPC_REQUEST:
        h = admit_request(s, m, reply);
        if (h)
            h->handle(s, m, reply, h->arg);
        break;
    case RPC_NOTIFICATION:
        h = find_handler(notifications, COUNT_OF(notifications), m);
        if (h)
            h->handle(s, m, NULL, h->arg);
        else if (s->greeted && mcp_host_passes(&s->host, m))
            session_tell(s, m);
        break;
    case RPC_RESULT:
    case RPC_ERROR:
        session_answered(s, m);
        break;
    case RPC_BATCH:
    case RPC_INVALID:
        break; /* the transport has dealt with these */
    }
}

/* --- life --- */

struct mcp_session *mcp_session_new(const struct mcp_host *host, const struct mcp_out *out,
                                    void *owner)
{
    struct mcp_session *s = MEM_NEW(struct mcp_session);

    peer_init(&s->peer, &session_verbs);
    s->peer.principal = host->principal;
    s->peer.endpoint = host->endpoint;
    introduction_init(&s->intro);
    s->peer.session = s->intro.label;
    s->host = *host;
    s->host.view = host->legacy_view ? host->legacy_view : host->view;
    s->out = out;
    s->owner = owner;
    agent_requests_init(&s->pending);
    agent_asks_init(&s->asks);
    return s;
}

void mcp_session_free(struct mcp_session *s)
{
    session_list_leave(&s->entry);
    call_cancel_all(&s->peer);
    agent_asks_fini(&s->asks);
    elicited_fini(&s->elicited);
    if (s->lease)
        s->host.leave(s->host.arg, s->lease);
    introduction_fini(&s->intro);
    mem_free(s);
}

bool mcp_session_ready(const struct mcp_session *s)
{
    return s->greeted;
}

struct span mcp_session_version(const struct mcp_session *s)
{
    return span_str(s->intro.version);
}

size_t mcp_session_pending(const struct mcp_session *s)
{
    return s->pending.n;
}

/* --- another daemon takes over --- */

/* The old daemon may still ask on its last calls: the new one numbers its asks this far above. */
enum { ASKS_APART = 1000 * 1000 };

void mcp_session_export(const struct mcp_session *s, struct buf *out)
{
    struct span uri;
    size_t at = 0;
    void *subscription;

    introduction_put(out, &s->intro);
    json_out_number(out, "asks", s->asks.last_id + ASKS_APART);
    json_out_bool(out, "attached", s->standing != NULL);
    json_out_open(out, "subscriptions", '[');
    while (s->standing && map_next(&s->standing->uris, &at, &uri, &subscription))
        json_out_text(out, NULL, uri);
    buf_char(out, ']');
}

void mcp_session_import(struct mcp_session *s, struct span state)
{
    struct json_slot client = json_get(state, "client");
    struct json_iter uris = json_iter(json_get(state, "subscriptions").value);

    introduction_take(&s->intro, state);
    s->asks.last_id = json_count(state, "asks");
    session_enter(s, &client);
    if (json_get(state, "attached").type == JSON_TRUE)
        session_attach(s);
    set_level(s, s->intro.level);
    while (s->standing && json_next(&uris)) {
        BUF_SCOPED uri = {0};
        if (!subscriptions_add(s->standing, json_text(uris.value, &uri)))
            log_info("mcp", "a resource that session %s had subscribed to is not offered any more",
                     s->intro.label);
    }
}

uint64_t mcp_session_number(const struct mcp_session *s)
{
    return s->intro.number;
}

bool mcp_session_is_stray(const struct mcp_session *s, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_RESULT || m->rpc.kind == RPC_ERROR)
        return !agent_asks_knows(&s->asks, m->rpc.id);
    return m->rpc.kind == RPC_NOTIFICATION && m->rpc.params.n &&
           rpc_method_is(&m->rpc, "notifications/cancelled") &&
           !agent_requests_find(&s->pending, json_get(m->rpc.params, "requestId").value);
}
