/* Making, connecting, finding and closing a channel. Called by hub/conductor_join.c,
 * hub/conductor_link.c and hub/conductor_http.c, and by channel_traffic.c and setup.c. */
#include "acp/channel_inside.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/*
 * How long the id of a session is waited for: where a component may use it, and where it has to
 * have one. For ever would be too long: some agents answer session/new only when their MCP servers
 * are connected. And how long a component may take to connect.
 */
enum { SESSION_GRACE_MS = 150, SESSION_HOLD_MS = 8 * 1000, CONNECT_MS = 15 * 1000 };
/* The same once the client has closed its end, and all there is to do is to answer the rest. */
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

/* --- finding a channel by what its server calls it --- */

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

struct acp_channel *channel_find(struct conductor *c, char kind, struct json_slot raw)
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

void exchange_free(struct exchange *x)
{
    struct acp_channel *ch = x->channel;

    if (x->sent)
        x->sent->owner = NULL; /* its answer is nobody's any more */
    if (x->request_id) {
        channel_map(ch, 'r', span_str(x->request_id), false);
        map_del(&ch->requests, span_str(x->request_id));
    }
    if (map_get(&ch->asked, span_str(x->id)) == x)
        map_del(&ch->asked, span_str(x->id));
    list_remove(&x->node);
    mem_free(x->id);
    mem_free(x->request_id);
    mem_free(x->token);
    mem_free(x->own_token);
    mem_free(x->kept);
    mem_free(x);
}

static void send_disconnect(struct conductor *c, enum mcp_dialect dialect, struct span connection)
{
    BUF_SCOPED params = {0}, method = {0};
    struct hop_place to = channel_way(c);
    struct pending *p = NULL;

    if (c->state == CHAIN_ENDING)
        return;
    mcp_put_disconnect(&params, dialect, connection);
    json_quote(&method, span_str(mcp_rows[dialect].disconnect));
    if (mcp_rows[dialect].disconnect_asks)
        p = pending_new(to.hop, NULL, NULL); /* the answer says nothing */
    place_send(to, p, buf_view(&method), buf_view(&params));
}

/* It connected, although nobody wanted that any more. */
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
        ch->dead = true; /* freed when its event returns */
    else
        release(ch);
}

void channel_kill(struct acp_channel *ch, const char *why)
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

void channel_enter(struct acp_channel *ch)
{
    ch->busy++;
}

void channel_leave(struct acp_channel *ch)
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

/* Connect when the session's id is known, when there will be none, or after this long. */
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

/* Not the answer we hoped for: is there another way? */
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
        /* Somebody on the way who says yes to everything: not the server's component. */
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
    mcp_put_connect(&params, ch->server->dialect, span_str(ch->server->key), span_str(session));
    json_quote(&method, span_str(row->connect));
    ch->connect = pending_new(to.hop, NULL, NULL);
    ch->connect->answered = connect_answered;
    ch->connect->dropped = connect_dropped;
    ch->connect->owner = ch;
    ch->connect->trace = acp_trace_call(c->options.trace, true, false, "Agent", to.hop->label,
                                        buf_view(&method), buf_view(&params));
    place_send(to, ch->connect, buf_view(&method), buf_view(&params));
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
