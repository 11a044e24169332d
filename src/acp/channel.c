/* An MCP connection: creating, connecting and closing a channel, and the messages over the channel
 * in both directions. Called by hub/conductor_join.c, hub/conductor_link.c and
 * hub/conductor_http.c, by conductor.c for messages of components, by setup.c, and by exchange.c
 * and unnamed.c. */
#include "acp/channel_inside.h"
#include "acp/json_edit.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/*
 * How long to wait for the id of the session: SESSION_GRACE_MS where a component may use the id,
 * SESSION_HOLD_MS where the component insists on one. Waiting without a limit could block for ever:
 * some agents answer session/new only when their MCP servers are connected. CONNECT_MS is the time
 * a component has to answer connect.
 */
enum { SESSION_GRACE_MS = 150, SESSION_HOLD_MS = 8 * 1000, CONNECT_MS = 15 * 1000 };
/* The limit for connect once the client has closed its end and only outstanding requests remain to
 * be answered. */
enum { LAST_CONNECT_MS = 500 };
enum { GREETING_MAX = 64 * 1024 };

struct conductor *channel_conductor(const struct acp_channel *ch)
{
    return ch->server->setup->c;
}

const struct mcp_row *channel_row(const struct acp_channel *ch)
{
    return &mcp_rows[ch->server->dialect];
}

struct hop_place channel_way(struct conductor *c)
{
    return conductor_left_of(c, (int)c->n - 1);
}

const char *channel_server_name(const struct acp_server *s)
{
    return s->name;
}

bool acp_channel_is_modern(const struct acp_channel *ch)
{
    return channel_row(ch)->carrier;
}

void acp_channel_set_greeting(struct acp_channel *ch, struct span params)
{
    mem_free(ch->server->greeting);
    ch->server->greeting = params.n <= GREETING_MAX ? mem_span(params) : NULL;
}

struct span acp_channel_greeting(const struct acp_channel *ch)
{
    bool forgets = channel_row(ch)->connect || channel_row(ch)->carrier;

    return span_str(forgets ? ch->server->greeting : NULL);
}

/* --- finding a channel by the id that its server uses --- */

void channel_map(struct acp_channel *ch, char kind, struct span raw, bool on)
{
    BUF_SCOPED key = {0};
    struct map *m = &channel_conductor(ch)->channels;

    buf_char(&key, kind);
    json_unescape(&key, raw);
    if (on)
        map_put(m, buf_view(&key), ch);
    else if (map_get(m, buf_view(&key)) == ch)
        map_del(m, buf_view(&key));
}

static struct acp_channel *channel_find(struct conductor *c, char kind, struct json_slot raw)
{
    BUF_SCOPED key = {0};

    if (raw.type != JSON_STRING)
        return NULL;
    buf_char(&key, kind);
    json_unescape(&key, raw.value);
    return map_get(&c->channels, buf_view(&key));
}

/* --- life --- */

static void on_timer(struct timer *t);

struct acp_channel *acp_channel_new(struct acp_server *server, const struct channel_events *on,
                                    void *owner)
{
    struct acp_channel *ch = MEM_NEW(struct acp_channel);

    ch->server = server;
    ch->on = on;
    ch->owner = owner;
    ch->timer.fire = on_timer;
    list_init(&ch->exchanges);
    list_init(&ch->asks);
    list_init(&ch->unnamed);
    list_append(&server->channels, &ch->node);
    snprintf(ch->token, sizeof ch->token, "%llx",
             (unsigned long long)++channel_conductor(ch)->last_channel);
    return ch;
}

void acp_channel_rebind(struct acp_channel *ch, const struct channel_events *on, void *owner)
{
    ch->on = on;
    ch->owner = owner;
}

static void send_disconnect(struct conductor *c, enum mcp_dialect dialect, struct span connection)
{
    BUF_SCOPED params = {0}, method = {0};
    struct hop_place to = channel_way(c);
    struct pending *p = NULL;

    if (c->state == CHAIN_ENDING)
        return;
    mcp_dialect_put_disconnect(&params, dialect, connection);
    json_quote(&method, span_str(mcp_rows[dialect].disconnect));
    if (mcp_rows[dialect].disconnect_asks)
        p = pending_new(to.hop, NULL, NULL); /* nobody waits for the answer */
    hop_place_send(to, p, buf_view(&method), buf_view(&params));
}

/* The component answered the connect of a channel that was closed meanwhile. */
static bool connected_late(struct pending *p, const struct acp_message *m)
{
    const struct mcp_row *row = p->owner;
    struct json_slot id = acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD);

    if (m->rpc.kind == RPC_RESULT && id.type == JSON_STRING)
        send_disconnect(p->to->c, (enum mcp_dialect)(row - mcp_rows), id.value);
    return true;
}

static void release(struct acp_channel *ch)
{
    struct timers *timers = loop_timers(channel_conductor(ch)->loop);
    static const struct span gone =
        SPAN("{\"code\":-32603,\"message\":\"the MCP client has closed the connection\"}");

    timer_clear(timers, &ch->timer);
    if (ch->connect) {
        ch->connect->owner = (void *)(uintptr_t)channel_row(ch);
        ch->connect->answered = connected_late;
        ch->connect->dropped = NULL;
        pending_cancel(ch->connect, SPAN("{}"));
    }
    LIST_EACH_SAFE (&ch->exchanges, it) {
        struct exchange *x = LIST_ENTRY(it, struct exchange, node);
        if (x->sent)
            pending_cancel(x->sent, SPAN("{}"));
        exchange_free(x);
    }
    LIST_EACH_SAFE (&ch->asks, it) {
        struct pending *p = LIST_ENTRY(it, struct pending, node);
        pending_error(p, gone);
        pending_free(p);
    }
    if (ch->connection) {
        send_disconnect(channel_conductor(ch), ch->server->dialect, span_str(ch->connection));
        channel_map(ch, 'c', span_str(ch->connection), false);
    }
    list_remove(&ch->node);
    list_remove(&ch->unnamed);
    map_fini(&ch->asked);
    map_fini(&ch->requests);
    mem_free(ch->connection);
    mem_free(ch);
}

void acp_channel_close(struct acp_channel *ch)
{
    if (ch->dead)
        return;
    if (ch->busy)
        ch->dead = true; /* freed when the event returns */
    else
        release(ch);
}

static void channel_kill(struct acp_channel *ch, const char *why)
{
    if (ch->dead)
        return;
    log_debug(ch->server->name, "MCP connection closed: %s", why);
    ch->dead = true;
    ch->on->closed(ch->owner, why);
    if (!ch->busy)
        release(ch);
}

void channel_kill_all(struct acp_server *s, const char *why)
{
    LIST_EACH_SAFE (&s->channels, it)
        channel_kill(LIST_ENTRY(it, struct acp_channel, node), why);
}

static void channel_enter(struct acp_channel *ch)
{
    ch->busy++;
}

static void channel_leave(struct acp_channel *ch)
{
    if (--ch->busy == 0 && ch->dead)
        release(ch);
}

/* --- connecting --- */

static void opened(struct acp_channel *ch)
{
    ch->state = CHANNEL_OPEN;
    timer_clear(loop_timers(channel_conductor(ch)->loop), &ch->timer);
    if (!channel_row(ch)->connect && !channel_row(ch)->carrier)
        list_append(&channel_conductor(ch)->unnamed, &ch->unnamed);
    log_debug(ch->server->name, "MCP connection open (%s)", channel_row(ch)->name);
    channel_enter(ch);
    ch->on->opened(ch->owner);
    channel_leave(ch);
}

static void send_connect(struct acp_channel *ch);

/* Connect as soon as the session's id is known, at once if there will be none, or without the id
 * after `ms`. */
static void connect_in_session(struct acp_channel *ch, uint64_t ms)
{
    const struct setup *setup = ch->server->setup;

    if (setup->session || !setup->asked || ch->waited >= ms) {
        send_connect(ch);
        return;
    }
    ch->waited = ms;
    ch->state = CHANNEL_WAITING;
    timer_set(loop_timers(setup->c->loop), &ch->timer, ms);
}

/* The component refused connect: try the next dialect, or again with the id of the session. */
static void connect_refused(struct acp_channel *ch, struct span error)
{
    struct acp_server *s = ch->server;
    struct rpc_error e = rpc_error_of(error);
    BUF_SCOPED text = {0};

    if (e.code == RPC_METHOD_NOT_FOUND && !s->dialect_sure) {
        enum mcp_dialect next = mcp_dialect_after(s->dialect, s->form);
        if (next != M_NONE) {
            s->dialect = next;
            send_connect(ch);
            return;
        }
    } else if (channel_row(ch)->old_names && !ch->told) {
        ch->insists = true;
        connect_in_session(ch, SESSION_HOLD_MS);
        return;
    }
    buf_str(&text, "connect was refused: ");
    json_unescape(&text, e.message.n ? e.message : SPAN("\"no reason given\""));
    log_warn(s->name, "%s", buf_cstr(&text));
    channel_kill(ch, buf_cstr(&text));
}

static bool connect_answered(struct pending *p, const struct acp_message *m)
{
    struct acp_channel *ch = p->owner;

    ch->connect = NULL;
    bool ok = m->rpc.kind == RPC_RESULT;
    acp_trace_answer(channel_conductor(ch)->options.trace, p->trace, ok,
                     ok ? m->rpc.result : m->rpc.error);
    if (!ok) {
        connect_refused(ch, m->rpc.error);
        return true;
    }
    struct json_slot id = acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD);
    if (id.type != JSON_STRING) {
        /* A proxy on the way has answered; the server's component has not seen the connect. */
        connect_refused(ch, SPAN("{\"code\":-32601,\"message\":\"connect was answered without a "
                                 "connection id\"}"));
        return true;
    }
    ch->connection = mem_span(id.value);
    channel_map(ch, 'c', id.value, true);
    opened(ch);
    return true;
}

static void connect_dropped(struct pending *p)
{
    struct acp_channel *ch = p->owner;

    ch->connect = NULL;
}

static void send_connect(struct acp_channel *ch)
{
    struct conductor *c = channel_conductor(ch);
    const struct mcp_row *row = channel_row(ch);
    struct hop_place to = channel_way(c);
    BUF_SCOPED params = {0}, method = {0};
    const char *session = ch->server->setup->session;

    if (!row->connect) {
        opened(ch);
        return;
    }
    ch->state = CHANNEL_CONNECTING;
    if (!session && ch->insists)
        session = "\"\"";
    ch->told = session != NULL;
    timer_set(loop_timers(c->loop), &ch->timer, c->at_eof ? LAST_CONNECT_MS : CONNECT_MS);
    mcp_dialect_put_connect(&params, ch->server->dialect, span_str(ch->server->key),
                            span_str(session));
    json_quote(&method, span_str(row->connect));
    ch->connect = pending_new(to.hop, NULL, NULL);
    ch->connect->answered = connect_answered;
    ch->connect->dropped = connect_dropped;
    ch->connect->owner = ch;
    ch->connect->trace = acp_trace_call(c->options.trace, true, false, "Agent", to.hop->label,
                                        buf_view(&method), buf_view(&params));
    hop_place_send(to, ch->connect, buf_view(&method), buf_view(&params));
}

static void on_timer(struct timer *t)
{
    struct acp_channel *ch = CONTAINER_OF(t, struct acp_channel, timer);

    if (ch->state == CHANNEL_WAITING)
        send_connect(ch);
    else
        channel_kill(ch, "the server's component did not answer connect");
}

void acp_channel_open(struct acp_channel *ch)
{
    if (ch->state != CHANNEL_NEW)
        return;
    if (channel_row(ch)->old_names)
        connect_in_session(ch, channel_row(ch)->names_session ? SESSION_HOLD_MS : SESSION_GRACE_MS);
    else
        send_connect(ch);
}

void channel_session_known(struct acp_server *s)
{
    LIST_EACH_SAFE (&s->channels, it) {
        struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, node);
        if (ch->state == CHANNEL_WAITING)
            send_connect(ch);
    }
}

void channel_hurry_all(struct acp_server *s)
{
    LIST_EACH (&s->channels, it) {
        struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, node);
        if (ch->state == CHANNEL_WAITING || ch->state == CHANNEL_CONNECTING)
            timer_set(loop_timers(channel_conductor(ch)->loop), &ch->timer, LAST_CONNECT_MS);
    }
}

/* --- from the client to the server --- */

static void emit(struct acp_channel *ch, struct buf *text, struct span about)
{
    channel_enter(ch);
    if (!ch->dead)
        ch->on->message(ch->owner, buf_view(text), about);
    channel_leave(ch);
    buf_fini(text);
}

void channel_answer(struct acp_channel *ch, struct span id, bool ok, struct span body)
{
    struct buf text = {0};

    if (ok)
        rpc_put_result(&text, id, body);
    else
        rpc_put_error_raw(&text, id, body);
    emit(ch, &text, SPAN_EMPTY);
}

static void take_notification(struct acp_channel *ch, const struct rpc_message *m)
{
    const struct mcp_row *row = channel_row(ch);
    struct hop_place to = channel_way(channel_conductor(ch));
    struct span method = span_of(m->method.p - 1, m->method.n + 2), params = m->params;
    BUF_SCOPED carried = {0}, name = {0}, edited = {0};
    struct json_slot id = {0};

    if (rpc_method_is(m, "notifications/cancelled"))
        id = json_edit_get(params, EDIT_PATH("requestId"));
    if (id.type != JSON_NONE) {
        /* Ids of the client mean nothing to the server: the cancellation goes to the hop that has
         * the request, with the other members of its params. Where the dialect nests whole
         * messages, the server also gets the notification with the id it knows. */
        struct exchange *x = map_get(&ch->asked, id.value);
        if (x && x->sent)
            pending_cancel(x->sent, params);
        if (!x || !row->nested)
            return;
        json_edit_set(&edited, params, EDIT_PATH("requestId"), span_str(x->request_id));
        params = buf_view(&edited);
    }
    if (!row->notification)
        return; /* the stateless dialect has no notifications from client to server */
    const struct mcp_parts parts = {.method = method,
                                    .params = params,
                                    .key = span_str(ch->server->key),
                                    .connection = span_str(ch->connection)};
    mcp_dialect_put_message(&carried, ch->server->dialect, &parts);
    mcp_dialect_put_method(&name, ch->server->dialect, &parts, false);
    acp_trace_call(channel_conductor(ch)->options.trace, false, true, "Agent", to.hop->label,
                   method, params);
    hop_place_send(to, NULL, buf_view(&name), buf_view(&carried));
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

bool acp_channel_send(struct acp_channel *ch, struct span text, struct span own_id)
{
    struct rpc_message m;

    if (rpc_skim(text, NULL, NULL, NULL, 0, &m) || m.kind == RPC_INVALID)
        return false;
    switch (m.kind) {
    case RPC_REQUEST:
        exchange_open(ch, &m, own_id);
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
                acp_channel_send(ch, it.value, SPAN_EMPTY);
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

void channel_deliver(struct acp_channel *ch, struct hop *from, const struct acp_message *m,
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
    put_call(&text, p ? p->id : 0, said->method, exchange_own_names(x, said->params, &own));
    emit(ch, &text, x ? span_str(x->id) : SPAN_EMPTY);
}

/* The server's component has ended the connection. */
static void disconnected(struct acp_channel *ch, struct hop *from, const struct acp_message *m)
{
    if (acp_is_request(m))
        hop_result(from, m, SPAN("{}"));
    if (ch->connection)
        channel_map(ch, 'c', span_str(ch->connection), false);
    mem_free(ch->connection); /* the component knows: no disconnect is sent */
    ch->connection = NULL;
    channel_kill(ch, "the server's component closed the connection");
}

bool channel_divert(struct conductor *c, struct hop *from, const struct acp_message *m)
{
    struct acp_carried said = {0};
    struct exchange *x = NULL;
    BUF_SCOPED scratch = {0};
    bool closes = m->word == WORD_MCP_CLOSE;
    bool carries = !closes && acp_carried(m, &said);
    struct acp_channel *ch = m->word == WORD_MCP_PATH ? NULL : channel_of(c, m, &x);
    struct span url = ch || closes ? SPAN_EMPTY : unnamed_url(m, &said, &scratch);
    bool ours = ch || unnamed_has(c, url);

    if (ch && closes)
        disconnected(ch, from, m);
    else if (ch && carries)
        channel_deliver(ch, from, m, &said, x);
    else if (ours && carries)
        unnamed_divert(c, from, m, &said, url);
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
        unnamed_put_url(&url, &said);
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

void channel_withdraw_ask(struct pending *p, struct span params)
{
    struct acp_channel *ch = p->owner;
    BUF_SCOPED id = {0}, told = {0};
    struct buf text = {0};

    buf_u64(&id, p->id);
    json_edit_set(&told, params, EDIT_PATH("requestId"), buf_view(&id));
    put_call(&text, 0, SPAN("\"notifications/cancelled\""), buf_view(&told));
    /* An MCP client does not answer a request that was cancelled, but ACP requires an answer. */
    pending_error(p, SPAN("{\"code\":-32800,\"message\":\"Request cancelled\"}"));
    pending_free(p);
    emit(ch, &text, SPAN_EMPTY);
}
