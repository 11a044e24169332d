#include "acp/channel.h"

#include "acp/bridge.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/* How long a session id is waited for, and how long a component may take to connect. */
enum { SESSION_GRACE_MS = 150, CONNECT_MS = 15 * 1000 };

enum channel_state { CHANNEL_NEW, CHANNEL_WAITING, CHANNEL_CONNECTING, CHANNEL_OPEN };

struct acp_channel {
    struct list node; /* in the server */
    struct acp_server *server;
    const struct channel_events *on;
    void *owner;
    enum channel_state state;
    struct timer timer;
    struct pending *connect;
    bool sent_session, tried_empty;
    char *connection;       /* raw string */
    struct map asked;       /* the client's raw id -> struct exchange */
    struct map requests;    /* M4's raw id -> struct exchange */
    struct list exchanges;  /* all of those */
    struct list asks;       /* struct pending: the server's requests to the client */
    uint64_t last_exchange; /* makes the ids of stateless requests */
    char token[16];         /* ... and this makes them unique among channels */
    bool dead;              /* closed inside one of its own events */
    unsigned busy;          /* events on the stack */
};

/* A request of the client that the server works on. */
struct exchange {
    struct list node;
    struct acp_channel *channel;
    struct pending *sent;
    char *id;         /* the client's, raw */
    char *request_id; /* M4's, raw string */
    char *kept;       /* the message, while it may have to be sent under other names */
};

static struct conductor *conductor_of(const struct acp_channel *ch)
{
    return ch->server->setup->c;
}

static const struct mcp_row *row_of(const struct acp_channel *ch)
{
    return &mcp_rows[ch->server->dialect];
}

/* Toward the servers: what the agent's predecessor gets from the agent. */
static struct place way_left(struct conductor *c)
{
    return conductor_left_of(c, (int)c->n - 1);
}

const char *acp_server_name(const struct acp_server *s)
{
    return s->name;
}

const char *acp_channel_name(const struct acp_channel *ch)
{
    return ch->server->name;
}

bool acp_channel_is_modern(const struct acp_channel *ch)
{
    return row_of(ch)->carrier;
}

size_t acp_channel_pending(const struct acp_channel *ch)
{
    return ch->asked.n;
}

/* --- finding a channel by what its server calls it --- */

/* Keys of different kinds must not meet in one map. */
static void map_channel(struct acp_channel *ch, char kind, struct span raw, bool on)
{
    struct buf key = {0};
    struct map *m = &conductor_of(ch)->channels;

    buf_char(&key, kind);
    json_unescape(&key, raw);
    if (on)
        map_put(m, buf_view(&key), ch);
    else if (map_get(m, buf_view(&key)) == ch)
        map_del(m, buf_view(&key));
    buf_fini(&key);
}

static struct acp_channel *find_channel(struct conductor *c, char kind, struct json_slot raw)
{
    struct buf key = {0};

    if (raw.type != JSON_STRING)
        return NULL;
    buf_char(&key, kind);
    json_unescape(&key, raw.value);
    struct acp_channel *ch = map_get(&c->channels, buf_view(&key));
    buf_fini(&key);
    return ch;
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
    list_append(&server->channels, &ch->node);
    snprintf(ch->token, sizeof ch->token, "%llx",
             (unsigned long long)++conductor_of(ch)->last_channel);
    return ch;
}

void acp_channel_rebind(struct acp_channel *ch, const struct channel_events *on, void *owner)
{
    ch->on = on;
    ch->owner = owner;
}

static void exchange_free(struct exchange *x)
{
    struct acp_channel *ch = x->channel;

    if (x->sent)
        x->sent->owner = NULL; /* its answer is nobody's any more */
    if (x->request_id) {
        map_channel(ch, 'r', span_str(x->request_id), false);
        map_del(&ch->requests, span_str(x->request_id));
    }
    if (map_get(&ch->asked, span_str(x->id)) == x)
        map_del(&ch->asked, span_str(x->id));
    list_remove(&x->node);
    mem_free(x->id);
    mem_free(x->request_id);
    mem_free(x->kept);
    mem_free(x);
}

static void send_disconnect(struct acp_channel *ch)
{
    struct conductor *c = conductor_of(ch);
    const struct mcp_row *row = row_of(ch);
    struct buf params = {0}, method = {0};
    struct place to = way_left(c);
    struct pending *p = NULL;

    if (!ch->connection || c->state == CHAIN_ENDING)
        return;
    mcp_put_disconnect(&params, ch->server->dialect, span_str(ch->connection));
    json_quote(&method, span_str(row->disconnect));
    if (row->disconnect_asks)
        p = pending_new(to.hop, NULL, NULL); /* the answer says nothing */
    place_send(to, p, buf_view(&method), buf_view(&params));
    buf_fini(&params);
    buf_fini(&method);
}

static void release(struct acp_channel *ch)
{
    struct timers *timers = loop_timers(conductor_of(ch)->loop);
    static const struct span gone =
        SPAN("{\"code\":-32603,\"message\":\"the MCP client has closed the connection\"}");

    timer_clear(timers, &ch->timer);
    if (ch->connect) {
        ch->connect->owner = NULL;
        pending_cancel(ch->connect);
    }
    LIST_EACH_SAFE (&ch->exchanges, it) {
        struct exchange *x = LIST_ENTRY(it, struct exchange, node);
        if (x->sent)
            pending_cancel(x->sent);
        exchange_free(x);
    }
    LIST_EACH_SAFE (&ch->asks, it) {
        struct pending *p = LIST_ENTRY(it, struct pending, node);
        pending_error(p, gone);
        pending_free(p);
    }
    send_disconnect(ch);
    if (ch->connection)
        map_channel(ch, 'c', span_str(ch->connection), false);
    map_channel(ch, 'u', span_str(ch->server->key), false);
    list_remove(&ch->node);
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
        ch->dead = true; /* freed when its event returns */
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

/* The owner may close the channel inside of its events. */
static void enter(struct acp_channel *ch)
{
    ch->busy++;
}

static void leave(struct acp_channel *ch)
{
    if (--ch->busy == 0 && ch->dead)
        release(ch);
}

/* --- connecting --- */

static void opened(struct acp_channel *ch)
{
    ch->state = CHANNEL_OPEN;
    timer_clear(loop_timers(conductor_of(ch)->loop), &ch->timer);
    if (row_of(ch)->nested)
        map_channel(ch, 'u', span_str(ch->server->key), true);
    log_debug(ch->server->name, "MCP connection open (%s)", row_of(ch)->name);
    enter(ch);
    ch->on->opened(ch->owner);
    leave(ch);
}

static void send_connect(struct acp_channel *ch);

/* Not the answer we hoped for: is there another way? */
static void connect_refused(struct acp_channel *ch, struct span error)
{
    struct acp_server *s = ch->server;
    struct rpc_error e = rpc_error_of(error);
    struct buf text = {0};

    if (e.code == RPC_METHOD_NOT_FOUND && !s->dialect_sure) {
        enum mcp_dialect next = mcp_dialect_after(s->dialect, s->form);
        if (next != M_NONE) {
            s->dialect = next;
            send_connect(ch);
            return;
        }
    } else if (row_of(ch)->old_names && !ch->sent_session && !ch->tried_empty) {
        ch->tried_empty = true; /* one generation insisted on a session id */
        send_connect(ch);
        return;
    }
    buf_str(&text, "connect was refused: ");
    json_unescape(&text, e.message.n ? e.message : SPAN("\"no reason given\""));
    log_warn(s->name, "%s", buf_cstr(&text));
    channel_kill(ch, buf_cstr(&text));
    buf_fini(&text);
}

static bool connect_answered(struct pending *p, const struct acp_message *m)
{
    struct acp_channel *ch = p->owner;

    if (!ch)
        return true;
    ch->connect = NULL;
    bool ok = m->rpc.kind == RPC_RESULT;
    acp_trace_answer(conductor_of(ch)->options.trace, p->trace, ok,
                     ok ? m->rpc.result : m->rpc.error);
    if (!ok) {
        connect_refused(ch, m->rpc.error);
        return true;
    }
    struct json_slot id = acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD);
    if (id.type != JSON_STRING) {
        /* Somebody on the way who says yes to everything: not the server's component. */
        connect_refused(ch, SPAN("{\"code\":-32601,\"message\":\"connect was answered without a "
                                 "connection id\"}"));
        return true;
    }
    ch->connection = mem_span(id.value);
    map_channel(ch, 'c', id.value, true);
    opened(ch);
    return true;
}

static void connect_dropped(struct pending *p)
{
    struct acp_channel *ch = p->owner;

    if (ch)
        ch->connect = NULL;
}

static void send_connect(struct acp_channel *ch)
{
    struct conductor *c = conductor_of(ch);
    const struct mcp_row *row = row_of(ch);
    struct place to = way_left(c);
    struct buf params = {0}, method = {0};
    const char *session = ch->server->setup->session;

    if (!row->connect) {
        opened(ch);
        return;
    }
    ch->state = CHANNEL_CONNECTING;
    ch->sent_session = session != NULL;
    if (!session && ch->tried_empty)
        session = "\"\"";
    timer_set(loop_timers(c->loop), &ch->timer, CONNECT_MS);
    mcp_put_connect(&params, ch->server->dialect, span_str(ch->server->key), span_str(session));
    json_quote(&method, span_str(row->connect));
    ch->connect = pending_new(to.hop, NULL, NULL);
    ch->connect->answered = connect_answered;
    ch->connect->dropped = connect_dropped;
    ch->connect->owner = ch;
    ch->connect->trace = acp_trace_call(c->options.trace, true, false, "Agent", to.hop->label,
                                        buf_view(&method), buf_view(&params));
    place_send(to, ch->connect, buf_view(&method), buf_view(&params));
    buf_fini(&params);
    buf_fini(&method);
}

static void on_timer(struct timer *t)
{
    struct acp_channel *ch = CONTAINER_OF(t, struct acp_channel, timer);

    if (ch->state == CHANNEL_WAITING)
        send_connect(ch); /* agents do connect before they answer session/new: go on without */
    else
        channel_kill(ch, "the server's component did not answer connect");
}

void acp_channel_open(struct acp_channel *ch)
{
    if (ch->state != CHANNEL_NEW)
        return;
    if (!row_of(ch)->old_names || ch->server->setup->session) {
        send_connect(ch);
        return;
    }
    ch->state = CHANNEL_WAITING;
    timer_set(loop_timers(conductor_of(ch)->loop), &ch->timer, SESSION_GRACE_MS);
}

void channel_session_known(struct acp_server *s)
{
    LIST_EACH_SAFE (&s->channels, it) {
        struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, node);
        if (ch->state == CHANNEL_WAITING)
            send_connect(ch);
    }
}

/* --- from the client to the server --- */

static void emit(struct acp_channel *ch, struct buf *text, struct span about)
{
    enter(ch);
    if (!ch->dead)
        ch->on->message(ch->owner, buf_view(text), about);
    leave(ch);
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

static bool request_answered(struct pending *p, const struct acp_message *m)
{
    struct exchange *x = p->owner;

    if (!x)
        return true;
    struct acp_channel *ch = x->channel;
    struct acp_server *s = ch->server;
    bool ok = m->rpc.kind == RPC_RESULT;
    struct span body = ok ? m->rpc.result : m->rpc.error;
    x->sent = NULL;
    acp_trace_answer(conductor_of(ch)->options.trace, p->trace, ok, body);
    if (!ok && x->kept && !s->dialect_sure && row_of(ch)->twin != M_NONE &&
        rpc_error_of(body).code == RPC_METHOD_NOT_FOUND) {
        char *again = x->kept;
        struct rpc_message inner;
        s->dialect = row_of(ch)->twin;
        s->dialect_sure = true;
        x->kept = NULL;
        if (rpc_skim(span_str(again), NULL, NULL, NULL, 0, &inner) == 0)
            send_request(x, inner.text, span_of(inner.method.p - 1, inner.method.n + 2),
                         inner.params);
        mem_free(again);
        return true;
    }
    s->dialect_sure = true;
    open_carrier(row_of(ch), &ok, &body);
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
    struct conductor *c = conductor_of(ch);
    const struct mcp_row *row = row_of(ch);
    struct place to = way_left(c);
    struct buf carried = {0}, name = {0};
    const struct mcp_parts parts = {.text = text,
                                    .method = method,
                                    .params = params,
                                    .key = span_str(ch->server->key),
                                    .connection = span_str(ch->connection),
                                    .request_id = span_str(x->request_id)};

    mcp_put_message(&carried, ch->server->dialect, &parts);
    json_quote(&name, span_str(row->request));
    x->sent = pending_new(to.hop, NULL, NULL);
    x->sent->answered = request_answered;
    x->sent->dropped = request_dropped;
    x->sent->owner = x;
    x->sent->trace =
        acp_trace_call(c->options.trace, true, true, "Agent", to.hop->label, method, params);
    place_send(to, x->sent, buf_view(&name), buf_view(&carried));
    buf_fini(&carried);
    buf_fini(&name);
}

static void take_request(struct acp_channel *ch, const struct rpc_message *m)
{
    struct exchange *x = MEM_NEW(struct exchange);

    x->channel = ch;
    x->id = mem_span(m->id);
    list_append(&ch->exchanges, &x->node);
    map_put(&ch->asked, m->id, x);
    if (row_of(ch)->carrier) {
        struct buf id = {0};
        buf_printf(&id, "\"rialto-%s-%llu\"", ch->token, (unsigned long long)++ch->last_exchange);
        buf_cstr(&id);
        x->request_id = buf_take(&id);
        map_channel(ch, 'r', span_str(x->request_id), true);
        map_put(&ch->requests, span_str(x->request_id), x);
    }
    if (!ch->server->dialect_sure && row_of(ch)->twin != M_NONE)
        x->kept = mem_span(m->text);
    send_request(x, m->text, span_of(m->method.p - 1, m->method.n + 2), m->params);
}

static void take_notification(struct acp_channel *ch, const struct rpc_message *m)
{
    const struct mcp_row *row = row_of(ch);
    struct place to = way_left(conductor_of(ch));
    struct span method = span_of(m->method.p - 1, m->method.n + 2);
    struct buf carried = {0}, name = {0};

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
    json_quote(&name, span_str(row->notification));
    acp_trace_call(conductor_of(ch)->options.trace, false, true, "Agent", to.hop->label, method,
                   m->params);
    place_send(to, NULL, buf_view(&name), buf_view(&carried));
    buf_fini(&carried);
    buf_fini(&name);
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
        (ch = find_channel(c, 'r', m->slots[ACP_REQUEST_ID]))) {
        *x = map_get(&ch->requests, m->slots[ACP_REQUEST_ID].value);
        return ch;
    }
    ch = find_channel(c, 'c', acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD));
    return ch ? ch : find_channel(c, 'u', m->slots[ACP_URL]);
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

/* The MCP message inside; false when there is none. */
static bool inner_of(const struct acp_message *m, struct span *method, struct span *params,
                     struct span *id)
{
    struct rpc_message inner;

    *id = SPAN_EMPTY;
    if (m->slots[ACP_MESSAGE].type == JSON_OBJECT) {
        if (rpc_skim(m->slots[ACP_MESSAGE].value, NULL, NULL, NULL, 0, &inner) || !inner.method.p)
            return false;
        *method = span_of(inner.method.p - 1, inner.method.n + 2);
        *params = inner.params;
        *id = inner.id;
        return true;
    }
    *method = m->slots[ACP_METHOD].value;
    *params = m->slots[ACP_PARAMS].type == JSON_OBJECT ? m->slots[ACP_PARAMS].value : SPAN_EMPTY;
    return m->slots[ACP_METHOD].type == JSON_STRING;
}

static void deliver(struct acp_channel *ch, struct hop *from, const struct acp_message *m,
                    const struct exchange *x)
{
    struct conductor *c = conductor_of(ch);
    struct span method, params, id;
    struct buf text = {0};
    struct pending *p = NULL;

    if (!inner_of(m, &method, &params, &id)) {
        if (acp_is_request(m))
            hop_error(from, m->rpc.id, RPC_INVALID_PARAMS, "Invalid params",
                      "there is no MCP message in it");
        return;
    }
    if (acp_is_request(m)) {
        p = pending_new(NULL, from, m);
        p->id = ++c->last_ask;
        p->owner = ch;
        if (id.n) {
            mem_free(p->inner_id);
            p->inner_id = mem_span(id);
        }
        list_append(&ch->asks, &p->node);
    }
    uint64_t trace =
        acp_trace_call(c->options.trace, p, true, from->label, "Agent", method, params);
    if (p)
        p->trace = trace;
    put_call(&text, p ? p->id : 0, method, params);
    emit(ch, &text, x ? span_str(x->id) : SPAN_EMPTY);
}

bool channel_divert(struct conductor *c, struct hop *from, const struct acp_message *m)
{
    struct exchange *x;
    struct acp_channel *ch = channel_of(c, m, &x);

    if (!ch)
        return false;
    if (m->word == WORD_MCP) {
        deliver(ch, from, m, x);
        return true;
    }
    if (acp_is_request(m)) {
        rpc_put_result(hop_begin(from), m->rpc.id, SPAN("{}"));
        hop_end(from);
    }
    mem_free(ch->connection); /* it knows already */
    map_channel(ch, 'c', acp_first(m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD).value, false);
    ch->connection = NULL;
    channel_kill(ch, "the server's component closed the connection");
    return true;
}

void channel_ask_cancelled(struct pending *p)
{
    struct acp_channel *ch = p->owner;
    struct buf params = {0}, text = {0};

    buf_str(&params, "{\"requestId\":");
    buf_u64(&params, p->id);
    buf_char(&params, '}');
    put_call(&text, 0, SPAN("\"notifications/cancelled\""), buf_view(&params));
    buf_fini(&params);
    /* An MCP client does not answer what was taken back; ACP wants an answer all the same. */
    pending_error(p, SPAN("{\"code\":-32800,\"message\":\"Request cancelled\"}"));
    pending_free(p);
    emit(ch, &text, SPAN_EMPTY);
}
