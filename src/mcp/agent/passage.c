/* Messages passed unchanged between one client and its only server, except ids and cancellations,
 * which are translated. Called by duplex.c when the host is plain. */
#include "mcp/agent/passage.h"

#include "base/mem.h"
#include "mcp/agent/agent_asks.h"
#include "mcp/outcome.h"

/* A request of the client that its server works on. */
struct passing {
    struct list node;
    struct passage *passage;
    struct call *call; /* NULL until the call is opened */
    bool listens;      /* a subscription: its messages carry the id of this request */
    size_t id_n;
    char id[]; /* raw */
};

struct passage {
    struct peer peer;
    struct router *router;
    struct view *view;
    const struct mcp_out *out;
    void *owner;
    struct agent_asks asks;
    struct list passing;
    size_t n_passing;
};

static struct span id_of(const struct passing *x)
{
    return span_of(x->id, x->id_n);
}

static struct buf *begin(struct passage *p, enum mcp_out_kind kind)
{
    return p->out->begin(p->owner, NULL, kind);
}

static void end(struct passage *p, enum mcp_out_kind kind)
{
    p->out->end(p->owner, NULL, kind);
}

/* --- from the server --- */

static void passing_free(struct passing *x)
{
    list_remove(&x->node);
    x->passage->n_passing--;
    mem_free(x);
}

/* The result that ends a subscription carries the id of its request as well. */
static struct outcome with_own_id(const struct passing *x, const struct outcome *outcome,
                                  struct buf *body)
{
    struct outcome told = *outcome;
    struct json_slot meta = {0}, id = {0};

    if (x->listens && outcome->kind == OUTCOME_RESULT)
        meta = json_get(outcome->body, "_meta");
    if (meta.type == JSON_OBJECT)
        id = json_get(meta.value, MCP_META_PREFIX "subscriptionId");
    if (id.type == JSON_NONE)
        return told;
    struct cut at = mcp_cut(outcome->body, &id);
    buf_span(body, span_cut(outcome->body, 0, at.at));
    buf_span(body, id_of(x));
    buf_span(body, span_from(outcome->body, at.at + at.n));
    told.body = buf_view(body);
    return told;
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct passage *p = CONTAINER_OF(self, struct passage, peer);
    struct passing *x = call->consumer_data;

    if (!x)
        return; /* a notification, or the standing call: no answer is due */
    if (outcome->kind == OUTCOME_FAILED && outcome->why == FAIL_CANCELLED) {
        p->out->abandon(p->owner, NULL);
    } else {
        BUF_SCOPED body = {0};
        struct outcome told = with_own_id(x, outcome, &body);
        mcp_outcome_put(begin(p, MCP_OUT_FINAL), id_of(x), call->op, &told);
        end(p, MCP_OUT_FINAL);
    }
    passing_free(x);
}

/* Send the notification unchanged, except for the id of the request that it belongs to. */
static void send_notification(struct passage *p, const struct call *call, const struct event *e)
{
    BUF_SCOPED params = {0};
    char *method = mem_span(e->method);

    if (e->token_at.n) {
        buf_span(&params, span_cut(e->params, 0, e->token_at.at));
        buf_span(&params, id_of(call->consumer_data));
        buf_span(&params, span_from(e->params, e->token_at.at + e->token_at.n));
    }
    rpc_put_notification(begin(p, MCP_OUT_UNRELATED), method,
                         params.n ? buf_view(&params) : e->params);
    end(p, MCP_OUT_UNRELATED);
    mem_free(method);
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct passage *p = CONTAINER_OF(self, struct passage, peer);

    if (event->kind == EVENT_OTHER) {
        send_notification(p, call, event);
    } else if (event->kind == EVENT_UNASKED) {
        uint64_t id = agent_asks_forget(&p->asks, call->handle, event->name);
        struct buf *out = begin(p, MCP_OUT_UNRELATED);
        if (event->token_at.n)
            agent_asks_pass_cancelled(out, id, event->params, event->token_at);
        else
            agent_asks_put_cancelled(out, id);
        end(p, MCP_OUT_UNRELATED);
    }
}

static void on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct passage *p = CONTAINER_OF(self, struct passage, peer);
    char *method = mem_span(ask->method);
    uint64_t id = agent_asks_add(&p->asks, call->handle, ask->key);

    rpc_put_request(begin(p, MCP_OUT_UNRELATED), id, method, ask->params);
    end(p, MCP_OUT_UNRELATED);
    mem_free(method);
}

static const struct peer_verbs verbs = {.event = on_event, .ask = on_ask, .done = on_done};

/* --- from the client --- */

static struct passing *passing_new(struct passage *p, const struct mcp_message *m)
{
    struct passing *x = mem_zalloc(sizeof *x + m->rpc.id.n);

    x->passage = p;
    x->listens = rpc_method_is(&m->rpc, "subscriptions/listen");
    x->id_n = m->rpc.id.n;
    memcpy(x->id, m->rpc.id.p, m->rpc.id.n);
    list_append(&p->passing, &x->node);
    p->n_passing++;
    return x;
}

static void pass(struct passage *p, enum op op, const struct mcp_message *m, struct passing *x)
{
    BUF_SCOPED method = {0};
    struct request request = {.op = op,
                              .name = rpc_method_text(&m->rpc, &method),
                              .params = m->rpc.params,
                              .own_id = m->rpc.id};
    /* call_open may call `done`, which frees x: x is valid only if a call is returned. */
    struct call *call = call_open(p->router, &p->peer, p->view, &request, x);

    if (call && x)
        x->call = call;
}

/* The request that is cancelled has another id on the next hop: pass the client's notification on
 * with that id. A cancellation that names no request passes like any other notification. */
static void cancel(struct passage *p, const struct mcp_message *m)
{
    const struct json_slot *id = &m->slots[SLOT_REQUEST_ID];

    if (id->type == JSON_NONE) {
        pass(p, OP_TELL, m, NULL);
        return;
    }
    LIST_EACH (&p->passing, it) {
        struct passing *x = LIST_ENTRY(it, struct passing, node);
        if (x->call && span_eq(id_of(x), id->value)) {
            x->call->cancel_params = m->rpc.params;
            x->call->cancel_id_at = mcp_cut(m->rpc.params, id);
            call_cancel(x->call, FAIL_CANCELLED);
            return;
        }
    }
}

static void answer(struct passage *p, const struct mcp_message *m)
{
    bool ok = m->rpc.kind == RPC_RESULT;
    struct agent_ask *ask = agent_asks_take(&p->asks, m->rpc.id);
    struct call *call = ask ? router_find(p->router, ask->call) : NULL;

    if (call)
        ask_answer(call, span_of(ask->key, ask->key_n),
                   &(struct outcome){.kind = ok ? OUTCOME_RESULT : OUTCOME_ERROR,
                                     .body = ok ? m->rpc.result : m->rpc.error});
    mem_free(ask);
}

void passage_receive(struct passage *p, const struct mcp_message *m)
{
    switch (m->rpc.kind) {
    case RPC_REQUEST:
        pass(p, OP_OTHER, m, passing_new(p, m));
        break;
    case RPC_NOTIFICATION:
        if (rpc_method_is(&m->rpc, "notifications/cancelled"))
            cancel(p, m);
        else
            pass(p, OP_TELL, m, NULL);
        break;
    case RPC_RESULT:
    case RPC_ERROR:
        answer(p, m);
        break;
    case RPC_BATCH:
    case RPC_INVALID:
        break; /* the transport has dealt with these */
    }
}

/* --- life --- */

struct passage *passage_new(const struct mcp_host *host, const struct mcp_out *out, void *owner)
{
    struct passage *p = MEM_NEW(struct passage);

    peer_init(&p->peer, &verbs);
    p->router = host->router;
    p->view = host->view;
    p->out = out;
    p->owner = owner;
    list_init(&p->passing);
    agent_asks_init(&p->asks);
    /* Attach from the start: a server may send messages before the first request. */
    router_attach(p->router, &p->peer, p->view, 0, NULL);
    return p;
}

void passage_free(struct passage *p)
{
    call_cancel_all(&p->peer);
    agent_asks_fini(&p->asks);
    mem_free(p);
}

size_t passage_pending(const struct passage *p)
{
    return p->n_passing;
}
