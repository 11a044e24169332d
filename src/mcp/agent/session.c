/* What an agent of the initialize era sends: a table of methods with their handlers, the checks
 * before them, and the session's start and end. Called by duplex.c, http_endpoint.c and
 * http_session.c. */
#include "mcp/agent/session_inside.h"

#include "base/mem.h"
#include "core/wishes.h"
#include "mcp/agent/welcome.h"
#include "mcp/circle.h"

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

void mcp_put_parse_error(struct buf *out, int code)
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
                                    : SPAN_EMPTY);
    s->bridge = circle_is_bridge(m->slots[SLOT_INFO].value);
    if (s->host.enter && !s->lease) {
        struct view *own = s->host.enter(s->host.arg, s->host.view, s->answers, &s->lease);
        s->host.view = own ? own : s->host.view;
    }
    s->greeted = true;
    if (s->host.wake)
        s->host.wake(s->host.arg);

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
        mcp_put_welcome(out, s->host.view);
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
        router_roots_changed(s->standing);
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
    buf_span(out, list);
    if (s->bridge) {
        buf_str(out, ",\"_meta\":{");
        circle_put_marks(out, s->host.view);
        buf_char(out, '}');
    }
    buf_str(out, "}}");
    session_end(s, reply, MCP_OUT_FINAL);
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
    s->level = level;
    router_want_log(s->host.router, s->host.view, level, mcp_levels[level]);
    reply_result(s, reply, m->rpc.id, SPAN("{}"));
}

static void handle_open(struct mcp_session *s, const struct mcp_message *m, void *reply, int op)
{
    const struct mcp_operation *operation = &mcp_operations[op];
    const struct json_slot *name = &m->slots[operation->name_slot];
    struct buf scratch = {0};

    if (op == OP_COMPLETE && name->type == JSON_NONE)
        name = &m->slots[SLOT_REF_URI];
    if (name->type == JSON_STRING) {
        session_open(s, m, reply,
                     (struct request){.op = (enum op)op,
                                      .name = json_text(name->value, &scratch),
                                      .name_at = mcp_cut(m->rpc.params, name)});
    } else {
        buf_printf(&scratch, "%s needs params.%s, a string", operation->method,
                   operation->name_member);
        reply_error(s, reply, m->rpc.id, RPC_INVALID_PARAMS, buf_cstr(&scratch));
    }
    buf_fini(&scratch);
}

/* The server hears of it when nobody else wishes the resource any more. */
static void handle_unsubscribe(struct mcp_session *s, const struct mcp_message *m, void *reply,
                               int arg)
{
    const struct json_slot *uri = &m->slots[SLOT_URI];
    struct buf scratch = {0};
    bool last = true;

    (void)arg;
    if (uri->type == JSON_STRING && s->standing)
        last = router_unsubscribed(s->standing, json_text(uri->value, &scratch));
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

bool mcp_passes(const struct mcp_host *host, const struct mcp_message *m)
{
    const struct provider *only = view_only(host->view);

    return only && only->takes_any && !mcp_is_own_method(&m->rpc);
}

static void pass_on(struct mcp_session *s, const struct mcp_message *m, void *reply)
{
    struct buf method = {0};

    session_open(s, m, reply,
                 (struct request){.op = OP_OTHER, .name = rpc_method_text(&m->rpc, &method)});
    buf_fini(&method);
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

static void receive_request(struct mcp_session *s, const struct mcp_message *m, void *reply)
{
    const struct handler *h = find_handler(requests, COUNT_OF(requests), m);

    if (!s->greeted && !allowed_before_initialize(m)) {
        reply_error(s, reply, m->rpc.id, RPC_INVALID_REQUEST,
                    "Not initialized: send initialize first");
    } else if (!h && mcp_passes(&s->host, m)) {
        pass_on(s, m, reply);
    } else if (!h) {
        struct buf text = {0};
        buf_printf(&text, "Method not found: " SPAN_FMT, SPAN_ARG(m->rpc.method));
        reply_error(s, reply, m->rpc.id, RPC_METHOD_NOT_FOUND, buf_cstr(&text));
        buf_fini(&text);
    } else if (!refuse_misleading(s, m, reply)) {
        h->handle(s, m, reply, h->arg);
    }
}

void mcp_session_receive(struct mcp_session *s, const struct mcp_message *m, void *reply)
{
    const struct handler *h;

    switch (m->rpc.kind) {
    case RPC_REQUEST:
        receive_request(s, m, reply);
        break;
    case RPC_NOTIFICATION:
        h = find_handler(notifications, COUNT_OF(notifications), m);
        if (h)
            h->handle(s, m, NULL, h->arg);
        else if (s->greeted && mcp_passes(&s->host, m))
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
    s->host = *host;
    s->out = out;
    s->owner = owner;
    s->level = -1;
    list_init(&s->pending);
    agent_asks_init(&s->asks);
    return s;
}

void mcp_session_free(struct mcp_session *s)
{
    router_detach(s->host.router, &s->peer);
    agent_asks_fini(&s->asks);
    elicited_fini(&s->elicited);
    if (s->lease)
        s->host.leave(s->host.arg, s->lease);
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
