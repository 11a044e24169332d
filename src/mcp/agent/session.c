/* An agent of the initialize era: the methods that it sends, its calls with their progress, asks
 * and answers, and the session's start and end. Called by duplex.c, http_agent.c,
 * http_session.c and sse_agent.c; the router calls the verbs. */
#include "mcp/agent/session.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/principal.h"
#include "core/wishes.h"
#include "mcp/agent/agent_asks.h"
#include "mcp/agent/elicited.h"
#include "mcp/agent/welcome.h"
#include "mcp/circle.h"
#include "mcp/legacy.h"
#include "mcp/outcome.h"
#include "mcp/task_text.h"
#include "wire/json_out.h"

#include <stdio.h>

struct mcp_session {
    struct peer peer;
    struct mcp_host host;
    void *lease; /* what host.enter gave us */
    const struct mcp_out *out;
    void *owner;
    struct call *standing;
    bool greeted; /* initialize was answered */
    bool bridge;  /* the agent is another bridge (circle.h) */
    bool results; /* failures of tool calls are told as results */
    char version[16];
    char label[16]; /* names the session in records; no secret, unlike Mcp-Session-Id */
    char *client;   /* what the agent says of itself, raw */
    unsigned answers;
    uint64_t number; /* of all sessions, by which its tasks find it */
    int level;       /* least log level wanted, index of mcp_levels; -1 = never said */
    struct agent_asks asks;
    struct elicited elicited;
    struct list pending;
    size_t n_pending;
    struct roll_entry entry;
};

static struct buf *session_begin(struct mcp_session *s, void *reply, enum mcp_out_kind kind)
{
    return s->out->begin(s->owner, reply, kind);
}

static void session_end(struct mcp_session *s, void *reply, enum mcp_out_kind kind)
{
    s->out->end(s->owner, reply, kind);
}

/* A request of the agent that waits for its answer. */
struct agent_request {
    struct mcp_session *session;
    struct list node;
    struct call *call;
    void *reply;
    enum op op;
    size_t id_n, token_n, uri_n;
    char bytes[]; /* the raw id, the raw progress token, the uri of a subscription */
};

static struct span pending_id(const struct agent_request *p)
{
    return span_of(p->bytes, p->id_n);
}

static struct span pending_token(const struct agent_request *p)
{
    return span_of(p->bytes + p->id_n, p->token_n);
}

/* --- what the provider side tells us --- */

static void pending_free(struct agent_request *p)
{
    list_remove(&p->node);
    p->session->n_pending--;
    mem_free(p);
}

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
        s->standing = router_attach(s->host.router, &s->peer, s->host.view, s->answers, NULL);
}

/* The server accepted the subscription: its updates of this resource are for this session from now
 * on. */
static void note_subscription(struct mcp_session *s, const struct agent_request *p,
                              const struct call *call)
{
    session_attach(s);
    wishes_subscribed(s->standing, call->provider, span_of(call->name, call->name_n),
                      span_of(p->bytes + p->id_n + p->token_n, p->uri_n));
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
    if (call->op == OP_SUBSCRIBE && outcome->kind == OUTCOME_RESULT)
        note_subscription(s, p, call);
    if (outcome->kind == OUTCOME_ERROR)
        elicited_note_error(&s->elicited, outcome->body);
    if (outcome->kind == OUTCOME_FAILED && outcome->why == FAIL_CANCELLED) {
        s->out->abandon(s->owner, p->reply);
    } else {
        struct buf body = {0};
        struct outcome told = mcp_outcome_for_model(call->op, outcome, s->results, &body);
        mcp_outcome_put(session_begin(s, p->reply, MCP_OUT_FINAL), pending_id(p), call->op, &told);
        session_end(s, p->reply, MCP_OUT_FINAL);
        buf_fini(&body);
    }
    pending_free(p);
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
    buf_span(out, pending_token(p));
    mcp_put_raw(out, span_from(e->params, after));
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
    const struct task *t =
        tasks_find(router_tasks(s->host.router), event->name, principal_name(s->peer.principal), 0);
    BUF_SCOPED params = {0};

    if (!t || !task_is_of(t, principal_name(s->peer.principal), s->number))
        return;
    struct task_text text = task_text_read(event->params);
    buf_char(&params, '{');
    task_text_put(&params, &text, &(struct task_style){.id = event->name});
    buf_char(&params, '}');
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
        if (mcp_level(event->level) >= s->level)
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
    case EVENT_SETTLED: /* a session's subscriptions are calls of its own */
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
    char *method = mem_span(ask->method);
    uint64_t id = agent_asks_add(&s->asks, call->handle, ask->key);

    elicited_note_request(&s->elicited, ask->params);
    /* An ask on the standing call belongs to no request of the agent. */
    void *reply = p ? p->reply : NULL;
    enum mcp_out_kind kind = p ? MCP_OUT_RELATED : MCP_OUT_UNRELATED;
    struct buf params = {0};
    rpc_put_request(session_begin(s, reply, kind), id, method,
                    mcp_legacy_ask_params(ask, id, &params));
    session_end(s, reply, kind);
    buf_fini(&params);
    mem_free(method);
}

static const struct peer_verbs session_verbs = {.event = on_event, .ask = on_ask, .done = on_done};

/* --- what the agent wants --- */

static struct agent_request *pending_new(struct mcp_session *s, const struct mcp_message *m,
                                         void *reply, enum op op, struct span uri)
{
    const struct json_slot *token = &m->slots[SLOT_META_TOKEN];
    size_t token_n = token->type == JSON_NONE ? 0 : token->value.n;
    struct agent_request *p = mem_alloc(sizeof *p + m->rpc.id.n + token_n + uri.n);

    *p = (struct agent_request){.session = s,
                                .reply = reply,
                                .op = op,
                                .id_n = m->rpc.id.n,
                                .token_n = token_n,
                                .uri_n = uri.n};
    memcpy(p->bytes, m->rpc.id.p, m->rpc.id.n);
    if (token_n)
        memcpy(p->bytes + p->id_n, token->value.p, token_n);
    if (uri.n)
        memcpy(p->bytes + p->id_n + p->token_n, uri.p, uri.n);
    list_append(&s->pending, &p->node);
    s->n_pending++;
    return p;
}

/* Pass a notification of the agent on to the view's only provider. */
static void session_tell(struct mcp_session *s, const struct mcp_message *m)
{
    struct buf method = {0};
    const struct request request = {
        .op = OP_TELL, .name = rpc_method_text(&m->rpc, &method), .params = m->rpc.params};

    call_open(s->host.router, &s->peer, s->host.view, &request, NULL);
    buf_fini(&method);
}

/* The agent takes back the request with this raw id. */
static void session_cancel(struct mcp_session *s, struct span id)
{
    LIST_EACH (&s->pending, it) {
        struct agent_request *p = LIST_ENTRY(it, struct agent_request, node);
        if (span_eq(pending_id(p), id)) {
            if (p->call)
                call_cancel(p->call, FAIL_CANCELLED);
            return;
        }
    }
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

void mcp_session_put_parse_error(struct buf *out, int code)
{
    struct buf text = {0};

    buf_printf(&text, "Parse error: %s", err_name(code));
    rpc_put_error(out, SPAN_EMPTY, RPC_PARSE_ERROR, buf_view(&text), SPAN_EMPTY);
    buf_fini(&text);
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

    if (!s->host.roll || !s->out->way)
        return;
    s->entry = (struct roll_entry){.node = s->entry.node,
                                   .roll = s->entry.roll,
                                   .label = s->label,
                                   .client = s->client,
                                   .version = s->version,
                                   .way = s->out->way,
                                   .endpoint = s->host.endpoint,
                                   .view = s->host.view_name,
                                   .principal = s->host.principal,
                                   .since = now,
                                   .last = now,
                                   .open = &s->n_pending,
                                   .hang_up = s->out->hang_up,
                                   .owner = s->owner};
    roll_enter(s->host.roll, &s->entry);
}

/* Version and answers are known: who the agent is, and a view of its own if it needs one. */
static void session_enter(struct mcp_session *s, const struct json_slot *info)
{
    s->bridge = circle_is_bridge(info->value);
    s->results = mcp_outcome_wants_results(s->host.errors, info->value);
    mem_free(s->client);
    s->client = info->type == JSON_OBJECT ? mem_span(info->value) : NULL;
    s->peer.client = s->client;
    if (s->host.enter && !s->lease) {
        struct view *own =
            s->host.enter(s->host.arg, s->host.view, s->host.principal, s->answers, &s->lease);
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
    const struct json_slot *version = &m->slots[SLOT_VERSION];
    struct buf scratch = {0};

    (void)arg;
    if (version->type != JSON_STRING) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "initialize needs params.protocolVersion, a string");
        return;
    }
    struct span asked = json_text(version->value, &scratch);
    struct span agreed = mcp_is_legacy_version(asked) ? asked : SPAN(MCP_NEWEST_LEGACY);
    memcpy(s->version, agreed.p, agreed.n);
    s->version[agreed.n] = '\0';
    s->answers = mcp_answers_of(m->slots[SLOT_CAPABILITIES].type == JSON_OBJECT
                                    ? m->slots[SLOT_CAPABILITIES].value
                                    : SPAN_EMPTY) &
                 ~(unsigned)ANSWERS_TASKS; /* an extension of the other era */
    session_enter(s, &m->slots[SLOT_INFO]);
    struct buf *out = session_begin(s, reply, MCP_OUT_FINAL);
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, m->rpc.id);
    buf_str(out, ",\"result\":{\"protocolVersion\":\"");
    buf_str(out, s->version);
    buf_str(out, "\",");
    if (s->host.server_info)
        buf_printf(out, "\"capabilities\":{\"tools\":{\"listChanged\":true}},\"serverInfo\":%s",
                   s->host.server_info);
    else
        welcome_put(out, s->host.view);
    buf_str(out, "}}");
    session_end(s, reply, MCP_OUT_FINAL);
    buf_fini(&scratch);
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
        wishes_roots_changed(s->standing);
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
    struct span list = view_list(s->host.view, (enum item_kind)kind);
    struct buf *out = session_begin(s, reply, MCP_OUT_FINAL);
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, m->rpc.id);
    buf_printf(out, ",\"result\":{\"%s\":", mcp_lists[kind].member);
    if (view_flags(s->host.view, (enum item_kind)kind) & LEGACY_REWRITES)
        legacy_put_tools(out, s->host.view);
    else
        buf_span(out, list);
    if (s->bridge) {
        buf_str(out, ",\"_meta\":{");
        circle_put_marks(out, s->host.view);
        buf_char(out, '}');
    }
    buf_str(out, "}}");
    session_end(s, reply, MCP_OUT_FINAL);
}

static void set_level(struct mcp_session *s, int level)
{
    s->level = level;
    if (level >= 0)
        wishes_want_log(s->host.router, s->host.view, level, mcp_levels[level]);
}

static void handle_set_level(struct mcp_session *s, const struct mcp_message *m, void *reply,
                             int arg)
{
    struct buf scratch = {0};
    int level = -1;

    (void)arg;
    if (m->slots[SLOT_LEVEL].type == JSON_STRING)
        level = mcp_level(json_text(m->slots[SLOT_LEVEL].value, &scratch));
    buf_fini(&scratch);
    if (level < 0) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "params.level must be one of debug, info, notice, warning, error, critical, "
                    "alert, emergency");
        return;
    }
    set_level(s, level);
    reply_result(s, reply, m->rpc.id, SPAN("{}"));
}

/* The name in the request, and its position; false: the request was refused. */
static bool read_name(struct mcp_session *s, const struct mcp_message *m, void *reply,
                      struct request *request, struct buf *scratch)
{
    const struct mcp_operation *operation = &mcp_operations[request->op];
    const struct json_slot *name = &m->slots[operation->name_slot];

    if (request->op == OP_OTHER) {
        request->name = rpc_method_text(&m->rpc, scratch);
        return true;
    }
    if (request->op == OP_COMPLETE && name->type == JSON_NONE)
        name = &m->slots[SLOT_REF_URI];
    if (name->type != JSON_STRING) {
        buf_printf(scratch, "%s needs params.%s, a string", operation->method,
                   operation->name_member);
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS, buf_cstr(scratch));
        return false;
    }
    request->name = json_text(name->value, scratch);
    request->name_at = mcp_cut(m->rpc.params, name);
    request->arguments_at = mcp_cut(m->rpc.params, &m->slots[SLOT_ARGUMENTS]);
    return true;
}

static void handle_open(struct mcp_session *s, const struct mcp_message *m, void *reply, int op)
{
    const struct json_slot *meta = &m->slots[SLOT_META];
    struct request request = {.op = (enum op)op};
    BUF_SCOPED scratch = {0}, kept_meta = {0};

    if (!read_name(s, m, reply, &request, &scratch))
        return;
    bool subscribes = op == OP_SUBSCRIBE || op == OP_UNSUBSCRIBE;
    struct agent_request *p =
        pending_new(s, m, reply, request.op, subscribes ? request.name : SPAN_EMPTY);

    if (meta->type == JSON_OBJECT)
        mcp_put_foreign_meta(&kept_meta, meta->value);
    request.params = m->rpc.params;
    request.one_line = m->rpc.one_line;
    request.meta_at = mcp_cut(m->rpc.params, meta);
    request.meta_keep = buf_view(&kept_meta);
    request.log_level = s->level >= 0 ? span_str(mcp_levels[s->level]) : SPAN_EMPTY;
    request.answers = s->answers;
    request.wants_progress = p->token_n > 0;
    request.party = s->number;
    request.as_task = op == OP_CALL_TOOL && m->slots[SLOT_TASK].type == JSON_OBJECT;
    request.takes_structured = strcmp(s->version, "2025-06-18") >= 0;
    s->entry.calls++;
    s->entry.last = router_timers(s->host.router)->now;
    struct call *call = call_open(s->host.router, &s->peer, s->host.view, &request, p);
    if (call)
        p->call = call; /* else the call has ended, and `p` is gone */
}

/* The agent's own tasks, as they were last heard of, a hundred at a time: the cursor is the id of
 * the last one. */
static void handle_task_list(struct mcp_session *s, const struct mcp_message *m, void *reply,
                             int arg)
{
    enum { PAGE = 100 };
    struct tasks *tasks = router_tasks(s->host.router);
    const struct json_slot *cursor = &m->slots[SLOT_CURSOR];
    BUF_SCOPED scratch = {0}, page = {0};
    const struct task *t = NULL, *last = NULL;
    size_t n = 0;

    (void)arg;
    if (cursor->type == JSON_STRING)
        t = tasks_find(tasks, json_text(cursor->value, &scratch), principal_name(s->peer.principal),
                       0);
    if (cursor->type != JSON_NONE &&
        (!t || !task_is_of(t, principal_name(s->peer.principal), s->number))) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS,
                    "Invalid cursor: take nextCursor of the page before, or start again without");
        return;
    }
    buf_str(&page, "{\"tasks\":[");
    while (n <= PAGE && (t = tasks_next(tasks, t))) {
        if (!task_is_of(t, principal_name(s->peer.principal), s->number) || ++n > PAGE)
            continue;
        buf_str(&page, n > 1 ? ",{" : "{");
        task_text_put_again(&page, span_str(t->state), &(struct task_style){.id = span_str(t->id)});
        buf_char(&page, '}');
        last = t;
    }
    buf_char(&page, ']');
    if (n > PAGE) {
        buf_str(&page, ",\"nextCursor\":");
        json_quote(&page, span_str(last->id));
    }
    buf_char(&page, '}');
    reply_result(s, reply, m->rpc.id, buf_view(&page));
}

/* The server is told when no other session is subscribed to the resource any more. */
static void handle_unsubscribe(struct mcp_session *s, const struct mcp_message *m, void *reply,
                               int arg)
{
    const struct json_slot *uri = &m->slots[SLOT_URI];
    struct buf scratch = {0};
    bool last = true;

    (void)arg;
    if (uri->type == JSON_STRING && s->standing)
        last = wishes_unsubscribed(s->standing, json_text(uri->value, &scratch));
    buf_fini(&scratch);
    if (last)
        handle_open(s, m, reply, OP_UNSUBSCRIBE);
    else
        reply_result(s, reply, m->rpc.id, SPAN("{}"));
}

static void handle_cancelled(struct mcp_session *s, const struct mcp_message *m, void *reply,
                             int arg)
{
    const struct json_slot *id = &m->slots[SLOT_REQUEST_ID];

    (void)reply, (void)arg;
    if (id->type != JSON_NONE)
        session_cancel(s, id->value);
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

/* If a server of the view has tasks. */
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

static bool allowed_before_initialize(const struct mcp_message *m)
{
    return rpc_method_is(&m->rpc, "initialize") || rpc_method_is(&m->rpc, "ping");
}

bool mcp_host_passes(const struct mcp_host *host, const struct mcp_message *m)
{
    const struct provider *only = view_only(host->view);

    return only && only->takes_any && !mcp_is_own_method(&m->rpc);
}

static bool refuse_misleading(struct mcp_session *s, const struct mcp_message *m, void *reply)
{
    struct buf why = {0};
    bool misleads = mcp_params_mislead(m, &why);

    if (misleads)
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS, buf_cstr(&why));
    buf_fini(&why);
    return misleads;
}

/* The handler of the request; NULL: the request was refused. */
static const struct handler *admit_request(struct mcp_session *s, const struct mcp_message *m,
                                           void *reply)
{
    static const struct handler other = {NULL, handle_open, OP_OTHER};
    const struct handler *h = find_handler(requests, COUNT_OF(requests), m);

    if (!s->greeted && !allowed_before_initialize(m)) {
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
    snprintf(s->label, sizeof s->label, "%08x", (unsigned)id_random_u64());
    s->peer.session = s->label;
    s->host = *host;
    s->host.view = host->legacy_view ? host->legacy_view : host->view;
    s->out = out;
    s->owner = owner;
    s->level = -1;
    s->number = id_random_u64() | 1;
    list_init(&s->pending);
    agent_asks_init(&s->asks);
    return s;
}

void mcp_session_free(struct mcp_session *s)
{
    roll_leave(&s->entry);
    call_cancel_all(&s->peer);
    agent_asks_fini(&s->asks);
    elicited_fini(&s->elicited);
    if (s->lease)
        s->host.leave(s->host.arg, s->lease);
    mem_free(s->client);
    mem_free(s);
}

bool mcp_session_ready(const struct mcp_session *s)
{
    return s->greeted;
}

struct span mcp_session_version(const struct mcp_session *s)
{
    return span_str(s->version);
}

size_t mcp_session_pending(const struct mcp_session *s)
{
    return s->n_pending;
}

/* --- another daemon takes over --- */

/* Questions of the daemon that goes on get ids above those of the one that ends its calls. */
enum { ASKS_APART = 1000 * 1000 };

void mcp_session_export(const struct mcp_session *s, struct buf *out)
{
    struct span uri;
    size_t at = 0;
    void *wish;

    json_out_str(out, "version", s->version);
    json_out_str(out, "label", s->label);
    json_out_number(out, "answers", s->answers);
    json_out_number(out, "number", s->number >> 1);
    json_out_number(out, "level", (uint64_t)(s->level + 1));
    json_out_number(out, "asks", s->asks.last_id + ASKS_APART);
    json_out_bool(out, "attached", s->standing != NULL);
    if (s->client)
        json_out_raw(out, "client", span_str(s->client));
    json_out_open(out, "subscriptions", '[');
    while (s->standing && map_next(&s->standing->uris, &at, &uri, &wish))
        json_out_text(out, NULL, uri);
    buf_char(out, ']');
}

static void text_in(struct span state, const char *name, char *out, size_t size)
{
    BUF_SCOPED text = {0};
    struct json_slot slot = json_get(state, name);

    if (slot.type != JSON_STRING)
        return;
    json_unescape(&text, slot.value);
    snprintf(out, size, "%s", buf_cstr(&text));
}

void mcp_session_import(struct mcp_session *s, struct span state)
{
    struct json_slot client = json_get(state, "client");
    struct json_iter uris = json_iter(json_get(state, "subscriptions").value);

    text_in(state, "version", s->version, sizeof s->version);
    text_in(state, "label", s->label, sizeof s->label);
    s->answers = (unsigned)json_count(state, "answers");
    s->number = json_count(state, "number") << 1 | 1;
    s->asks.last_id = json_count(state, "asks");
    session_enter(s, &client);
    if (json_get(state, "attached").type == JSON_TRUE)
        session_attach(s);
    set_level(s, (int)json_count(state, "level") - 1);
    while (s->standing && json_next(&uris)) {
        BUF_SCOPED uri = {0};
        if (!wishes_subscribe(s->standing, json_text(uris.value, &uri)))
            log_info("mcp", "a resource that session %s had subscribed to is not offered any more",
                     s->label);
    }
}

uint64_t mcp_session_number(const struct mcp_session *s)
{
    return s->number;
}

static bool is_pending(const struct mcp_session *s, struct span id)
{
    LIST_EACH (&s->pending, it)
        if (span_eq(pending_id(LIST_ENTRY(it, struct agent_request, node)), id))
            return true;
    return false;
}

bool mcp_session_is_stray(const struct mcp_session *s, const struct mcp_message *m)
{
    if (m->rpc.kind == RPC_RESULT || m->rpc.kind == RPC_ERROR)
        return !agent_asks_knows(&s->asks, m->rpc.id);
    return m->rpc.kind == RPC_NOTIFICATION && m->rpc.params.n &&
           rpc_method_is(&m->rpc, "notifications/cancelled") &&
           !is_pending(s, json_get(m->rpc.params, "requestId").value);
}
