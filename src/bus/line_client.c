/* The engine that joins an embedded bus of another process over a socket: hello, the lines in both
 * directions, pings. Called by bus.c for tcp:// URLs, and by embedded.c when another process hosts
 * the bus. */
#include "bus/line_client.h"

#include "base/log.h"
#include "base/map.h"
#include "bus/line.h"
#include "io/stream.h"
#include "wire/json_out.h"
#include "wire/lines.h"

enum {
    HELLO_MS = 10000,
    PING_MS = 15000,
    SILENCE_MOST = 3, /* pings without an answer until the connection counts as lost */
    BYE_MS = 500,
};

/* The outbox is sent at once after a reconnect, so the stream must take more than the outbox. */
static const size_t queue_limit = 512ul * 1024 * 1024;

/* A body that is delivered as base64 is longer than in the line that published it. */
static const size_t read_limit = 2ul * LINE_MOST;

struct line_client {
    struct bus *bus;
    struct loop *loop;
    const struct bus_options *options;
    char *address;
    struct connect *connecting;
    struct stream *stream;
    struct lines lines;
    struct idmap subs; /* engine_sub by id, which is its sid */
    bool joined, closing;
    unsigned silence;
    struct timer ping_timer;
    struct deferred gone;
};

/* --- writing --- */

static void say(struct line_client *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct line_client *e, const char *fmt, ...)
{
    va_list ap;

    if (!e->stream)
        return;
    va_start(ap, fmt);
    buf_vprintf(stream_out(e->stream), fmt, ap);
    va_end(ap);
    buf_char(stream_out(e->stream), '\n');
    stream_wrote(e->stream);
}

static void say_hello(struct line_client *e)
{
    struct buf *out = stream_out(e->stream);

    buf_printf(out, "{\"op\":\"hello\",\"id\":\"hello\",\"v\":%d,\"name\":", LINE_VERSION);
    json_quote(out, span_str(e->options->name ? e->options->name : "unknown"));
    if (e->options->token)
        json_out_text(out, "token", span_str(e->options->token));
    buf_str(out, "}\n");
    stream_wrote(e->stream);
}

/* --- reading --- */

static void on_ok(struct line_client *e, const struct line *l)
{
    if (!e->joined && json_string_is(l->slots[LINE_ID].value, SPAN("hello"))) {
        e->joined = true;
        engine_up(e->bus);
        return;
    }
    int64_t number = line_number(l, LINE_ID, -1);
    if (number > 0)
        engine_sent(e->bus, (uint64_t)number, BUS_SENT);
}

static void on_err(struct line_client *e, const struct line *l)
{
    BUF_SCOPED scratch = {0};
    struct span code = line_text(l, LINE_CODE, &scratch);
    int64_t number = line_number(l, LINE_ID, -1);

    if (number > 0)
        engine_sent(e->bus, (uint64_t)number, span_is(code, "full") ? BUS_FULL : BUS_TOO_LARGE);
    if (number <= 0 || !span_is(code, "full")) {
        struct span text = line_text(l, LINE_MESSAGE, &scratch);
        log_warn("bus", "the bus at %s says: " SPAN_FMT, e->address,
                 SPAN_ARG(span_cut(text, 0, 200)));
    }
}

static void on_msg(struct line_client *e, const struct line *l)
{
    int64_t sid = line_number(l, LINE_SID, -1), tag = line_number(l, LINE_TAG, -1);
    struct engine_sub *sub = sid > 0 ? idmap_get(&e->subs, (uint64_t)sid) : NULL;
    BUF_SCOPED topic = {0}, texts = {0};
    struct message m;
    struct err err;

    if (!sub || tag < 1)
        return; /* just unsubscribed: the host gives the message back to the group */
    if (l->slots[LINE_ENV].type != JSON_OBJECT ||
        message_from_json(&m, l->slots[LINE_ENV].value, &texts, &err) < 0)
        say(e, "{\"op\":\"nack\",\"tag\":%lld,\"requeue\":false}", (long long)tag);
    else
        engine_deliver(e->bus, sub, (uint64_t)tag, line_is_true(l, LINE_REDELIVERED),
                       line_text(l, LINE_TOPIC, &topic), &m);
}

static void on_bye(struct line_client *e, const struct line *l)
{
    (void)l;
    stream_close(e->stream, "the host said bye");
}

static void on_pong(struct line_client *e, const struct line *l)
{
    (void)e;
    (void)l;
}

static const struct {
    const char *op;
    void (*fn)(struct line_client *e, const struct line *l);
} ops[] = {{"msg", on_msg}, {"ok", on_ok}, {"err", on_err}, {"pong", on_pong}, {"bye", on_bye}};

static void on_line(void *owner, struct span text)
{
    struct line_client *e = owner;
    struct line l;

    if (e->closing || !e->stream)
        return;
    e->silence = 0;
    if (line_read(&l, text) < 0) {
        stream_close(e->stream, "it does not speak the language of the embedded bus");
        lines_stop(&e->lines);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        if (line_op_is(&l, ops[i].op)) {
            ops[i].fn(e, &l);
            return;
        }
    }
}

static void on_too_long(void *owner, struct span head)
{
    struct line_client *e = owner;

    (void)head;
    stream_close(e->stream, "it sent a line that is too long");
    lines_stop(&e->lines);
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct line_client *e = owner;

    lines_feed(&e->lines, chunk, &line_events, e);
}

/* --- connecting --- */

static void engine_free(struct line_client *e)
{
    struct bus *b = e->bus;

    timer_clear(loop_timers(e->loop), &e->ping_timer);
    idmap_fini(&e->subs);
    mem_free(e->address);
    mem_free(e);
    engine_closed(b);
}

/* Forgets the subscriptions of the lost connection: bus.c makes them again. */
static void forget_connection(struct line_client *e)
{
    timer_clear(loop_timers(e->loop), &e->ping_timer);
    lines_fini(&e->lines);
    idmap_fini(&e->subs);
    e->stream = NULL;
    e->joined = false;
}

static void on_closed(void *owner, const char *reason)
{
    struct line_client *e = owner;

    forget_connection(e);
    if (e->closing)
        engine_free(e);
    else
        engine_lost(e->bus, reason);
}

static const struct stream_events stream_events = {.data = on_data, .closed = on_closed};

/* The host must have answered our hello before the first beat. */
static void on_ping_timer(struct timer *t)
{
    struct line_client *e = CONTAINER_OF(t, struct line_client, ping_timer);

    if (!e->joined || e->silence == SILENCE_MOST) {
        stream_close(e->stream, "the host does not answer");
        return;
    }
    e->silence++;
    say(e, "{\"op\":\"ping\"}");
    timer_set(loop_timers(e->loop), t, PING_MS);
}

static void on_connected(void *owner, struct stream *s, int code)
{
    struct line_client *e = owner;

    e->connecting = NULL;
    if (!s) {
        engine_lost(e->bus, err_name(code));
        return;
    }
    /* Who hosts a bus sees what is sent, and gives a worker its orders. */
    if (strncmp(e->address, "unix:", 5) == 0 && !stream_peer_is_own_user(s)) {
        stream_close(s, "it is of another user");
        engine_lost(e->bus, "a process of another user hosts the bus there");
        return;
    }
    e->stream = s;
    e->silence = 0;
    lines_init(&e->lines, read_limit);
    stream_set_limit(s, queue_limit);
    stream_start(s, &stream_events, e);
    say_hello(e);
    timer_set(loop_timers(e->loop), &e->ping_timer, HELLO_MS);
}

static void line_connect(void *engine)
{
    struct line_client *e = engine;
    e->connecting = stream_connect(e->loop, e->address, on_connected, e);
}

static void on_gone(struct deferred *d)
{
    engine_free(CONTAINER_OF(d, struct line_client, gone));
}

static void line_close(void *engine)
{
    struct line_client *e = engine;
    e->closing = true;
    if (e->stream) {
        say(e, "{\"op\":\"bye\"}");
        lines_stop(&e->lines);
        stream_finish(e->stream, "leaving", BYE_MS);
        return;
    }
    if (e->connecting)
        stream_connect_cancel(e->connecting);
    loop_defer(e->loop, &e->gone, on_gone);
}

/* --- the engine --- */

struct line_client *line_client_open(struct bus *b, struct loop *loop,
                                     const struct bus_options *options, const char *address)
{
    struct line_client *e = MEM_NEW(struct line_client);

    e->bus = b;
    e->loop = loop;
    e->options = options;
    e->address = mem_str(address);
    e->ping_timer.fire = on_ping_timer;
    return e;
}

static void *line_open(struct bus *b, struct loop *loop, const struct bus_options *o,
                       struct err *err)
{
    struct span rest = span_from(span_str(o->url), strlen("tcp://"));

    if (span_find(rest, '@') < rest.n) {
        err_set(err, ERR_CONFIG, "a tcp:// address of a bus has no user and no password");
        err_hint(err, "bus.token is the place for what the bus wants to be shown");
        return NULL;
    }
    if (!rest.n || span_find(rest, ':') == rest.n) {
        err_set(err, ERR_CONFIG, "'%s' names no HOST:PORT", o->url);
        return NULL;
    }
    return line_client_open(b, loop, o, rest.p);
}

static void line_describe(const void *engine, struct buf *out)
{
    const struct line_client *e = engine;
    buf_printf(out, "embedded bus at %s", e->address);
}

static size_t line_max_body(const void *engine)
{
    const struct line_client *e = engine;
    (void)e;
    return LINE_MOST - LINE_OVERHEAD;
}

static void line_subscribe(void *engine, struct engine_sub *sub)
{
    struct line_client *e = engine;
    struct buf *out = stream_out(e->stream);

    idmap_put(&e->subs, sub->id, sub);
    buf_printf(out, "{\"op\":\"sub\",\"sid\":%llu,\"topic\":", (unsigned long long)sub->id);
    json_quote(out, span_str(sub->topic));
    json_out_text(out, "group", span_str(sub->group));
    buf_printf(out, ",\"prefetch\":%u,\"durable\":%s,\"lossy\":%s}\n", sub->prefetch,
               sub->ephemeral ? "false" : "true", sub->lossy ? "true" : "false");
    stream_wrote(e->stream);
}

static void line_unsubscribe(void *engine, struct engine_sub *sub)
{
    struct line_client *e = engine;
    idmap_take(&e->subs, sub->id);
    say(e, "{\"op\":\"unsub\",\"sid\":%llu}", (unsigned long long)sub->id);
}

static void line_publish(void *engine, uint64_t number, struct span topic, const struct message *m)
{
    struct line_client *e = engine;
    struct buf *out = stream_out(e->stream);
    size_t from = out->n;

    buf_printf(out, "{\"op\":\"pub\",\"id\":%llu,\"topic\":", (unsigned long long)number);
    json_quote(out, topic);
    buf_str(out, ",\"env\":");
    message_put_json(out, m);
    buf_str(out, "}\n");
    if (out->n - from > LINE_MOST) {
        out->n = from;
        engine_sent(e->bus, number, BUS_TOO_LARGE);
    }
    stream_wrote(e->stream);
}

static void line_settle(void *engine, struct engine_sub *sub, uint64_t tag,
                        enum bus_verdict verdict)
{
    struct line_client *e = engine;
    (void)sub;
    if (verdict == BUS_ACK)
        say(e, "{\"op\":\"ack\",\"tag\":%llu}", (unsigned long long)tag);
    else
        say(e, "{\"op\":\"nack\",\"tag\":%llu,\"requeue\":%s}", (unsigned long long)tag,
            verdict == BUS_RETRY ? "true" : "false");
}

const struct engine_ops line_engine = {
    .name = "embedded bus",
    .in_memory = true,
    .open = line_open,
    .connect = line_connect,
    .close = line_close,
    .describe = line_describe,
    .max_body = line_max_body,
    .subscribe = line_subscribe,
    .unsubscribe = line_unsubscribe,
    .publish = line_publish,
    .settle = line_settle,
};
