/* MCP messages over an open channel, from the client to the server and back. Called by
 * hub/conductor_link.c for each message to the server, and by conductor.c for those that come from
 * components. */
#include "acp/channel_inside.h"
#include "acp/edit.h"
#include "base/log.h"
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

/* A member of params, which may be missing or no object. */
static struct json_slot member_of(struct span params, const char *name)
{
    return json_type_of(params) == JSON_OBJECT ? json_get(params, name) : (struct json_slot){0};
}

static void send_request(struct exchange *x, const struct rpc_message *m);

/*
 * Servers of the stateless dialect name a subscription by the id that its request has over ACP, and
 * servers without connections may know a progress token by another one; the client knows both by
 * its own. `object` is params or a result of theirs; what is returned may stand in `scratch`.
 */
static struct span with_own_names(const struct exchange *x, struct span object, struct buf *scratch)
{
    if (!x || json_type_of(object) != JSON_OBJECT)
        return object;
    const struct {
        const char *const *path;
        const char *theirs, *own;
    } rows[] = {
        {EDIT_PATH("_meta", "io.modelcontextprotocol/subscriptionId"), x->request_id, x->id},
        {EDIT_PATH("requestId"), x->request_id, x->id}, /* of notifications/cancelled */
        {EDIT_PATH("progressToken"), x->token, x->own_token},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!rows[i].theirs || !span_is(edit_get(object, rows[i].path).value, rows[i].theirs))
            continue;
        edit_set(scratch, object, rows[i].path, span_str(rows[i].own));
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
        send_request(x, &inner);
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
    body = with_own_names(x, body, &scratch);
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

/* A (quoted) name that nobody else gives. */
static char *new_name(struct acp_channel *ch)
{
    struct buf name = {0};

    buf_printf(&name, "\"rialto-%s-%llu\"", ch->token, (unsigned long long)++ch->last_exchange);
    buf_cstr(&name);
    return buf_take(&name);
}

/* The request to a server without connections that has this progress token. */
static struct exchange *token_holder(struct conductor *c, struct span url, struct span token)
{
    LIST_EACH (&c->unnamed, i) {
        struct acp_channel *ch = LIST_ENTRY(i, struct acp_channel, unnamed);
        if (!span_is(url, ch->server->key))
            continue;
        LIST_EACH (&ch->exchanges, k) {
            struct exchange *x = LIST_ENTRY(k, struct exchange, node);
            if (x->token && span_is(token, x->token))
                return x;
        }
    }
    return NULL;
}

/*
 * Clients choose progress tokens as they like. A server without connections sees those of all its
 * clients: one that another client uses right now is replaced. What is returned may stand in
 * `scratch`.
 */
static struct span with_token(struct exchange *x, struct span params, struct buf *scratch)
{
    struct acp_channel *ch = x->channel;
    const char *const *path = EDIT_PATH("_meta", "progressToken");
    struct json_slot token = edit_get(params, path);

    if (list_empty(&ch->unnamed) || token.type == JSON_NONE)
        return params;
    const struct exchange *other =
        token_holder(channel_conductor(ch), span_str(ch->server->key), token.value);
    mem_free(x->token);
    mem_free(x->own_token);
    x->own_token = mem_span(token.value);
    if (!other || other->channel == ch) {
        x->token = mem_span(token.value);
        return params;
    }
    x->token = new_name(ch);
    edit_set(scratch, params, path, span_str(x->token));
    return buf_view(scratch);
}

static void send_request(struct exchange *x, const struct rpc_message *m)
{
    struct acp_channel *ch = x->channel;
    struct conductor *c = channel_conductor(ch);
    struct hop_place to = channel_way(c);
    BUF_SCOPED carried = {0}, name = {0}, scratch = {0};
    struct span method = span_of(m->method.p - 1, m->method.n + 2);
    struct span params = m->params;

    if (json_type_of(params) == JSON_OBJECT)
        params = with_token(x, params, &scratch);
    const struct mcp_parts parts = {.method = method,
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
    if (channel_row(ch)->carrier || channel_row(ch)->nested) {
        x->request_id = new_name(ch);
        channel_map(ch, 'r', span_str(x->request_id), true);
        map_put(&ch->requests, span_str(x->request_id), x);
    }
    if (!ch->server->dialect_sure && channel_row(ch)->twin != M_NONE)
        x->kept = mem_span(m->text);
    send_request(x, m);
}

static void take_notification(struct acp_channel *ch, const struct rpc_message *m)
{
    const struct mcp_row *row = channel_row(ch);
    struct hop_place to = channel_way(channel_conductor(ch));
    struct span method = span_of(m->method.p - 1, m->method.n + 2), params = m->params;
    BUF_SCOPED carried = {0}, name = {0}, edited = {0};
    struct json_slot id = {0};

    if (rpc_method_is(m, "notifications/cancelled"))
        id = member_of(params, "requestId");
    if (id.type != JSON_NONE) {
        /* Ids of this side mean nothing on the other: the request's own hop is told. Where the
         * request was a message with an id of its own, that is told as well. */
        struct exchange *x = map_get(&ch->asked, id.value);
        if (x && x->sent)
            pending_cancel(x->sent);
        if (!x || !row->nested)
            return;
        edit_set(&edited, params, EDIT_PATH("requestId"), span_str(x->request_id));
        params = buf_view(&edited);
    }
    if (!row->notification)
        return; /* the stateless dialect has none from this side */
    const struct mcp_parts parts = {.method = method,
                                    .params = params,
                                    .key = span_str(ch->server->key),
                                    .connection = span_str(ch->connection)};
    mcp_put_message(&carried, ch->server->dialect, &parts);
    mcp_put_method(&name, ch->server->dialect, &parts, false);
    acp_trace_call(channel_conductor(ch)->options.trace, false, true, "Agent", to.hop->label,
                   method, params);
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
    return channel_find(c, 'c', acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD));
}

/* The (quoted) URL of a server whose name stands in the method. */
static void put_path_url(struct buf *url, const struct acp_carried *said)
{
    buf_str(url, "\"acp:");
    buf_span(url, said->server);
    buf_char(url, '"');
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
    put_call(&text, p ? p->id : 0, said->method, with_own_names(x, said->params, &own));
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

/* --- from a server without connections --- */

/* The (quoted) URL of the server that a message names; empty when it names none. */
static struct span url_of(const struct acp_message *m, const struct acp_carried *said,
                          struct buf *scratch)
{
    if (m->word != WORD_MCP_PATH)
        return m->slots[ACP_URL].type == JSON_STRING ? m->slots[ACP_URL].value : SPAN_EMPTY;
    put_path_url(scratch, said);
    return buf_view(scratch);
}

/* What is about the server itself is for all its clients. */
static bool is_for_all(const struct acp_carried *said)
{
    static const char *const methods[] = {
        "notifications/tools/list_changed", "notifications/resources/list_changed",
        "notifications/prompts/list_changed", "notifications/resources/updated"};

    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (json_string_is(said->method, span_str(methods[i])))
            return true;
    return false;
}

/*
 * Whose call is it about? Only progress says so, by its token. Anything else is for the only client
 * there is, or for the only one that waits for an answer. NULL: that cannot be known.
 */
static struct acp_channel *channel_meant(struct conductor *c, struct span url,
                                         const struct acp_carried *said, struct exchange **x)
{
    struct acp_channel *client = NULL, *busy = NULL;
    size_t clients = 0, n_busy = 0;

    *x = NULL;
    if (json_string_is(said->method, SPAN("notifications/progress")))
        *x = token_holder(c, url, member_of(said->params, "progressToken").value);
    if (*x)
        return (*x)->channel;
    LIST_EACH (&c->unnamed, it) {
        struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, unnamed);
        if (!span_is(url, ch->server->key) || ch->dead)
            continue;
        client = ch;
        clients++;
        if (!list_empty(&ch->exchanges)) {
            busy = ch;
            n_busy++;
        }
    }
    return clients == 1 ? client : n_busy == 1 ? busy : NULL;
}

/* What the server has asked a client under this id of its own. */
static struct pending *ask_of(struct conductor *c, struct span url, struct span id)
{
    LIST_EACH (&c->unnamed, i) {
        struct acp_channel *ch = LIST_ENTRY(i, struct acp_channel, unnamed);
        LIST_EACH (&ch->asks, k) {
            struct pending *p = LIST_ENTRY(k, struct pending, node);
            if (span_is(url, ch->server->key) && p->inner_id && span_is(id, p->inner_id))
                return p;
        }
    }
    return NULL;
}

static void withdraw_ask(struct pending *p, struct span params);

/* True: it was the server's word that it does not want something answered any more. */
static bool takes_back(struct conductor *c, struct span url, const struct acp_carried *said)
{
    if (!json_string_is(said->method, SPAN("notifications/cancelled")))
        return false;
    struct json_slot id = member_of(said->params, "requestId");
    struct pending *p = id.type == JSON_NONE ? NULL : ask_of(c, url, id.value);
    if (p)
        withdraw_ask(p, said->params);
    return id.type != JSON_NONE; /* one that is not open was answered meanwhile */
}

/* A message of a server that knows no connections, to the client whom it is about. */
static void divert_unnamed(struct conductor *c, struct hop *from, const struct acp_message *m,
                           const struct acp_carried *said, struct span url)
{
    struct exchange *x;

    if (!acp_is_request(m) && is_for_all(said)) {
        LIST_EACH_SAFE (&c->unnamed, it) {
            struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, unnamed);
            if (span_is(url, ch->server->key))
                deliver(ch, from, m, said, NULL);
        }
        return;
    }
    if (!acp_is_request(m) && takes_back(c, url, said))
        return;
    struct acp_channel *ch = channel_meant(c, url, said, &x);
    if (ch)
        deliver(ch, from, m, said, x);
    else if (acp_is_request(m))
        hop_error(from, m, RPC_INTERNAL_ERROR, "Internal error",
                  "several sessions use this MCP server at once, and it does not say which of them "
                  "it asks");
    else
        log_debug(from->label, "dropped a notification of an MCP server that does not say which "
                               "session it is about");
}

static bool is_unnamed(const struct conductor *c, struct span url)
{
    LIST_EACH (&c->unnamed, it)
        if (span_is(url, LIST_ENTRY(it, struct acp_channel, unnamed)->server->key))
            return true;
    return false;
}

bool channel_divert(struct conductor *c, struct hop *from, const struct acp_message *m)
{
    struct acp_carried said = {0};
    struct exchange *x = NULL;
    BUF_SCOPED scratch = {0};
    bool closes = m->word == WORD_MCP_CLOSE;
    bool carries = !closes && acp_carried(m, &said);
    struct acp_channel *ch = m->word == WORD_MCP_PATH ? NULL : channel_of(c, m, &x);
    struct span url = ch || closes ? SPAN_EMPTY : url_of(m, &said, &scratch);
    bool ours = ch || is_unnamed(c, url);

    if (ch && closes)
        disconnected(ch, from, m);
    else if (ch && carries)
        deliver(ch, from, m, &said, x);
    else if (ours && carries)
        divert_unnamed(c, from, m, &said, url);
    else if (ours && acp_is_request(m))
        hop_error(from, m, RPC_INVALID_PARAMS, "Invalid params", "there is no MCP message in it");
    buf_fini(&said.quoted);
    return ours;
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

/* The client need not answer any more. `params`: in the server's words, with its own id. */
static void withdraw_ask(struct pending *p, struct span params)
{
    struct acp_channel *ch = p->owner;
    BUF_SCOPED id = {0}, told = {0};
    struct buf text = {0};

    buf_u64(&id, p->id);
    edit_set(&told, params, EDIT_PATH("requestId"), buf_view(&id));
    put_call(&text, 0, SPAN("\"notifications/cancelled\""), buf_view(&told));
    /* An MCP client does not answer what was taken back; ACP wants an answer all the same. */
    pending_error(p, SPAN("{\"code\":-32800,\"message\":\"Request cancelled\"}"));
    pending_free(p);
    emit(ch, &text, SPAN_EMPTY);
}

void channel_ask_cancelled(struct pending *p)
{
    withdraw_ask(p, SPAN("{}"));
}
