/* MCP messages over an open channel, from the client to the server and back. Called by
 * hub/conductor_link.c for each message to the server, and by conductor.c for those that come from
 * components. */
#include "acp/channel_inside.h"
#include "acp/edit.h"
#include "base/mem.h"

/* --- from the client to the server --- */

static void emit(struct acp_channel *ch, struct buf *text, struct span about)
{
    channel_enter(ch);
    if (!ch->dead)
        ch->on->message(ch->owner, buf_view(text), about);
    channel_leave(ch);
    buf_fini(text);
}

static void emit_answer(struct acp_channel *ch, struct span id, bool ok, struct span body)
{
    struct buf text = {0};

    if (ok)
        rpc_put_result(&text, id, body);
    else
        rpc_put_error_raw(&text, id, body);
    emit(ch, &text, SPAN_EMPTY);
}

static void send_request(struct exchange *x, struct span text, struct span method,
                         struct span params);

static const char *const *const id_paths[] = {
    (const char *const[]){"_meta", "io.modelcontextprotocol/subscriptionId", NULL},
    (const char *const[]){"requestId", NULL}, /* of notifications/cancelled */
};

/*
 * Servers of the stateless dialect name a subscription by the id that its request has over ACP; the
 * client knows it by its own. `object` is params or a result of theirs; what is returned may stand
 * in `scratch`.
 */
static struct span with_own_id(const struct exchange *x, struct span object, struct buf *scratch)
{
    if (!x || !x->request_id || json_type_of(object) != JSON_OBJECT)
        return object;
    for (size_t i = 0; i < COUNT_OF(id_paths); i++) {
        if (!span_is(edit_get(object, id_paths[i]).value, x->request_id))
            continue;
        edit_set(scratch, object, id_paths[i], span_str(x->id));
        return buf_view(scratch);
    }
    return object;
}

/* The inner answer of dialects that do not use the outer one. */
static void open_carrier(const struct mcp_row *row, bool *ok, struct span *body)
{
    struct span holder = *body;

    if (!*ok || (!row->carrier && !row->nested))
        return;
    if (row->nested)
        holder = json_get(holder, "message").value;
    struct json_slot result = json_get(holder, "result"), error = json_get(holder, "error");
    if (result.type != JSON_NONE) {
        *body = result.value;
    } else if (error.type == JSON_OBJECT) {
        *ok = false;
        *body = error.value;
    } else {
        *ok = false;
        *body = SPAN("{\"code\":-32603,\"message\":\"the server's component answered with "
                     "neither a result nor an error\"}");
    }
}

/* The component does not know this name for a message: try the other one, once. */
static bool sent_again(struct exchange *x)
{
    struct acp_server *s = x->channel->server;
    char *again = x->kept;
    struct rpc_message inner;

    if (!again || (s->dialect == x->sent_as && s->dialect_sure))
        return false;
    if (s->dialect == x->sent_as) /* else another request has found out already */
        s->dialect = mcp_rows[x->sent_as].twin;
    s->dialect_sure = true;
    x->kept = NULL;
    bool sent = rpc_skim(span_str(again), NULL, NULL, NULL, 0, &inner) == 0;
    if (sent)
        send_request(x, inner.text, span_of(inner.method.p - 1, inner.method.n + 2), inner.params);
    mem_free(again);
    return sent;
}

static bool request_answered(struct pending *p, const struct acp_message *m)
{
    struct exchange *x = p->owner;

    if (!x)
        return true;
    struct acp_channel *ch = x->channel;
    bool ok = m->rpc.kind == RPC_RESULT;
    struct span body = ok ? m->rpc.result : m->rpc.error;
    x->sent = NULL;
    acp_trace_answer(channel_conductor(ch)->options.trace, p->trace, ok, body);
    if (!ok && rpc_error_of(body).code == RPC_METHOD_NOT_FOUND && sent_again(x))
        return true;
    ch->server->dialect_sure = true;
    BUF_SCOPED scratch = {0};
    open_carrier(channel_row(ch), &ok, &body);
    body = with_own_id(x, body, &scratch);
    char *id = mem_str(x->id);
    exchange_free(x);
    emit_answer(ch, span_str(id), ok, body);
    mem_free(id);
    return true;
}

static void request_dropped(struct pending *p)
{
    struct exchange *x = p->owner;

    if (x)
        x->sent = NULL;
}

static void send_request(struct exchange *x, struct span text, struct span method,
                         struct span params)
{
    struct acp_channel *ch = x->channel;
    struct conductor *c = channel_conductor(ch);
    struct hop_place to = channel_way(c);
    BUF_SCOPED carried = {0}, name = {0};
    const struct mcp_parts parts = {.text = text,
                                    .method = method,
                                    .params = params,
                                    .key = span_str(ch->server->key),
                                    .connection = span_str(ch->connection),
                                    .request_id = span_str(x->request_id)};

    mcp_put_message(&carried, ch->server->dialect, &parts);
    mcp_put_method(&name, ch->server->dialect, &parts, true);
    x->sent_as = ch->server->dialect;
    x->sent = pending_new(to.hop, NULL, NULL);
    x->sent->answered = request_answered;
    x->sent->dropped = request_dropped;
    x->sent->owner = x;
    x->sent->trace =
        acp_trace_call(c->options.trace, true, true, "Agent", to.hop->label, method, params);
    place_send(to, x->sent, buf_view(&name), buf_view(&carried));
}

static void take_request(struct acp_channel *ch, const struct rpc_message *m)
{
    struct exchange *x = MEM_NEW(struct exchange);

    x->channel = ch;
    x->id = mem_span(m->id);
    list_append(&ch->exchanges, &x->node);
    map_put(&ch->asked, m->id, x);
    if (channel_row(ch)->carrier) {
        struct buf id = {0};
        buf_printf(&id, "\"rialto-%s-%llu\"", ch->token, (unsigned long long)++ch->last_exchange);
        buf_cstr(&id);
        x->request_id = buf_take(&id);
        channel_map(ch, 'r', span_str(x->request_id), true);
        map_put(&ch->requests, span_str(x->request_id), x);
    }
    if (!ch->server->dialect_sure && channel_row(ch)->twin != M_NONE)
        x->kept = mem_span(m->text);
    send_request(x, m->text, span_of(m->method.p - 1, m->method.n + 2), m->params);
}

static void take_notification(struct acp_channel *ch, const struct rpc_message *m)
{
    const struct mcp_row *row = channel_row(ch);
    struct hop_place to = channel_way(channel_conductor(ch));
    struct span method = span_of(m->method.p - 1, m->method.n + 2);
    BUF_SCOPED carried = {0}, name = {0};

    if (rpc_method_is(m, "notifications/cancelled")) {
        /* Ids of this side mean nothing on the other: the request's own hop is told. */
        struct json_slot id =
            m->params.n ? json_get(m->params, "requestId") : (struct json_slot){0};
        struct exchange *x = id.type == JSON_NONE ? NULL : map_get(&ch->asked, id.value);
        if (x && x->sent)
            pending_cancel(x->sent);
        if (!row->nested)
            return;
    }
    if (!row->notification)
        return; /* the stateless dialect has none from this side */
    const struct mcp_parts parts = {.text = m->text,
                                    .method = method,
                                    .params = m->params,
                                    .key = span_str(ch->server->key),
                                    .connection = span_str(ch->connection)};
    mcp_put_message(&carried, ch->server->dialect, &parts);
    mcp_put_method(&name, ch->server->dialect, &parts, false);
    acp_trace_call(channel_conductor(ch)->options.trace, false, true, "Agent", to.hop->label,
                   method, m->params);
    place_send(to, NULL, buf_view(&name), buf_view(&carried));
}

static void take_answer(struct acp_channel *ch, const struct rpc_message *m)
{
    int64_t id;

    if (!json_int(m->id, &id))
        return;
    LIST_EACH_SAFE (&ch->asks, it) {
        struct pending *p = LIST_ENTRY(it, struct pending, node);
        if (p->id != (uint64_t)id)
            continue;
        if (m->kind == RPC_RESULT)
            pending_result(p, m->result);
        else
            pending_error(p, m->error);
        pending_free(p);
        return;
    }
}

bool acp_channel_send(struct acp_channel *ch, struct span text)
{
    struct rpc_message m;

    if (rpc_skim(text, NULL, NULL, NULL, 0, &m) || m.kind == RPC_INVALID)
        return false;
    switch (m.kind) {
    case RPC_REQUEST:
        take_request(ch, &m);
        break;
    case RPC_NOTIFICATION:
        take_notification(ch, &m);
        break;
    case RPC_RESULT:
    case RPC_ERROR:
        take_answer(ch, &m);
        break;
    case RPC_BATCH: {
        struct json_iter it = json_iter(m.text);
        while (json_next(&it))
            if (it.type == JSON_OBJECT)
                acp_channel_send(ch, it.value);
        break;
    }
    case RPC_INVALID:
        break;
    }
    return true;
}

/* --- from the server to the client --- */

static struct acp_channel *channel_of(struct conductor *c, const struct acp_message *m,
                                      struct exchange **x)
{
    struct acp_channel *ch;

    *x = NULL;
    if (m->slots[ACP_REQUEST_ID].type == JSON_STRING &&
        (ch = channel_find(c, 'r', m->slots[ACP_REQUEST_ID]))) {
        *x = map_get(&ch->requests, m->slots[ACP_REQUEST_ID].value);
        return ch;
    }
    ch = channel_find(c, 'c', acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD));
    return ch ? ch : channel_find(c, 'u', m->slots[ACP_URL]);
}

/* The (quoted) URL of a server whose name stands in the method. */
static void put_path_url(struct buf *url, const struct acp_carried *said)
{
    buf_str(url, "\"acp:");
    buf_span(url, said->server);
    buf_char(url, '"');
}

static struct acp_channel *channel_of_path(struct conductor *c, const struct acp_carried *said)
{
    BUF_SCOPED url = {0};

    put_path_url(&url, said);
    struct json_slot slot = {.type = JSON_STRING, .value = buf_view(&url)};
    return channel_find(c, 'u', slot);
}

static void put_call(struct buf *out, uint64_t id, struct span method, struct span params)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\"");
    if (id) {
        buf_str(out, ",\"id\":");
        buf_u64(out, id);
    }
    buf_str(out, ",\"method\":");
    buf_span(out, method);
    if (params.n) {
        buf_str(out, ",\"params\":");
        buf_span(out, params);
    }
    buf_char(out, '}');
}

static void deliver(struct acp_channel *ch, struct hop *from, const struct acp_message *m,
                    const struct acp_carried *said, const struct exchange *x)
{
    struct conductor *c = channel_conductor(ch);
    BUF_SCOPED own = {0};
    struct buf text = {0};
    struct pending *p = NULL;

    if (acp_is_request(m)) {
        p = pending_new(NULL, from, m);
        p->id = ++c->last_ask;
        p->owner = ch;
        if (said->id.n) {
            mem_free(p->inner_id);
            p->inner_id = mem_span(said->id);
        }
        list_append(&ch->asks, &p->node);
    }
    uint64_t trace =
        acp_trace_call(c->options.trace, p, true, from->label, "Agent", said->method, said->params);
    if (p)
        p->trace = trace;
    put_call(&text, p ? p->id : 0, said->method, with_own_id(x, said->params, &own));
    emit(ch, &text, x ? span_str(x->id) : SPAN_EMPTY);
}

/* The server's component has ended the connection. */
static void disconnected(struct acp_channel *ch, struct hop *from, const struct acp_message *m)
{
    if (acp_is_request(m))
        hop_result(from, m, SPAN("{}"));
    if (ch->connection)
        channel_map(ch, 'c', span_str(ch->connection), false);
    mem_free(ch->connection); /* no disconnect is sent to one that knows */
    ch->connection = NULL;
    channel_kill(ch, "the server's component closed the connection");
}

bool channel_divert(struct conductor *c, struct hop *from, const struct acp_message *m)
{
    struct acp_carried said = {0};
    struct exchange *x = NULL;
    struct acp_channel *ch;
    bool closes = m->word == WORD_MCP_CLOSE;
    bool carries = !closes && acp_carried(m, &said);

    ch = m->word == WORD_MCP_PATH ? channel_of_path(c, &said) : channel_of(c, m, &x);
    if (ch && closes)
        disconnected(ch, from, m);
    else if (ch && carries)
        deliver(ch, from, m, &said, x);
    else if (ch && acp_is_request(m))
        hop_error(from, m, RPC_INVALID_PARAMS, "Invalid params", "there is no MCP message in it");
    buf_fini(&said.quoted);
    return ch != NULL;
}

bool channel_is_astray(struct conductor *c, const struct acp_message *m)
{
    static const char *const names[] = {"acp_url", "acp_id", "acpUrl", "acpId", "serverId", "url"};
    const struct hop *owner = NULL;
    struct acp_carried said = {0};

    if (m->word == WORD_MCP_PATH && acp_carried(m, &said)) {
        BUF_SCOPED url = {0};
        put_path_url(&url, &said);
        owner = map_get(&c->owners, buf_view(&url));
        buf_fini(&said.quoted);
    } else if ((m->word == WORD_MCP || m->word == WORD_MCP_OPEN) &&
               json_type_of(m->params) == JSON_OBJECT) {
        const struct acp_channel *ch =
            channel_find(c, 'c', acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD));
        owner = ch ? ch->server->owner : NULL;
        for (size_t i = 0; !ch && !owner && i < COUNT_OF(names); i++)
            owner = map_get(&c->owners, json_get(m->params, names[i]).value);
    }
    return owner && owner != &c->up;
}

void channel_ask_cancelled(struct pending *p)
{
    struct acp_channel *ch = p->owner;
    BUF_SCOPED params = {0};
    struct buf text = {0};

    buf_str(&params, "{\"requestId\":");
    buf_u64(&params, p->id);
    buf_char(&params, '}');
    put_call(&text, 0, SPAN("\"notifications/cancelled\""), buf_view(&params));
    /* An MCP client does not answer what was taken back; ACP wants an answer all the same. */
    pending_error(p, SPAN("{\"code\":-32800,\"message\":\"Request cancelled\"}"));
    pending_free(p);
    emit(ch, &text, SPAN_EMPTY);
}
