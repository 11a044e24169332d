/* A BTCP agent: joining a session, calls and their answers, notices about changed tools. Called by
 * routes.c, sender.c, relay.c, session.c, pipe.c and browser.c, and by the core when calls end. */
#include "browser/agent.h"

#include "base/mem.h"
#include "browser/dialect.h"
#include "browser/pipe.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

/* A call of the agent, with the id of its request: the response must carry the same id. */
struct asked {
    size_t id_n;
    char id[];
};

static struct agent *of_peer(struct peer *self)
{
    return CONTAINER_OF(self, struct agent, peer);
}

static void end_post(struct deferred *d)
{
    agent_free(CONTAINER_OF(d, struct agent, end));
}

static void send(struct agent *a, struct span json)
{
    if (a->pipe) {
        pipe_send(a->pipe, json, false);
    } else if (a->x) {
        http_exchange_on_gone(a->x, NULL, NULL);
        http_respond(a->x, 200, "application/json", SPAN_EMPTY, json);
        a->x = NULL;
        loop_defer(a->browser->loop, &a->end, end_post);
    }
}

static const struct dialect *dialect_of(const struct agent *a)
{
    return a->pipe ? a->pipe->dialect : a->dialect;
}

/* A number stays as it is. A word stays if the dialect has words, else it becomes a number. */
static void put_code(struct buf *out, const struct agent *a, struct json_slot code)
{
    const struct dialect *d = dialect_of(a);
    bool word = code.type == JSON_STRING;
    BUF_SCOPED scratch = {0};

    if (code.type == JSON_NUMBER || (word && d->error_words))
        buf_span(out, code.value);
    else
        buf_printf(out, "%d",
                   dialect_number(d, word ? json_text(code.value, &scratch) : SPAN_EMPTY));
}

/* Converts an MCP error back to the BTCP error that it was made from. */
static void put_error(struct buf *out, const struct agent *a, struct span id, struct span error)
{
    struct json_slot data = json_get(error, "data");
    BUF_SCOPED body = {0};

    buf_str(&body, "{\"code\":");
    put_code(&body, a,
             data.type == JSON_OBJECT ? json_get(data.value, "btcpCode") : (struct json_slot){0});
    buf_char(&body, ',');
    buf_span(&body, json_get(error, "message").member);
    buf_char(&body, '}');
    rpc_put_error_raw(out, id, buf_view(&body));
}

/* The raw text of a result whose content is a single text item; empty for other results. */
static struct span only_text(struct span result)
{
    struct json_iter it = json_iter(json_get(result, "content").value);

    if (json_get(result, "content").type != JSON_ARRAY || !json_next(&it) || it.type != JSON_OBJECT)
        return SPAN_EMPTY;
    struct json_slot text = json_get(it.value, "text");
    return text.type == JSON_STRING && !json_next(&it) ? text.value : SPAN_EMPTY;
}

/* Undoes MCP's form: puts structuredContent, or else the single text, or else the whole result. */
static void put_bare_result(struct buf *out, struct span id, struct span result)
{
    struct json_slot value = json_get(result, "structuredContent");
    struct span text = only_text(result);
    BUF_SCOPED scratch = {0};

    if (value.type != JSON_NONE) {
        rpc_put_result(out, id, value.value);
    } else if (text.n) {
        struct span inside = json_text(text, &scratch);
        bool is_json = json_skim(inside, NULL, NULL, NULL, NULL) == 0;
        rpc_put_result(out, id, is_json ? inside : text);
    } else {
        rpc_put_result(out, id, result);
    }
}

/* In dialects with bare results a failed tool is an error, as BTCP's specification says. */
static void put_tool_error(struct buf *out, const struct agent *a, struct span id,
                           struct span result)
{
    struct span text = only_text(result);
    BUF_SCOPED error = {0};

    buf_str(&error, "{\"data\":{\"btcpCode\":\"EXECUTION_ERROR\"}");
    json_out_raw(&error, "message", text.n ? text : SPAN("\"The tool failed\""));
    buf_char(&error, '}');
    put_error(out, a, id, buf_view(&error));
}

static void put_outcome(struct buf *out, const struct agent *a, struct span id,
                        const struct outcome *outcome)
{
    bool bare = outcome->kind == OUTCOME_RESULT && dialect_of(a)->result_is_bare;

    if (dialect_of(a)->put_result)
        dialect_of(a)->put_result(out, id, outcome);
    else if (bare && outcome->is_error)
        put_tool_error(out, a, id, outcome->body);
    else if (bare)
        put_bare_result(out, id, outcome->body);
    else if (outcome->kind == OUTCOME_RESULT)
        rpc_put_result(out, id, outcome->body);
    else if (outcome->kind == OUTCOME_ERROR)
        put_error(out, a, id, outcome->body);
    else
        rpc_put_error(out, id, RPC_INTERNAL_ERROR, outcome->text, SPAN_EMPTY);
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct agent *a = of_peer(self);
    struct asked *c = call->consumer_data;
    bool hears = a->pipe || a->x; /* false when the call ends because the agent left */
    BUF_SCOPED text = {0};

    if (call->op == OP_STANDING) {
        a->standing = NULL;
        return;
    }
    if (hears)
        put_outcome(&text, a, span_of(c->id, c->id_n), outcome);
    mem_free(c);
    if (hears)
        send(a, buf_view(&text));
}

static void push(struct agent *a, const char *method, struct span params)
{
    BUF_SCOPED text = {0};

    if (a->pipe->dialect->pushes_ask)
        rpc_put_request(&text, ++a->n_pushed, method, params);
    else
        rpc_put_notification(&text, method, params);
    send(a, buf_view(&text));
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct agent *a = of_peer(self);
    BUF_SCOPED params = {0};

    (void)call;
    if (event->kind != EVENT_CHANGED || !a->pipe)
        return;
    if (a->pipe->dialect->put_changed) {
        a->pipe->dialect->put_changed(&params, a->browser);
        send(a, buf_view(&params));
    }
    if (!a->session)
        return;
    bool connected = session_is_connected(a->session);
    if (connected) {
        buf_str(&params, "{\"tools\":");
        buf_span(&params, view_list(a->session->view, ITEM_TOOL));
        buf_char(&params, '}');
        push(a, "tools/updated", buf_view(&params));
    } else if (a->had_pages && a->pipe->dialect->pushes_ask) {
        push(a, "session/browserDisconnected", SPAN("{}"));
    } else if (a->had_pages) {
        buf_printf(&params, "{\"sessionId\":\"%s\"}", a->session->id);
        push(a, "browser/disconnected", buf_view(&params));
    }
    a->had_pages = connected;
}

/* BTCP has no way to ask an agent something, so every question is refused. */
static const struct peer_verbs verbs = {.event = on_event, .ask = ask_nobody, .done = on_done};

struct agent *agent_new(struct browser *b, struct pipe *pipe)
{
    struct agent *a = MEM_NEW(struct agent);

    a->browser = b;
    a->pipe = pipe;
    peer_init(&a->peer, &verbs);
    a->peer.endpoint = "btcp";
    if (pipe) {
        pipe->agent = a;
        a->peer.principal = principal_hold(pipe->principal);
    }
    list_init(&a->node);
    return a;
}

void agent_free(struct agent *a)
{
    if (a->x)
        http_exchange_abort(a->x, "the bridge is shutting down");
    a->pipe = NULL;
    a->x = NULL;
    loop_undefer(&a->end);
    call_cancel_all(&a->peer);
    principal_release(a->peer.principal);
    list_remove(&a->node);
    if (a->session)
        browser_sweep_later(a->browser, a->session);
    mem_free(a->client);
    mem_free(a->own);
    mem_free(a);
}

void agent_join(struct agent *a, struct browser_session *s)
{
    if (a->session == s)
        return;
    if (a->standing)
        call_cancel(a->standing, FAIL_CANCELLED);
    list_remove(&a->node);
    if (a->session)
        browser_sweep_later(a->browser, a->session);
    a->session = s;
    if (!s)
        return;
    session_touch(s);
    list_append(&s->agents, &a->node);
    a->had_pages = session_is_connected(s);
    a->standing = router_attach(a->browser->router, &a->peer, s->view, 0, NULL);
}

void agent_watch(struct agent *a)
{
    if (!a->standing)
        a->standing = router_attach(a->browser->router, &a->peer, a->browser->all, 0, NULL);
}

void agent_call(struct agent *a, struct view *v, struct span id, struct span params)
{
    struct json_slot name = json_get(params, "name");
    struct asked *c = mem_zalloc(sizeof *c + id.n);
    BUF_SCOPED scratch = {0};

    c->id_n = id.n;
    memcpy(c->id, id.p, id.n);
    struct request request = {.op = OP_CALL_TOOL,
                              .name = json_text(name.value, &scratch),
                              .params = params,
                              .name_at = {(size_t)(name.value.p - params.p), name.value.n}};
    (void)call_open(a->browser->router, &a->peer, v, &request, c);
}

struct agent *agent_find(const struct browser *b, struct span client, struct span own)
{
    struct agent *newest = NULL;

    LIST_EACH (&b->pipes, it) {
        struct agent *a = LIST_ENTRY(it, struct pipe, node)->agent;
        if (!a)
            continue;
        if (client.n ? a->client && span_is(client, a->client) : a->own && span_is(own, a->own))
            newest = a;
    }
    return newest;
}
