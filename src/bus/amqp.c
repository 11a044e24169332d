/* The RabbitMQ connection: handshake, heartbeats, publishing with confirms, and closing. Called by
 * bus.c through amqp_engine, for amqp:// and amqps:// URLs, and by amqp_channel.c. */
#include "bus/amqp_inside.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

enum {
    HANDSHAKE_MS = 15000,
    GOODBYE_MS = 1000,
    SILENT_BEATS = 4, /* two heartbeats */
    PUBLISHING = 1,   /* the number of the channel for publishing */
    CHANNELS = 2047,
    FRAME_MAX = 128 * 1024,
    MAX_BODY = 128 * 1024 * 1024, /* RabbitMQ's own default */
    MAX_OUTBOX = 64 * 1024 * 1024,
    PRECONDITION_FAILED = 406,
};

static const struct stream_events connection_events;

struct buf *amqp_out(struct amqp_connection *e)
{
    return stream_out(e->stream);
}

void amqp_wrote(struct amqp_connection *e)
{
    stream_wrote(e->stream);
}

/* --- the end of a connection --- */

static void unblock(struct amqp_connection *e)
{
    mem_free(e->blocked);
    e->blocked = NULL;
}

static void drop_connection(struct amqp_connection *e, const char *reason)
{
    if (e->connecting)
        stream_connect_cancel(e->connecting);
    e->connecting = NULL;
    if (e->stream) {
        /* On closing we have waited for the broker already, and the loop may end before the stream
         * does. */
        stream_abandon(e->stream, reason, e->ended ? 0 : GOODBYE_MS);
        e->stream = NULL;
    }
    amqp_reader_stop(&e->reader);
    timer_clear(loop_timers(e->loop), &e->deadline);
    timer_clear(loop_timers(e->loop), &e->beat);
    for (size_t i = 0; i < e->n_channels; i++)
        if (e->channels[i])
            amqp_channel_drop(e->channels[i]);
    e->confirms.n = e->confirms.head = 0;
    unblock(e);
    e->starting = 0;
    buf_reset(&e->held, 0);
    e->state = AMQP_DOWN;
}

static void engine_free(struct amqp_connection *e)
{
    loop_undefer(&e->later);
    amqp_reader_fini(&e->reader);
    amqp_address_fini(&e->address);
    if (e->tls)
        tls_context_free(e->tls);
    mem_free(e->exchange);
    mem_free(e->dlx);
    mem_free(e->channels);
    mem_free(e->confirms.numbers);
    mem_free(e->lost_why);
    unblock(e);
    buf_fini(&e->held);
    mem_free(e);
}

static void report(struct deferred *d)
{
    struct amqp_connection *e = CONTAINER_OF(d, struct amqp_connection, later);
    struct bus *bus = e->bus;

    if (e->ended) {
        engine_free(e);
        engine_closed(bus);
        return;
    }
    if (e->lost_why) {
        char *why = e->lost_why;
        e->lost_why = NULL;
        engine_lost(bus, why);
        mem_free(why);
    }
}

void amqp_lose(struct amqp_connection *e, const char *fmt, ...)
{
    BUF_SCOPED why = {0};
    va_list ap;

    if (e->state == AMQP_DOWN)
        return;
    va_start(ap, fmt);
    buf_vprintf(&why, fmt, ap);
    va_end(ap);
    e->ended = e->state >= AMQP_LEAVING;
    drop_connection(e, buf_cstr(&why));
    if (!e->ended)
        e->lost_why = buf_take(&why);
    loop_defer(e->loop, &e->later, report);
}

static void on_deadline(struct timer *t)
{
    struct amqp_connection *e = CONTAINER_OF(t, struct amqp_connection, deadline);
    amqp_lose(e, "no answer within %d s", HANDSHAKE_MS / 1000);
}

/* --- publishes that wait --- */

static size_t max_outbox(const struct amqp_connection *e)
{
    return e->options->max_outbox ? e->options->max_outbox : MAX_OUTBOX;
}

static bool is_holding(const struct amqp_connection *e)
{
    return e->blocked || e->starting;
}

/* Messages that have expired in the meantime are not sent: their publishers were told. */
static void send_held(struct amqp_connection *e)
{
    if (!is_holding(e) && e->stream)
        engine_again(e->bus, &e->held);
}

void amqp_channel_settled(struct amqp_connection *e)
{
    e->starting--;
    send_held(e);
}

/* --- confirms --- */

static void confirms_add(struct amqp_confirms *c, uint64_t number)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 64;
        uint64_t *numbers = MEM_ARRAY(uint64_t, cap);
        for (size_t i = 0; i < c->n; i++)
            numbers[i] = c->numbers[(c->head + i) % c->cap];
        mem_free(c->numbers);
        c->numbers = numbers;
        c->cap = cap;
        c->head = 0;
    }
    c->numbers[(c->head + c->n++) % c->cap] = number;
}

static uint64_t confirms_pop(struct amqp_confirms *c)
{
    uint64_t number = c->numbers[c->head];
    c->head = (c->head + 1) % c->cap;
    c->n--;
    c->first++;
    return number;
}

static void on_confirm(struct amqp_connection *e, const struct amqp_method *m)
{
    struct amqp_confirms *c = &e->confirms;
    /* The broker sends a nack when a queue did not take the message. */
    enum bus_sent how = m->id == AMQP_ACK ? BUS_SENT : BUS_FULL;

    if (m->tag < c->first || m->tag - c->first >= c->n)
        return;
    if (!m->multiple) {
        uint64_t *slot = &c->numbers[(c->head + (m->tag - c->first)) % c->cap];
        uint64_t number = *slot;
        *slot = 0;
        while (c->n && !c->numbers[c->head])
            confirms_pop(c);
        if (number)
            engine_sent(e->bus, number, how);
        return;
    }
    while (e->state == AMQP_UP && c->n && c->first <= m->tag) {
        uint64_t number = confirms_pop(c);
        if (number)
            engine_sent(e->bus, number, how);
    }
}

/* --- handshake --- */

static void on_beat(struct timer *t)
{
    struct amqp_connection *e = CONTAINER_OF(t, struct amqp_connection, beat);

    /* Beats are counted, time is not measured: if this process was stopped for a while, the
     * broker's beats are waiting to be read. */
    if (++e->silent_beats > SILENT_BEATS) {
        amqp_lose(e, "nothing was heard for %u s", (unsigned)(SILENT_BEATS * e->beat_ms / 1000));
        return;
    }
    amqp_put_beat(amqp_out(e));
    amqp_wrote(e);
    timer_set(loop_timers(e->loop), &e->beat, e->beat_ms);
}

static size_t smaller_but_not_none(size_t ours, size_t theirs)
{
    return theirs && theirs < ours ? theirs : ours;
}

static void on_start(struct amqp_connection *e, const struct amqp_method *m)
{
    (void)m;
    amqp_put_start_ok(amqp_out(e), span_str(e->address.user), span_str(e->address.password));
    e->state = AMQP_LOGIN;
}

static void on_tune(struct amqp_connection *e, const struct amqp_method *m)
{
    size_t heartbeat = smaller_but_not_none(e->address.heartbeat, m->heartbeat);

    e->frame_max = smaller_but_not_none(FRAME_MAX, m->frame_max);
    e->channel_max = smaller_but_not_none(CHANNELS, m->channel_max);
    if (e->frame_max < AMQP_MIN_FRAME) {
        amqp_lose(e, "it wants frames of %zu bytes, fewer than the %d of the standard",
                  e->frame_max, AMQP_MIN_FRAME);
        return;
    }
    e->reader.frame_max = e->frame_max;
    e->beat_ms = heartbeat * 1000 / 2;
    timer_set(loop_timers(e->loop), &e->beat, e->beat_ms);
    amqp_put_tune_ok(amqp_out(e), (uint16_t)e->channel_max, (uint32_t)e->frame_max,
                     (uint16_t)heartbeat);
    amqp_put_open(amqp_out(e), span_str(e->address.vhost));
    e->state = AMQP_ENTERING;
}

static void on_open(struct amqp_connection *e, const struct amqp_method *m)
{
    (void)m;
    struct buf *out = amqp_out(e);
    amqp_put_channel_open(out, PUBLISHING);
    amqp_put_exchange_declare(out, PUBLISHING, span_str(e->exchange));
    amqp_put_exchange_declare(out, PUBLISHING, span_str(e->dlx));
    amqp_put_confirm_select(out, PUBLISHING);
    e->state = AMQP_PREPARING;
}

static void on_ready(struct amqp_connection *e)
{
    timer_clear(loop_timers(e->loop), &e->deadline);
    e->confirms.first = 1;
    e->state = AMQP_UP;
    engine_up(e->bus);
}

/* Reports why the broker ends the connection, with a hint where we know the cause. */
static void on_close(struct amqp_connection *e, const struct amqp_method *m)
{
    static const struct {
        enum amqp_state state;
        const char *hint;
    } hints[] = {
        {AMQP_LOGIN, "check the user and the password in bus.url"},
        {AMQP_ENTERING, "check the virtual host in bus.url and the user's permissions"},
    };
    const char *hint = NULL;

    for (size_t i = 0; i < COUNT_OF(hints); i++)
        if (hints[i].state == e->state)
            hint = hints[i].hint;
    amqp_put_close_ok(amqp_out(e));
    amqp_wrote(e);
    amqp_lose(e, "it ended the connection of user '%s': %u " SPAN_FMT "%s%s", e->address.user,
              m->code, SPAN_ARG(m->text), hint ? "; " : "", hint ? hint : "");
}

static void on_blocked(struct amqp_connection *e, const struct amqp_method *m)
{
    BUF_SCOPED why = {0};

    buf_printf(&why, "RabbitMQ accepts no messages: " SPAN_FMT, SPAN_ARG(m->text));
    mem_free(e->blocked);
    e->blocked = buf_take(&why);
    log_warn("bus", "%s", e->blocked);
}

static void on_unblocked(struct amqp_connection *e, const struct amqp_method *m)
{
    (void)m;
    log_info("bus", "RabbitMQ accepts messages again");
    unblock(e);
    send_held(e);
}

static void on_close_ok(struct amqp_connection *e, const struct amqp_method *m)
{
    (void)m;
    amqp_lose(e, "closed");
}

static const struct {
    enum amqp_method_id id;
    enum amqp_state first, last; /* the states in which the method may come */
    void (*handle)(struct amqp_connection *e, const struct amqp_method *m);
} connection_methods[] = {
    {AMQP_START, AMQP_GREETING, AMQP_GREETING, on_start},
    {AMQP_TUNE, AMQP_LOGIN, AMQP_LOGIN, on_tune},
    {AMQP_OPEN_OK, AMQP_ENTERING, AMQP_ENTERING, on_open},
    {AMQP_BLOCKED, AMQP_PREPARING, AMQP_BYE, on_blocked},
    {AMQP_UNBLOCKED, AMQP_PREPARING, AMQP_BYE, on_unblocked},
    {AMQP_CLOSE, AMQP_GREETING, AMQP_BYE, on_close},
    {AMQP_CLOSE_OK, AMQP_BYE, AMQP_BYE, on_close_ok},
};

static void on_connection_method(struct amqp_connection *e, const struct amqp_method *m)
{
    for (size_t i = 0; i < COUNT_OF(connection_methods); i++) {
        if (connection_methods[i].id != m->id)
            continue;
        if (e->state < connection_methods[i].first || e->state > connection_methods[i].last)
            break;
        connection_methods[i].handle(e, m);
        if (e->stream)
            amqp_wrote(e);
        return;
    }
    amqp_lose(e, "it broke the protocol (method %d in state %d)", (int)m->id, (int)e->state);
}

/*
 * The broker names its size limit only when it refuses a message: "... message size 5011 is larger
 * than configured max size 5000". If we did not learn the limit here, every connection would end
 * again when the same message is resent.
 */
static void learn_limit(struct amqp_connection *e, const struct amqp_method *m)
{
    struct span text = m->text;
    size_t at = text.n, most = 0;

    if (m->code != PRECONDITION_FAILED || !span_has_nocase(text, SPAN("message size ")))
        return;
    while (at && ascii_is_digit(text.p[at - 1]))
        at--;
    for (; at < text.n && most < MAX_BODY; at++)
        most = most * 10 + (size_t)(text.p[at] - '0');
    if (most && most < e->max_body)
        e->max_body = most;
}

static void on_publishing_method(struct amqp_connection *e, const struct amqp_method *m)
{
    if (m->id == AMQP_ACK || m->id == AMQP_NACK) {
        on_confirm(e, m);
    } else if (m->id == AMQP_CONFIRM_OK && e->state == AMQP_PREPARING) {
        on_ready(e);
    } else if (m->id == AMQP_CHANNEL_CLOSE) {
        learn_limit(e, m);
        amqp_lose(e, "it ended the channel for publishing to '%s': %u " SPAN_FMT, e->exchange,
                  m->code, SPAN_ARG(m->text));
    }
}

static void on_frame(void *owner, const struct amqp_frame *f)
{
    struct amqp_connection *e = owner;
    struct amqp_method m;

    if (f->kind == AMQP_BEAT)
        return;
    if (f->channel > PUBLISHING) {
        /* Frames of an unknown channel are ignored: both sides have closed that channel. */
        if (f->channel < e->n_channels && e->channels[f->channel])
            amqp_channel_frame(e->channels[f->channel], f);
    } else if (f->kind != AMQP_METHOD || amqp_read_method(f->payload, &m)) {
        amqp_lose(e, "it broke the protocol (frame %d on channel %u)", (int)f->kind, f->channel);
    } else if (f->channel == PUBLISHING) {
        on_publishing_method(e, &m);
    } else {
        on_connection_method(e, &m);
    }
}

/* --- the stream --- */

static void on_data(void *owner, struct span chunk)
{
    struct amqp_connection *e = owner;

    e->silent_beats = 0;
    int code = amqp_reader_feed(&e->reader, chunk, on_frame, e);
    if (code && e->state == AMQP_GREETING)
        amqp_lose(e, "what listens there does not speak AMQP 0-9-1%s",
                  e->tls ? "" : " (or wants TLS: amqps://)");
    else if (code)
        amqp_lose(e, "it sent a broken frame: %s", err_name(code));
}

static void on_closed(void *owner, const char *reason)
{
    struct amqp_connection *e = owner;

    e->stream = NULL;
    amqp_lose(e, "%s%s", e->state == AMQP_LOGIN ? "it hung up during the login: " : "", reason);
}

static const struct stream_events connection_events = {.data = on_data, .closed = on_closed};

static void on_connected(void *owner, struct stream *s, int code)
{
    struct amqp_connection *e = owner;

    e->connecting = NULL;
    if (code) {
        amqp_lose(e, "cannot connect: %s", err_name(code));
        return;
    }
    e->stream = s;
    e->state = AMQP_GREETING;
    e->silent_beats = 0;
    if (e->tls)
        stream_secure(s, e->tls, e->address.host, NULL, HANDSHAKE_MS);
    stream_set_limit(s, 2 * max_outbox(e) + STREAM_LIMIT);
    stream_start(s, &connection_events, e);
    amqp_put_protocol(amqp_out(e));
    amqp_wrote(e);
}

/* --- ops --- */

static void *open_engine(struct bus *b, struct loop *loop, const struct bus_options *options,
                         struct err *err)
{
    const char *exchange = options->exchange ? options->exchange : "rockbot";
    struct amqp_address address;
    struct tls_context *tls = NULL;

    if (strlen(exchange) + strlen(".dlx") > AMQP_WORD || !*exchange) {
        err_set(err, ERR_CONFIG, "the name of the exchange must have 1 to %d characters",
                AMQP_WORD - 4);
        return NULL;
    }
    if (amqp_address_parse(&address, options->url, err))
        return NULL;
    if (address.tls && !(tls = tls_context_client(options->ca, err))) {
        amqp_address_fini(&address);
        return NULL;
    }
    struct amqp_connection *e = MEM_NEW(struct amqp_connection);
    struct buf dlx = {0};
    buf_printf(&dlx, "%s.dlx", exchange);
    e->bus = b;
    e->loop = loop;
    e->options = options;
    e->address = address;
    e->tls = tls;
    e->exchange = mem_str(exchange);
    e->dlx = buf_take(&dlx);
    e->max_body = MAX_BODY;
    e->deadline.fire = on_deadline;
    e->beat.fire = on_beat;
    amqp_reader_init(&e->reader);
    return e;
}

static void connect_engine(void *engine)
{
    struct amqp_connection *e = engine;
    amqp_reader_fini(&e->reader);
    amqp_reader_init(&e->reader);
    e->state = AMQP_REACHING;
    timer_set(loop_timers(e->loop), &e->deadline, HANDSHAKE_MS);
    e->connecting = stream_connect(e->loop, e->address.target, on_connected, e);
}

void amqp_channels_gone(struct amqp_connection *e)
{
    if (e->state != AMQP_LEAVING)
        return;
    e->state = AMQP_BYE;
    amqp_put_close(amqp_out(e), SPAN("leaving"));
    amqp_wrote(e);
}

static void close_engine(void *engine)
{
    struct amqp_connection *e = engine;
    if (e->state != AMQP_UP) {
        e->ended = true;
        drop_connection(e, "leaving");
        loop_defer(e->loop, &e->later, report);
        return;
    }
    e->state = AMQP_LEAVING;
    timer_set(loop_timers(e->loop), &e->deadline, GOODBYE_MS);
    for (size_t i = 0; i < e->n_channels; i++)
        if (e->channels[i])
            return; /* bus.c unsubscribed all: the last channel to close calls amqp_channels_gone */
    amqp_channels_gone(e);
}

static void describe_engine(const void *engine, struct buf *out)
{
    const struct amqp_connection *e = engine;
    buf_printf(out, "RabbitMQ at %s", e->address.target);
    if (strcmp(e->address.vhost, "/") != 0)
        buf_printf(out, ", virtual host %s", e->address.vhost);
}

static size_t max_body(const void *engine)
{
    const struct amqp_connection *e = engine;
    return e->max_body;
}

static const char *stall(const void *engine)
{
    const struct amqp_connection *e = engine;
    return e->blocked;
}

static void subscribe(void *engine, struct engine_sub *sub)
{
    struct amqp_connection *e = engine;
    if (e->state == AMQP_UP)
        amqp_channel_start(e, sub);
}

static void unsubscribe(void *engine, struct engine_sub *sub)
{
    struct amqp_connection *e = engine;
    (void)e;
    if (sub->data)
        amqp_channel_end(sub);
}

/* BUS_SENT: the message is queued for the broker. */
static enum bus_sent put_message(struct amqp_connection *e, struct span topic,
                                 const struct message *m)
{
    if (m->body.n > e->max_body)
        return BUS_TOO_LARGE;
    if (amqp_write_message(amqp_out(e), PUBLISHING, e->frame_max, span_str(e->exchange), topic, m))
        return BUS_TOO_LARGE;
    return BUS_SENT;
}

static void publish(void *engine, uint64_t number, struct span topic, const struct message *m)
{
    struct amqp_connection *e = engine;
    if (e->state != AMQP_UP)
        return; /* the connection is lost, which bus.c learns at the end of this turn */
    /* `held` needs a limit of its own: it keeps the numbers of messages that expired in the
     * outbox. */
    if (is_holding(e) && e->held.n < max_outbox(e)) {
        buf_bytes(&e->held, &number, sizeof number);
        return;
    }
    enum bus_sent how = is_holding(e) ? BUS_FULL : put_message(e, topic, m);
    if (how != BUS_SENT) {
        engine_sent(e->bus, number, how);
        return;
    }
    confirms_add(&e->confirms, number);
    amqp_wrote(e);
}

static void settle(void *engine, struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict)
{
    struct amqp_connection *e = engine;
    (void)e;
    if (sub->data)
        amqp_channel_settle(sub, tag, verdict);
}

const struct engine_ops amqp_engine = {
    .name = "RabbitMQ",
    .open = open_engine,
    .connect = connect_engine,
    .close = close_engine,
    .describe = describe_engine,
    .max_body = max_body,
    .stall = stall,
    .subscribe = subscribe,
    .unsubscribe = unsubscribe,
    .publish = publish,
    .settle = settle,
};
