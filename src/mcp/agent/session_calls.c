/* The calls of a session: opened, cancelled, and their progress, asks and answers sent to the
 * agent. Called by session.c; the router calls its verbs. */
#include "base/log.h"
#include "base/mem.h"
#include "core/wishes.h"
#include "mcp/agent/session_inside.h"
#include "mcp/outcome.h"

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

/* The agent need not answer this any more; `id` 0: it was not asked. */
static void withdraw_ask(struct mcp_session *s, void *reply, uint64_t id)
{
    enum mcp_out_kind kind = reply ? MCP_OUT_RELATED : MCP_OUT_UNRELATED;

    if (!id)
        return;
    agent_asks_put_cancelled(session_begin(s, reply, kind), id);
    session_end(s, reply, kind);
}

/* The same for all that was asked for a call that is over. */
static void withdraw_asks(struct mcp_session *s, const struct call *call)
{
    const struct agent_request *p = call->consumer_data;
    uint64_t id;

    while ((id = agent_asks_drop(&s->asks, call->handle)))
        withdraw_ask(s, p->reply, id);
}

void session_attach(struct mcp_session *s)
{
    if (!s->standing)
        s->standing = router_attach(s->host.router, &s->peer, s->host.view, s->answers, NULL);
}

/* The server accepted it: what it tells of this resource is for this session from now on. */
static void note_subscription(struct mcp_session *s, const struct agent_request *p,
                              const struct call *call)
{
    session_attach(s);
    router_subscribed(s->standing, call->provider,
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
        struct outcome told = mcp_refusal_as_result(call->op, outcome, &body);
        mcp_put_outcome(session_begin(s, p->reply, MCP_OUT_FINAL), pending_id(p), call->op, &told);
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
        send_notification(s, NULL, "notifications/resources/updated", event->params);
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

const struct peer_verbs session_verbs = {.event = on_event, .ask = on_ask, .done = on_done};

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

void session_open(struct mcp_session *s, const struct mcp_message *m, void *reply,
                  struct request request)
{
    const struct json_slot *meta = &m->slots[SLOT_META];
    bool subscribes = request.op == OP_SUBSCRIBE || request.op == OP_UNSUBSCRIBE;
    struct buf kept_meta = {0};
    struct agent_request *p =
        pending_new(s, m, reply, request.op, subscribes ? request.name : SPAN_EMPTY);

    if (meta->type == JSON_OBJECT)
        mcp_put_foreign_meta(&kept_meta, meta->value);
    request.params = m->rpc.params;
    request.meta_at = mcp_cut(m->rpc.params, meta);
    request.meta_keep = buf_view(&kept_meta);
    request.log_level = s->level >= 0 ? span_str(mcp_levels[s->level]) : SPAN_EMPTY;
    request.answers = s->answers;
    request.wants_progress = p->token_n > 0;
    request.takes_structured = strcmp(s->version, "2025-06-18") >= 0;
    struct call *call = router_open(s->host.router, &s->peer, s->host.view, &request, p);
    if (call)
        p->call = call; /* else it has ended, and `p` is gone */
    buf_fini(&kept_meta);
}

void session_tell(struct mcp_session *s, const struct mcp_message *m)
{
    struct buf method = {0};
    const struct request request = {
        .op = OP_TELL, .name = rpc_method_text(&m->rpc, &method), .params = m->rpc.params};

    router_open(s->host.router, &s->peer, s->host.view, &request, NULL);
    buf_fini(&method);
}

void session_cancel(struct mcp_session *s, struct span id)
{
    LIST_EACH (&s->pending, it) {
        struct agent_request *p = LIST_ENTRY(it, struct agent_request, node);
        if (span_eq(pending_id(p), id)) {
            if (p->call)
                router_cancel(p->call, FAIL_CANCELLED);
            return;
        }
    }
}

void session_answered(struct mcp_session *s, const struct mcp_message *m)
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
        router_answer(call, span_of(ask->key, ask->key_n),
                      &(struct outcome){.kind = ok ? OUTCOME_RESULT : OUTCOME_ERROR,
                                        .body = ok ? m->rpc.result : m->rpc.error});
    }
    mem_free(ask);
}
