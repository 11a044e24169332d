/* The server's side of one connection to the embedded bus: a handler for each op (hello, sub, pub,
 * ack, ...), and the lines sent back. Called by line_server.c. */
#include "bus/line_conn.h"

#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "bus/line.h"
#include "bus/stamp.h"
#include "bus/topic.h"

enum {
    PARSE_ERRORS_MOST = 3,
    SUBS_MOST = 1000,
    PREFETCH_MOST = 1000,
    ID_MOST = 64, /* bytes; a longer id is not echoed */
};

struct queue_place { /* a subscription, by the number (sid) that the client gave it */
    struct line_conn *conn;
    uint64_t sid;
    struct broker_sub *sub;
};

struct line_conn {
    struct broker *broker;
    struct broker_member *member;
    const char *token;
    const struct line_conn_events *on;
    void *owner;
    struct buf name;
    struct map places;
    unsigned parse_errors;
    bool welcome, ended;
};

/* --- writing --- */

/* `id` is the raw id of the line that is answered, or empty. */
static struct buf *begin(struct line_conn *c, const char *op, struct span id)
{
    struct buf *out = c->on->out(c->owner);

    buf_printf(out, "{\"op\":\"%s\"", op);
    if (id.n) {
        buf_str(out, ",\"id\":");
        buf_span(out, id);
    }
    return out;
}

static void end(struct line_conn *c, struct buf *out)
{
    buf_str(out, "}\n");
    c->on->wrote(c->owner);
}

static void say_ok(struct line_conn *c, struct span id)
{
    if (id.n)
        end(c, begin(c, "ok", id));
}

static void say_err(struct line_conn *c, struct span id, const char *code, const char *text)
{
    struct buf *out = begin(c, "err", id);

    buf_printf(out, ",\"code\":\"%s\",\"message\":", code);
    json_quote(out, span_str(text));
    end(c, out);
}

void line_conn_bye(struct line_conn *c, const char *why)
{
    if (c->ended)
        return;
    struct buf *out = begin(c, "bye", SPAN_EMPTY);
    buf_str(out, ",\"reason\":");
    json_quote(out, span_str(why));
    end(c, out);
    c->ended = true;
    c->on->end(c->owner, why);
}

/* --- callbacks of the broker --- */

static void on_deliver(void *owner, struct broker_sub *sub, uint64_t tag, bool redelivered,
                       struct span topic, const struct message *m)
{
    struct line_conn *c = owner;
    const struct queue_place *place = broker_sub_data(sub);
    struct buf *out = begin(c, "msg", SPAN_EMPTY);
    size_t from = out->n;

    buf_printf(out, ",\"sid\":%llu,\"tag\":%llu,\"topic\":", (unsigned long long)place->sid,
               (unsigned long long)tag);
    json_quote(out, topic);
    buf_printf(out, ",\"redelivered\":%s,\"env\":", redelivered ? "true" : "false");
    message_put_json(out, m);
    if (out->n - from > LINE_MOST - 32) {
        /* Only a body that is not JSON grows like this, as base64: the message will never fit into
         * a line. */
        out->n = from - strlen("{\"op\":\"msg\"");
        broker_settle(c->member, tag, BUS_DEAD);
        return;
    }
    end(c, out);
}

static bool on_ready(void *owner)
{
    struct line_conn *c = owner;

    return !c->ended && c->on->is_ready(c->owner);
}

static const struct broker_events broker_events = {on_deliver, on_ready};

/* --- requests of the client; each handler gets the raw id of its line --- */

static void do_hello(struct line_conn *c, const struct line *l, struct span id)
{
    BUF_SCOPED scratch = {0};
    struct span token = line_text(l, LINE_TOKEN, &scratch);

    if (c->token && !span_eq_secret(token, span_str(c->token))) {
        say_err(c, id, "unauthorized", "the token is not the one of this bus");
        line_conn_bye(c, "unauthorized");
        return;
    }
    if (line_number(l, LINE_V, LINE_VERSION) != LINE_VERSION) {
        say_err(c, id, "version", "this bus speaks version 1");
        line_conn_bye(c, "unknown version");
        return;
    }
    struct span name = line_text(l, LINE_NAME, &scratch);
    c->name.n = 0;
    buf_span(&c->name, span_cut(name, 0, MESSAGE_MAX_WORD));
    c->welcome = true;
    c->on->welcomed(c->owner);
    say_ok(c, id);
}

static struct span place_key(const uint64_t *sid)
{
    return span_of((const char *)sid, sizeof *sid);
}

/* False when the line names no group: the subscription gets a group of its own. */
static bool put_group(struct buf *group, const struct line *l)
{
    BUF_SCOPED scratch = {0};
    struct span named = line_text(l, LINE_GROUP, &scratch);
    char own[ID_TOKEN_SIZE];

    id_token(own);
    buf_span(group, named.n ? named : span_str(own));
    return named.n > 0;
}

/* What is wrong with the subscription, or NULL. */
static const char *check_sub(const struct line_conn *c, int64_t sid, struct span topic,
                             struct span group, int64_t prefetch)
{
    uint64_t key = (uint64_t)sid;

    if (sid < 1 || map_get(&c->places, place_key(&key)))
        return "sid must be a number of 1 or more that is not in use";
    if (!topic_is_pattern(topic))
        return "topic must be segments separated by dots; * is one of them, # any number";
    if (group.n > MESSAGE_MAX_WORD || memchr(group.p, 0, group.n) || memchr(group.p, '\n', group.n))
        return "group must be a text of at most 255 bytes";
    if (prefetch < 1 || prefetch > PREFETCH_MOST)
        return "prefetch must be 1 to 1000";
    return c->places.n < SUBS_MOST ? NULL : "too many subscriptions on one connection";
}

static void do_sub(struct line_conn *c, const struct line *l, struct span id)
{
    int64_t sid = line_number(l, LINE_SID, 0), prefetch = line_number(l, LINE_PREFETCH, 10);
    BUF_SCOPED group = {0}, topic = {0}, scratch = {0};

    buf_span(&topic, line_text(l, LINE_TOPIC, &scratch));
    /* Nobody can come back to a group without a name: its queue need not be kept. */
    bool durable = put_group(&group, l) && line_is_true(l, LINE_DURABLE);
    const char *wrong = check_sub(c, sid, buf_view(&topic), buf_view(&group), prefetch);
    if (!wrong) {
        struct queue_place *p = MEM_NEW(struct queue_place);
        p->conn = c;
        p->sid = (uint64_t)sid;
        p->sub = broker_subscribe(c->member,
                                  &(struct bus_subscription){.topic = buf_cstr(&topic),
                                                             .group = buf_cstr(&group),
                                                             .prefetch = (unsigned)prefetch,
                                                             .ephemeral = !durable,
                                                             .lossy = line_is_true(l, LINE_LOSSY)},
                                  p);
        if (p->sub) {
            map_put(&c->places, place_key(&p->sid), p);
        } else {
            mem_free(p);
            wrong = "the bus has too many subscriptions";
        }
    }
    if (wrong)
        say_err(c, id, "bad_request", wrong);
    else
        say_ok(c, id);
}

static void do_unsub(struct line_conn *c, const struct line *l, struct span id)
{
    uint64_t sid = (uint64_t)line_number(l, LINE_SID, 0);
    struct queue_place *p = map_del(&c->places, place_key(&sid));

    if (!p) {
        say_err(c, id, "bad_request", "no subscription has this sid");
        return;
    }
    broker_unsubscribe(p->sub);
    mem_free(p);
    say_ok(c, id);
}

static void fill_in(const struct line_conn *c, struct message *m, char own_id[ID_TOKEN_SIZE])
{
    if (!m->id.n) {
        id_token(own_id);
        m->id = span_str(own_id);
    }
    if (!m->source.n)
        m->source = c->name.n ? buf_view(&c->name) : SPAN("unknown");
    if (!m->type.n)
        m->type = SPAN("unknown");
    if (!m->sent_ms)
        m->sent_ms = stamp_now();
}

static void do_pub(struct line_conn *c, const struct line *l, struct span id)
{
    BUF_SCOPED scratch = {0}, texts = {0};
    struct span topic = line_text(l, LINE_TOPIC, &scratch);
    struct message m;
    struct err err;
    char own_id[ID_TOKEN_SIZE];

    if (!topic_is_valid(topic)) {
        say_err(c, id, "bad_request",
                "topic must be segments separated by dots, without wildcards");
    } else if (l->slots[LINE_ENV].type != JSON_OBJECT) {
        say_err(c, id, "bad_request", "env must be an object");
    } else if (message_from_json(&m, l->slots[LINE_ENV].value, &texts, &err) < 0) {
        say_err(c, id, "bad_request", err.text);
    } else {
        fill_in(c, &m, own_id);
        if (m.body.n > LINE_MOST - LINE_OVERHEAD)
            say_err(c, id, "too_large", "the body is larger than this bus takes");
        else if (message_size(&m) - m.body.n > LINE_OVERHEAD)
            say_err(c, id, "too_large", "what is around the body may have 64 KiB");
        else if (broker_publish(c->broker, topic, &m) == BUS_FULL)
            say_err(c, id, "full", "a subscriber's queue is full; try again later");
        else
            say_ok(c, id);
    }
}

static void settle(struct line_conn *c, const struct line *l, struct span id, enum bus_verdict how)
{
    int64_t tag = line_number(l, LINE_TAG, -1);

    if (tag < 1) {
        say_err(c, id, "bad_request", "tag must be the number of a delivery");
        return;
    }
    broker_settle(c->member, (uint64_t)tag, how);
    say_ok(c, id);
}

static void do_ack(struct line_conn *c, const struct line *l, struct span id)
{
    settle(c, l, id, BUS_ACK);
}

static void do_nack(struct line_conn *c, const struct line *l, struct span id)
{
    settle(c, l, id, line_is_true(l, LINE_REQUEUE) ? BUS_RETRY : BUS_DEAD);
}

static void do_ping(struct line_conn *c, const struct line *l, struct span id)
{
    (void)l;
    end(c, begin(c, "pong", id));
}

static void do_bye(struct line_conn *c, const struct line *l, struct span id)
{
    (void)l;
    (void)id;
    line_conn_bye(c, "as you wish");
}

/* One dead letter for each request, so that a client gets them no faster than it reads. */
static void do_dead(struct line_conn *c, const struct line *l, struct span id)
{
    int64_t after = line_number(l, LINE_AFTER, 0);
    struct dead_letter d;

    if (!c->on->is_ready(c->owner)) {
        say_err(c, id, "busy", "read what you were sent before");
        return;
    }
    if (after < 0 || !broker_dead_letter(c->broker, (uint64_t)after, &d)) {
        end(c, begin(c, "ok", id));
        return;
    }
    struct buf *out = begin(c, "dead", id);
    buf_printf(out, ",\"number\":%llu,\"at\":\"", (unsigned long long)d.number);
    stamp_put(out, d.at_ms);
    buf_str(out, "\",\"reason\":");
    json_quote(out, span_str(d.why));
    buf_str(out, ",\"topic\":");
    json_quote(out, d.topic);
    buf_str(out, ",\"group\":");
    json_quote(out, d.group);
    buf_str(out, ",\"env\":");
    message_put_json(out, &d.message);
    end(c, out);
}

static const struct {
    const char *op;
    void (*fn)(struct line_conn *c, const struct line *l, struct span id);
    bool anyone; /* allowed before the hello, too */
} ops[] = {
    {"pub", do_pub, false},    {"ack", do_ack, false},     {"nack", do_nack, false},
    {"sub", do_sub, false},    {"unsub", do_unsub, false}, {"ping", do_ping, false},
    {"hello", do_hello, true}, {"dead", do_dead, false},   {"bye", do_bye, true},
};

/* --- life --- */

struct line_conn *line_conn_new(struct broker *broker, const char *token,
                                const struct line_conn_events *on, void *owner)
{
    struct line_conn *c = MEM_NEW(struct line_conn);

    c->broker = broker;
    c->token = token;
    c->welcome = !token;
    c->on = on;
    c->owner = owner;
    c->member = broker_join(broker, &broker_events, c);
    return c;
}

void line_conn_free(struct line_conn *c)
{
    struct span key;
    void *place;

    c->ended = true;
    broker_leave(c->member);
    for (size_t at = 0; map_next(&c->places, &at, &key, &place);)
        mem_free(place);
    map_fini(&c->places);
    buf_fini(&c->name);
    mem_free(c);
}

void line_conn_ready(struct line_conn *c)
{
    broker_member_ready(c->member);
}

static void refuse_line(struct line_conn *c, const char *code, const char *text)
{
    say_err(c, SPAN_EMPTY, code, text);
    if (++c->parse_errors == PARSE_ERRORS_MOST)
        line_conn_bye(c, "too many lines that make no sense");
}

void line_conn_line(struct line_conn *c, struct span text)
{
    struct line l;

    if (c->ended)
        return;
    if (line_read(&l, text) < 0) {
        refuse_line(c, "parse", "each line is one JSON object with a text \"op\"");
        return;
    }
    const struct json_slot *slot = &l.slots[LINE_ID];
    bool echoed =
        (slot->type == JSON_STRING || slot->type == JSON_NUMBER) && slot->value.n <= ID_MOST;
    struct span id = echoed ? slot->value : SPAN_EMPTY;
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        if (!line_op_is(&l, ops[i].op))
            continue;
        if (c->welcome || ops[i].anyone) {
            ops[i].fn(c, &l, id);
        } else {
            say_err(c, id, "unauthorized", "say hello with the token first");
            line_conn_bye(c, "unauthorized");
        }
        return;
    }
    say_err(c, id, "unknown_op",
            "this bus knows hello, sub, unsub, pub, ack, nack, ping, dead, bye");
}

void line_conn_too_long(struct line_conn *c)
{
    if (!c->ended)
        refuse_line(c, "too_large", "a line may have 16 MiB");
}
