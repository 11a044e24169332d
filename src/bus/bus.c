/* The table of URL schemes and engines, reconnecting, the outbox of unconfirmed messages, and the
 * list of subscriptions. Called by hub/bus_role.c, rockbot/, cmd/bus_pub.c and cmd/bus_tail.c; the
 * engines report to the engine_ functions. */
#include "bus/bus.h"

#include "base/backoff.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "bus/engine.h"
#include "bus/stamp.h"
#include "bus/topic.h"

/* The tag of a delivery as users of the bus see it: the engine's tag in the low bits, the number of
 * the connection above them. */
enum { TAG_BITS = 48 };

enum {
    MAX_MESSAGE = 16 * 1024 * 1024,
    MAX_OUTBOX = 64 * 1024 * 1024,
    PREFETCH = 10,
};

/* The engine that a URL asks for, and how long to wait before connecting again. */
static const struct scheme {
    const char *prefix;
    const struct engine_ops *ops;
    uint64_t retry_first, retry_max; /* ms */
} schemes[] = {
    {"embedded:", &embedded_engine, 100, 2000},
    {"unix:", &embedded_engine, 100, 2000},
    {"tcp://", &line_engine, 2000, 30000},
    {"amqp://", &amqp_engine, 2000, 30000},
    {"amqps://", &amqp_engine, 2000, 30000},
    /* A short first wait, because another server of the cluster may be up. */
    {"nats://", &nats_engine, 250, 30000},
    {"tls://", &nats_engine, 250, 30000},
};

struct bus_sub {
    struct engine_sub engine;
    struct bus *bus;
    struct list node;
    bus_deliver_fn *deliver; /* NULL once unsubscribed */
    void *owner;
};

/* A message that was published. It is in the outbox until the engine confirms it, then in the list
 * of ended ones until its publisher is told. */
struct outgoing {
    struct list node;
    struct bus *bus;
    uint64_t number;
    char *topic;
    struct message_pack *pack;
    size_t size;
    struct timer deadline;
    bus_sent_fn *done;
    void *owner;
    enum bus_sent how;
};

struct bus {
    struct loop *loop;
    const struct engine_ops *ops;
    void *engine; /* the engine's own state */
    const struct bus_options *options;
    const struct bus_events *on;
    void *owner;
    bool up, told_down, closing;
    uint64_t connection; /* the number of connections so far */
    uint64_t up_since;

    struct list subs, left; /* left: unsubscribed in this turn of the loop, freed at its end */
    uint64_t last_id;

    struct list outbox, ended;
    struct idmap by_number;
    uint64_t last_number;
    size_t outbox_bytes;

    struct backoff backoff;
    struct timer reconnect;
    struct deferred later; /* tells publishers of ended messages, frees subscriptions in `left` */
    struct buf described;
};

static const struct scheme *scheme_of(const char *url)
{
    for (size_t i = 0; i < COUNT_OF(schemes); i++)
        if (span_starts(span_str(url), span_str(schemes[i].prefix)))
            return &schemes[i];
    return NULL;
}

/* --- the end of a turn --- */

static void outgoing_free(struct outgoing *o)
{
    list_remove(&o->node);
    message_pack_free(o->pack);
    mem_free(o->topic);
    mem_free(o);
}

/* Only messages that have ended by now: a publisher that is told "full" and publishes again at once
 * must not hold up the loop. */
static void tell_ended(struct bus *b)
{
    struct list now;
    struct outgoing *o;

    list_init(&now);
    while ((o = LIST_FIRST(&b->ended, struct outgoing, node))) {
        list_remove(&o->node);
        list_append(&now, &o->node);
    }
    while ((o = LIST_FIRST(&now, struct outgoing, node))) {
        bus_sent_fn *done = o->done;
        void *owner = o->owner;
        enum bus_sent how = o->how;
        outgoing_free(o);
        if (done)
            done(owner, how);
    }
}

static void free_left(struct bus *b)
{
    struct bus_sub *s;

    while ((s = LIST_FIRST(&b->left, struct bus_sub, node))) {
        list_remove(&s->node);
        mem_free((char *)(uintptr_t)s->engine.topic);
        mem_free((char *)(uintptr_t)s->engine.group);
        mem_free(s);
    }
}

static void on_later(struct deferred *d)
{
    struct bus *b = CONTAINER_OF(d, struct bus, later);

    free_left(b);
    tell_ended(b);
}

/* --- connecting --- */

static void connect_now(struct timer *t)
{
    struct bus *b = CONTAINER_OF(t, struct bus, reconnect);

    b->ops->connect(b->engine);
}

struct bus *bus_open(struct loop *loop, const struct bus_options *options,
                     const struct bus_events *on, void *owner, struct err *err)
{
    const struct scheme *scheme = scheme_of(options->url);

    if (!scheme) {
        struct span url = span_str(options->url);
        /* Only the scheme is shown: the rest may contain a password. */
        err_set(err, ERR_CONFIG, "no address of a message bus begins with '" SPAN_FMT "'",
                SPAN_ARG(span_cut(url, 0, span_find(url, ':') + 1)));
        err_hint(err, "embedded:, unix:PATH, tcp://HOST:PORT, amqp(s)://, nats:// or tls://");
        return NULL;
    }
    struct bus *b = MEM_NEW(struct bus);
    b->loop = loop;
    b->ops = scheme->ops;
    b->options = options;
    b->on = on;
    b->owner = owner;
    b->backoff = (struct backoff){.first = scheme->retry_first, .max = scheme->retry_max};
    b->reconnect.fire = connect_now;
    list_init(&b->subs);
    list_init(&b->left);
    list_init(&b->outbox);
    list_init(&b->ended);
    b->engine = b->ops->open(b, loop, options, err);
    if (!b->engine) {
        mem_free(b);
        return NULL;
    }
    b->ops->connect(b->engine);
    return b;
}

/* The message may have ended when this returns. */
static void publish_now(const struct outgoing *o)
{
    struct bus *b = o->bus;
    struct message m;

    message_pack_read(o->pack, &m);
    b->ops->publish(b->engine, o->number, span_str(o->topic), &m);
}

static void send_outbox(struct bus *b)
{
    LIST_EACH_SAFE (&b->outbox, it)
        publish_now(LIST_ENTRY(it, struct outgoing, node));
}

void engine_up(struct bus *b)
{
    log_info("bus", "joined %s", bus_describe(b));
    b->up = true;
    b->connection++;
    b->told_down = false;
    b->up_since = loop_now(b->loop);
    LIST_EACH (&b->subs, it)
        b->ops->subscribe(b->engine, &LIST_ENTRY(it, struct bus_sub, node)->engine);
    send_outbox(b);
    b->on->up(b->owner);
}

void engine_again(struct bus *b, struct buf *numbers)
{
    BUF_SCOPED now = *numbers;
    uint64_t number;

    *numbers = (struct buf){0};
    for (size_t i = 0; i + sizeof number <= now.n; i += sizeof number) {
        memcpy(&number, now.p + i, sizeof number);
        const struct outgoing *o = idmap_get(&b->by_number, number);
        if (o && b->up)
            publish_now(o);
    }
}

void engine_lost(struct bus *b, const char *why)
{
    /* A connection that did not last counts as one more failure: a server may accept us and then
     * refuse what we send. */
    if (b->up && loop_now(b->loop) - b->up_since >= b->backoff.max)
        backoff_reset(&b->backoff);
    b->up = false;
    if (b->closing)
        return;
    uint64_t wait = backoff_next(&b->backoff, id_random_u64());
    /* Only the first failure is a warning, not every retry after it. */
    log_line(b->told_down ? LOG_DEBUG : LOG_WARN, "bus", "%s: %s; trying again in %u ms",
             bus_describe(b), why, (unsigned)wait);
    timer_set(loop_timers(b->loop), &b->reconnect, wait);
    if (b->told_down)
        return;
    b->told_down = true;
    b->on->down(b->owner, why);
}

static void outgoing_end(struct outgoing *o, enum bus_sent how)
{
    struct bus *b = o->bus;

    timer_clear(loop_timers(b->loop), &o->deadline);
    if (o->number) {
        idmap_take(&b->by_number, o->number);
        b->outbox_bytes -= o->size;
        o->number = 0;
        list_remove(&o->node);
    }
    o->how = how;
    list_append(&b->ended, &o->node);
    loop_defer(b->loop, &b->later, on_later);
}

static void leave_all(struct bus *b)
{
    for (struct bus_sub *first; (first = LIST_FIRST(&b->subs, struct bus_sub, node));)
        bus_unsubscribe(first);
}

void bus_close(struct bus *b)
{
    if (b->closing)
        return;
    b->closing = true;
    timer_clear(loop_timers(b->loop), &b->reconnect);
    for (struct outgoing *first; (first = LIST_FIRST(&b->outbox, struct outgoing, node));)
        outgoing_end(first, BUS_CLOSED);
    leave_all(b);
    b->up = false;
    b->ops->close(b->engine);
}

void engine_closed(struct bus *b)
{
    const struct bus_events *on = b->on;
    void *owner = b->owner;

    /* Publishers that are told here may publish again (refused with BUS_CLOSED) and may
     * subscribe. */
    while (!list_empty(&b->ended))
        tell_ended(b);
    leave_all(b);
    free_left(b);
    loop_undefer(&b->later);
    idmap_fini(&b->by_number);
    buf_fini(&b->described);
    mem_free(b);
    on->closed(owner);
}

bool bus_is_up(const struct bus *b)
{
    return b->up;
}

bool bus_is_in_memory(const struct bus *b)
{
    return b->ops->in_memory;
}

struct broker *bus_broker(const struct bus *b)
{
    return b->ops->broker ? b->ops->broker(b->engine) : NULL;
}

const char *bus_describe(const struct bus *b)
{
    /* Written again each time, because an engine may be at another address after a reconnect. The
     * buffer is only where the text is kept, so the bus counts as const. */
    struct buf *out = &((struct bus *)(uintptr_t)b)->described;

    out->n = 0;
    b->ops->describe(b->engine, out);
    return buf_cstr(out);
}

const char *bus_stall(const struct bus *b)
{
    return b->up && b->ops->stall ? b->ops->stall(b->engine) : NULL;
}

size_t bus_max_body(const struct bus *b)
{
    size_t ours = b->options->max_message ? b->options->max_message : MAX_MESSAGE;
    size_t its = b->ops->max_body(b->engine);

    return its < ours ? its : ours;
}

/* --- publishing --- */

const char *bus_sent_name(enum bus_sent s)
{
    static const char *const names[] = {
        [BUS_SENT] = "sent",       [BUS_TOO_LARGE] = "too large", [BUS_FULL] = "the bus is full",
        [BUS_EXPIRED] = "expired", [BUS_CLOSED] = "bus closed",
    };
    return names[s];
}

static void on_deadline(struct timer *t)
{
    outgoing_end(CONTAINER_OF(t, struct outgoing, deadline), BUS_EXPIRED);
}

/* The fields that the publisher left empty. */
static void fill_in(struct bus *b, struct message *m, char id[ID_TOKEN_SIZE])
{
    if (!m->id.n) {
        id_token(id);
        m->id = span_str(id);
    }
    if (!m->source.n)
        m->source = b->options->name ? span_str(b->options->name) : SPAN("unknown");
    if (!m->sent_ms)
        m->sent_ms = stamp_now();
}

static struct outgoing *outgoing_new(struct bus *b, struct span topic, const struct message *m,
                                     bus_sent_fn *done, void *owner)
{
    struct outgoing *o = MEM_NEW(struct outgoing);
    struct message filled = *m;
    char id[ID_TOKEN_SIZE];

    fill_in(b, &filled, id);
    o->bus = b;
    list_init(&o->node);
    o->topic = mem_span(topic);
    o->pack = message_pack_new(&filled);
    o->size = sizeof *o + topic.n + message_pack_size(&filled);
    o->deadline.fire = on_deadline;
    o->done = done;
    o->owner = owner;
    return o;
}

/* The message does not get into the outbox; only its publisher is remembered, to be told. */
static void refuse(struct bus *b, enum bus_sent how, bus_sent_fn *done, void *owner)
{
    if (done)
        outgoing_end(outgoing_new(b, SPAN(""), &(struct message){0}, done, owner), how);
}

/* A peer chooses the topic of our answer, and this one is invalid: nobody can be subscribed to it,
 * so the message counts as sent. */
static void drop(struct bus *b, struct span topic, bus_sent_fn *done, void *owner)
{
    log_warn("bus", "'" SPAN_FMT "' is not a topic: a message to it was dropped",
             SPAN_ARG(span_cut(topic, 0, MESSAGE_MAX_WORD)));
    refuse(b, BUS_SENT, done, owner);
}

static void send(struct bus *b, struct outgoing *o, uint64_t wait_ms)
{
    o->number = ++b->last_number;
    idmap_put(&b->by_number, o->number, o);
    list_append(&b->outbox, &o->node);
    b->outbox_bytes += o->size;
    if (wait_ms)
        timer_set(loop_timers(b->loop), &o->deadline, wait_ms);
    if (b->up)
        publish_now(o);
}

void bus_publish(struct bus *b, struct span topic, const struct message *m, uint64_t wait_ms,
                 bus_sent_fn *done, void *owner)
{
    size_t most = b->options->max_outbox ? b->options->max_outbox : MAX_OUTBOX;

    if (b->closing)
        refuse(b, BUS_CLOSED, done, owner);
    else if (!topic_is_valid(topic))
        drop(b, topic, done, owner);
    else if (m->body.n > bus_max_body(b))
        refuse(b, BUS_TOO_LARGE, done, owner);
    else if (b->outbox_bytes >= most)
        refuse(b, BUS_FULL, done, owner);
    else
        send(b, outgoing_new(b, topic, m, done, owner), wait_ms);
}

void engine_sent(struct bus *b, uint64_t number, enum bus_sent how)
{
    struct outgoing *o = idmap_get(&b->by_number, number);

    if (o)
        outgoing_end(o, how);
}

/* --- subscribing --- */

struct bus_sub *bus_subscribe(struct bus *b, const struct bus_subscription *s,
                              bus_deliver_fn *deliver, void *owner)
{
    struct bus_sub *sub = MEM_NEW(struct bus_sub);

    sub->bus = b;
    sub->deliver = deliver;
    sub->owner = owner;
    sub->engine = (struct engine_sub){.topic = mem_str(s->topic),
                                      .group = mem_str(s->group),
                                      .prefetch = s->prefetch ? s->prefetch : PREFETCH,
                                      .ephemeral = s->ephemeral,
                                      .lossy = s->lossy,
                                      .id = ++b->last_id};
    list_append(&b->subs, &sub->node);
    if (b->up)
        b->ops->subscribe(b->engine, &sub->engine);
    return sub;
}

void bus_unsubscribe(struct bus_sub *sub)
{
    struct bus *b = sub->bus;

    if (!sub->deliver)
        return;
    sub->deliver = NULL;
    if (b->up)
        b->ops->unsubscribe(b->engine, &sub->engine);
    /* An engine may be in the middle of a delivery to this subscription: it is freed later. */
    list_remove(&sub->node);
    list_append(&b->left, &sub->node);
    loop_defer(b->loop, &b->later, on_later);
}

void bus_settle(struct bus_sub *sub, uint64_t tag, enum bus_verdict verdict)
{
    struct bus *b = sub->bus;
    bool current = tag >> TAG_BITS == (b->connection & 0xffff);

    if (sub->deliver && b->up && current)
        b->ops->settle(b->engine, &sub->engine, tag & ((1ull << TAG_BITS) - 1), verdict);
}

void engine_deliver(struct bus *b, struct engine_sub *engine, uint64_t tag, bool redelivered,
                    struct span topic, const struct message *m)
{
    struct bus_sub *sub = CONTAINER_OF(engine, struct bus_sub, engine);

    const struct bus_delivery d = {.sub = sub,
                                   .tag = tag | b->connection << TAG_BITS,
                                   .redelivered = redelivered,
                                   .topic = topic,
                                   .message = m};

    if (sub->deliver)
        sub->deliver(sub->owner, &d);
}
