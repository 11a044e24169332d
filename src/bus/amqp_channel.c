/* One RabbitMQ subscription: the steps that declare and bind queues, deliveries, acknowledgements,
 * and reopening a channel that the broker closed. Called by amqp.c. */
#include "bus/amqp_inside.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

enum {
    RETRY_FIRST = 2000, /* ms, as in RockBot */
    RETRY_MAX = 30000,
    PRECONDITION_FAILED = 406,
    KEEP = 64 * 1024, /* larger buffers are freed after each message */
    MAX_MESSAGE = 16 * 1024 * 1024,
};

/* The steps of a subscription, in this order; each waits for the broker's answer. */
enum step {
    STEP_OPEN,
    STEP_EXCHANGE,
    STEP_DEAD_EXCHANGE,
    STEP_CLEAR_DEAD, /* only to get rid of an empty queue with other arguments */
    STEP_DEAD,
    STEP_BIND_DEAD,
    STEP_CLEAR_MAIN, /* the same for the main queue */
    STEP_MAIN,
    STEP_BIND_MAIN,
    STEP_PREFETCH,
    STEP_CONSUME,
    STEP_LIVE,
    STEP_DROP_MAIN, /* deletes the queues of an ephemeral subscription */
    STEP_DROP_DEAD,
    STEP_CLOSE,
    STEP_WAIT, /* there is no channel; the timer makes a new one */
};

/* Ways to declare a queue; the next one is tried when the broker says that the queue exists with
 * other arguments. */
enum way { AS_OURS, DELETE_FIRST, AS_IT_IS };

struct amqp_channel {
    struct amqp_connection *engine;
    struct engine_sub *sub; /* NULL once unsubscribed */
    uint16_t number;
    struct span topic, queue, dead;
    uint16_t prefetch;
    bool ephemeral, lossy;
    char *words; /* the block that the names of the queues point into */

    enum step step;
    bool starting; /* counted in engine->starting */
    enum way main_way, dead_way;
    struct timer again;
    struct backoff backoff;

    /* RabbitMQ's tags start at 1 in every new channel. Ours (base + tag) go on counting, so a tag
     * of an old channel settles nothing. */
    uint64_t base, last;
    struct idmap unsettled;

    /* The delivery that is coming in. */
    bool has_method, has_header, unusable;
    uint64_t tag, left;
    bool redelivered;
    struct buf key, properties, body;
    uint64_t warned; /* when a dead letter was last logged */
};

static struct buf *out_of(struct amqp_channel *ch)
{
    return amqp_out(ch->engine);
}

/* --- steps --- */

static bool send_open(struct amqp_channel *ch)
{
    amqp_put_channel_open(out_of(ch), ch->number);
    return true;
}

static bool send_exchange(struct amqp_channel *ch)
{
    amqp_put_exchange_declare(out_of(ch), ch->number, span_str(ch->engine->exchange));
    return true;
}

static bool send_dead_exchange(struct amqp_channel *ch)
{
    amqp_put_exchange_declare(out_of(ch), ch->number, span_str(ch->engine->dlx));
    return true;
}

static bool send_clear_dead(struct amqp_channel *ch)
{
    if (ch->dead_way != DELETE_FIRST)
        return false;
    amqp_put_queue_delete(out_of(ch), ch->number, ch->dead, true, true);
    return true;
}

/* The queue arguments that RockBot uses: dead letters are kept for three days; an ephemeral queue
 * is deleted a day after its last consumer left and keeps messages for an hour. */
enum { HOUR_MS = 3600000 };
static const struct amqp_argument ephemeral_argument = {
    .key = "x-expires", .text = SPAN_EMPTY, .number = 24 * HOUR_MS};

static bool send_dead(struct amqp_channel *ch)
{
    const struct amqp_argument arguments[] = {
        {"x-message-ttl", SPAN_EMPTY, 72 * HOUR_MS},
        {"x-max-length", SPAN_EMPTY, 10000},
        {"x-max-length-bytes", SPAN_EMPTY, 256 * 1024 * 1024},
        {"x-overflow", SPAN("drop-head"), 0},
        ephemeral_argument,
    };
    if (ch->lossy)
        return false;
    amqp_put_queue_declare(out_of(ch), ch->number, ch->dead, ch->dead_way == AS_IT_IS, arguments,
                           COUNT_OF(arguments) - !ch->ephemeral);
    return true;
}

static bool send_bind_dead(struct amqp_channel *ch)
{
    if (ch->lossy)
        return false;
    amqp_put_queue_bind(out_of(ch), ch->number, ch->dead, span_str(ch->engine->dlx), ch->topic);
    return true;
}

static bool send_clear_main(struct amqp_channel *ch)
{
    if (ch->main_way != DELETE_FIRST)
        return false;
    amqp_put_queue_delete(out_of(ch), ch->number, ch->queue, false, false);
    return true;
}

static bool send_main(struct amqp_channel *ch)
{
    struct amqp_argument arguments[4];
    size_t n = 0;

    if (!ch->lossy) { /* what an onlooker misses is nobody's dead letter */
        arguments[n++] =
            (struct amqp_argument){"x-dead-letter-exchange", span_str(ch->engine->dlx), 0};
        arguments[n++] = (struct amqp_argument){"x-dead-letter-routing-key", ch->topic, 0};
    }
    if (ch->ephemeral) {
        arguments[n++] = ephemeral_argument;
        arguments[n++] = (struct amqp_argument){"x-message-ttl", SPAN_EMPTY, HOUR_MS};
    }
    if (ch->lossy) {
        arguments[n++] = (struct amqp_argument){"x-max-length", SPAN_EMPTY, 10000};
        arguments[n++] = (struct amqp_argument){"x-overflow", SPAN("drop-head"), 0};
    }
    amqp_put_queue_declare(out_of(ch), ch->number, ch->queue, false, arguments, n);
    return true;
}

static bool send_bind_main(struct amqp_channel *ch)
{
    amqp_put_queue_bind(out_of(ch), ch->number, ch->queue, span_str(ch->engine->exchange),
                        ch->topic);
    return true;
}

static bool send_prefetch(struct amqp_channel *ch)
{
    amqp_put_qos(out_of(ch), ch->number, ch->prefetch);
    return true;
}

static const struct span consumer = SPAN("rialto"); /* the name of our consumer in its channel */

static bool send_consume(struct amqp_channel *ch)
{
    amqp_put_consume(out_of(ch), ch->number, ch->queue, consumer);
    return true;
}

static bool send_drop_main(struct amqp_channel *ch)
{
    amqp_put_cancel(out_of(ch), ch->number, consumer);
    amqp_put_queue_delete(out_of(ch), ch->number, ch->queue, true, false);
    return true;
}

static bool send_drop_dead(struct amqp_channel *ch)
{
    if (ch->lossy)
        return false;
    amqp_put_queue_delete(out_of(ch), ch->number, ch->dead, true, false);
    return true;
}

static bool send_close(struct amqp_channel *ch)
{
    amqp_put_channel_close(out_of(ch), ch->number);
    return true;
}

static const struct {
    bool (*send)(struct amqp_channel *ch); /* false: not needed. NULL: sends nothing */
    enum amqp_method_id answer;
    const char *what; /* for the log */
} steps[] = {
    [STEP_OPEN] = {send_open, AMQP_CHANNEL_OPEN_OK, "opening a channel"},
    [STEP_EXCHANGE] = {send_exchange, AMQP_EXCHANGE_DECLARE_OK, "declaring the exchange"},
    [STEP_DEAD_EXCHANGE] = {send_dead_exchange, AMQP_EXCHANGE_DECLARE_OK,
                            "declaring the exchange of dead letters"},
    [STEP_CLEAR_DEAD] = {send_clear_dead, AMQP_QUEUE_DELETE_OK, "renewing the dead-letter queue"},
    [STEP_DEAD] = {send_dead, AMQP_QUEUE_DECLARE_OK, "declaring the dead-letter queue"},
    [STEP_BIND_DEAD] = {send_bind_dead, AMQP_QUEUE_BIND_OK, "binding the dead-letter queue"},
    [STEP_CLEAR_MAIN] = {send_clear_main, AMQP_QUEUE_DELETE_OK, "renewing the queue"},
    [STEP_MAIN] = {send_main, AMQP_QUEUE_DECLARE_OK, "declaring the queue"},
    [STEP_BIND_MAIN] = {send_bind_main, AMQP_QUEUE_BIND_OK, "binding the queue"},
    [STEP_PREFETCH] = {send_prefetch, AMQP_QOS_OK, "setting the prefetch"},
    [STEP_CONSUME] = {send_consume, AMQP_CONSUME_OK, "consuming"},
    [STEP_LIVE] = {NULL, AMQP_OTHER, "consuming"},
    [STEP_DROP_MAIN] = {send_drop_main, AMQP_QUEUE_DELETE_OK, "deleting the queue"},
    [STEP_DROP_DEAD] = {send_drop_dead, AMQP_QUEUE_DELETE_OK, "deleting the dead-letter queue"},
    [STEP_CLOSE] = {send_close, AMQP_CHANNEL_CLOSE_OK, "closing"},
    [STEP_WAIT] = {NULL, AMQP_OTHER, "waiting"},
};

/* The subscription is ready or has failed: publishes that waited for it are sent. */
static void settled(struct amqp_channel *ch)
{
    if (ch->starting) {
        ch->starting = false;
        amqp_channel_settled(ch->engine);
    }
}

/* Sends this step, or the next one that has something to send. */
static void go_to(struct amqp_channel *ch, enum step step)
{
    while (steps[step].send && !steps[step].send(ch))
        step++;
    ch->step = step;
    amqp_wrote(ch->engine);
    if (step == STEP_LIVE) {
        backoff_reset(&ch->backoff);
        log_debug("bus", "subscribed to " SPAN_FMT " as " SPAN_FMT, SPAN_ARG(ch->topic),
                  SPAN_ARG(ch->queue));
        settled(ch);
    }
}

static void forget_deliveries(struct amqp_channel *ch)
{
    ch->base += ch->last;
    ch->last = 0;
    ch->has_method = ch->has_header = false;
    idmap_fini(&ch->unsettled);
    ch->unsettled = (struct idmap){0};
}

static void channel_free(struct amqp_channel *ch)
{
    struct amqp_connection *e = ch->engine;

    timer_clear(loop_timers(e->loop), &ch->again);
    settled(ch);
    if (ch->sub)
        ch->sub->data = NULL;
    e->channels[ch->number] = NULL;
    idmap_fini(&ch->unsettled);
    buf_fini(&ch->key);
    buf_fini(&ch->properties);
    buf_fini(&ch->body);
    mem_free(ch->words);
    mem_free(ch);
}

void amqp_channel_drop(struct amqp_channel *ch)
{
    channel_free(ch);
}

static void channel_gone(struct amqp_channel *ch)
{
    struct amqp_connection *e = ch->engine;

    channel_free(ch);
    for (size_t i = 0; i < e->n_channels; i++)
        if (e->channels[i])
            return;
    amqp_channels_gone(e);
}

static void on_again(struct timer *t)
{
    go_to(CONTAINER_OF(t, struct amqp_channel, again), STEP_OPEN);
}

/* The channel is closed on both sides but its subscription is not: opens a new channel later. */
static void retry_later(struct amqp_channel *ch)
{
    uint64_t wait = backoff_next(&ch->backoff, id_random_u64());

    forget_deliveries(ch);
    ch->step = STEP_WAIT;
    ch->main_way = ch->dead_way = AS_OURS;
    timer_set(loop_timers(ch->engine->loop), &ch->again, wait);
    settled(ch);
}

/* --- when the broker ends the channel --- */

/*
 * A queue of this name exists with other arguments: an older RockBot or other settings made it. An
 * empty dead-letter queue is deleted and declared again, one with letters in it stays as it is. The
 * main queue is deleted and declared again in any case, because it must dead-letter. Returns true
 * when this was the reason: the steps start again.
 */
static bool other_arguments(struct amqp_channel *ch, unsigned code)
{
    if (code != PRECONDITION_FAILED)
        return false;
    if (ch->step == STEP_DEAD && ch->dead_way == AS_OURS) {
        ch->dead_way = DELETE_FIRST;
    } else if (ch->step == STEP_CLEAR_DEAD) {
        ch->dead_way = AS_IT_IS;
        log_warn("bus",
                 "queue " SPAN_FMT " holds dead letters and has other arguments than ours: "
                 "it is left as it is",
                 SPAN_ARG(ch->dead));
    } else if (ch->step == STEP_MAIN && ch->main_way == AS_OURS) {
        ch->main_way = DELETE_FIRST;
        log_warn("bus", "queue " SPAN_FMT " has other arguments than ours: it is made again",
                 SPAN_ARG(ch->queue));
    } else {
        return false;
    }
    return true;
}

static void on_channel_close(struct amqp_channel *ch, const struct amqp_method *m)
{
    amqp_put_channel_close_ok(out_of(ch), ch->number);
    amqp_wrote(ch->engine);
    if (!ch->sub) {
        /* The queue was not deleted because others still use it. If we have sent our own close, the
         * broker still answers it. */
        if (ch->step != STEP_CLOSE)
            channel_gone(ch);
    } else if (other_arguments(ch, m->code)) {
        go_to(ch, STEP_OPEN);
    } else {
        log_warn("bus", "queue " SPAN_FMT ": RabbitMQ ended the channel while %s: %u " SPAN_FMT,
                 SPAN_ARG(ch->queue), steps[ch->step].what, m->code, SPAN_ARG(m->text));
        retry_later(ch);
    }
}

static void on_answer(struct amqp_channel *ch, const struct amqp_method *m)
{
    if (ch->step == STEP_CLEAR_MAIN && m->messages)
        log_warn("bus", "queue " SPAN_FMT ": %u messages went with it", SPAN_ARG(ch->queue),
                 m->messages);
    if (ch->step != STEP_CLOSE)
        go_to(ch, ch->step + 1);
    else if (ch->sub)
        retry_later(ch);
    else
        channel_gone(ch);
}

/* --- deliveries --- */

static void on_deliver(struct amqp_channel *ch, const struct amqp_method *m)
{
    if (ch->has_method) {
        amqp_lose(ch->engine, "it broke the protocol (a delivery inside a delivery)");
        return;
    }
    ch->has_method = true;
    ch->has_header = ch->unusable = false;
    ch->tag = ch->last = m->tag;
    ch->redelivered = m->redelivered;
    ch->key.n = 0;
    buf_span(&ch->key, m->routing_key);
}

static void bury(struct amqp_channel *ch, const char *why)
{
    log_line(log_seldom(&ch->warned, loop_now(ch->engine->loop)), "bus",
             "queue " SPAN_FMT ": a message went to the dead letters: %s", SPAN_ARG(ch->queue),
             why);
    amqp_put_nack(out_of(ch), ch->number, ch->tag, false);
    amqp_wrote(ch->engine);
}

static void give_message(struct amqp_channel *ch, struct span body)
{
    struct amqp_connection *e = ch->engine;
    struct message m;
    char made_id[ID_TOKEN_SIZE];

    ch->has_method = ch->has_header = false;
    if (ch->unusable) {
        bury(ch, "larger than the limit");
        return;
    }
    int code = amqp_take_message(buf_view(&ch->properties), &m, made_id);
    if (code) {
        bury(ch, err_name(code));
        return;
    }
    m.body = body;
    idmap_put(&ch->unsettled, ch->base + ch->tag, ch);
    engine_deliver(e->bus, ch->sub, ch->base + ch->tag, ch->redelivered, buf_view(&ch->key), &m);
    buf_reset(&ch->body, KEEP);
}

static void on_header(struct amqp_channel *ch, struct span payload)
{
    const struct bus_options *options = ch->engine->options;
    uint64_t most = options->max_message ? options->max_message : MAX_MESSAGE;

    if (!ch->has_method || ch->has_header || amqp_read_body_size(payload, &ch->left)) {
        amqp_lose(ch->engine, "it broke the protocol (properties out of place)");
        return;
    }
    ch->has_header = true;
    ch->unusable = ch->left > most;
    ch->properties.n = ch->body.n = 0;
    buf_span(&ch->properties, payload);
    if (!ch->left)
        give_message(ch, SPAN_EMPTY);
}

static void on_body(struct amqp_channel *ch, struct span piece)
{
    if (!ch->has_header || piece.n > ch->left) {
        amqp_lose(ch->engine, "it broke the protocol (a body out of place)");
        return;
    }
    bool whole = !ch->body.n && piece.n == ch->left;
    ch->left -= piece.n;
    if (whole) {
        give_message(ch, piece);
        return;
    }
    if (!ch->unusable)
        buf_span(&ch->body, piece);
    if (!ch->left)
        give_message(ch, buf_view(&ch->body));
}

/* --- from the connection --- */

static void on_method(struct amqp_channel *ch, const struct amqp_method *m)
{
    bool live = ch->step == STEP_LIVE;

    if (m->id == AMQP_CHANNEL_CLOSE) {
        on_channel_close(ch, m);
    } else if (ch->step != STEP_WAIT && m->id == steps[ch->step].answer && m->id != AMQP_OTHER) {
        on_answer(ch, m);
    } else if (m->id == AMQP_DELIVER && live) {
        on_deliver(ch, m);
    } else if (m->id == AMQP_CANCEL && live) {
        log_warn("bus", "queue " SPAN_FMT ": RabbitMQ ended our consumer, the queue was deleted",
                 SPAN_ARG(ch->queue));
        go_to(ch, STEP_CLOSE);
    } else if (m->id == AMQP_CHANNEL_FLOW) {
        amqp_put_flow_ok(out_of(ch), ch->number, m->active);
        amqp_wrote(ch->engine);
    }
}

void amqp_channel_frame(struct amqp_channel *ch, const struct amqp_frame *f)
{
    struct amqp_connection *e = ch->engine;
    struct amqp_method m;

    if (f->kind == AMQP_METHOD) {
        if (amqp_read_method(f->payload, &m))
            amqp_lose(e, "it sent a broken method on channel %u", f->channel);
        else
            on_method(ch, &m);
    } else if (ch->step != STEP_LIVE) {
        return; /* the rest of a delivery that we do not want any more */
    } else if (f->kind == AMQP_HEADER) {
        on_header(ch, f->payload);
    } else {
        on_body(ch, f->payload);
    }
}

/* --- from the bus --- */

static uint16_t free_number(struct amqp_connection *e)
{
    for (size_t i = 2; i < e->n_channels; i++)
        if (!e->channels[i])
            return (uint16_t)i;
    size_t number = e->n_channels ? e->n_channels : 2;
    if (number > e->channel_max)
        return 0;
    e->channels = mem_resize(e->channels, (number + 1) * sizeof(void *));
    for (; e->n_channels <= number; e->n_channels++)
        e->channels[e->n_channels] = NULL;
    return (uint16_t)number;
}

/* "EXCHANGE.GROUP" and "EXCHANGE.GROUP.dlq": spans into one block. */
static bool name_queues(struct amqp_channel *ch, const char *exchange, const struct engine_sub *sub)
{
    struct buf words = {0};
    size_t topic = strlen(sub->topic), queue = strlen(exchange) + 1 + strlen(sub->group);

    buf_printf(&words, "%s%s.%s%s.%s.dlq", sub->topic, exchange, sub->group, exchange, sub->group);
    ch->words = buf_take(&words);
    ch->topic = span_of(ch->words, topic);
    ch->queue = span_of(ch->words + topic, queue);
    ch->dead = span_of(ch->words + topic + queue, queue + 4);
    return topic <= AMQP_WORD && ch->dead.n <= AMQP_WORD;
}

void amqp_channel_start(struct amqp_connection *e, struct engine_sub *sub)
{
    uint16_t number = free_number(e);
    struct amqp_channel *ch = MEM_NEW(struct amqp_channel);
    bool named = name_queues(ch, e->exchange, sub);

    if (!number || !named) {
        log_error("bus", "no subscription to %s as %s: %s", sub->topic, sub->group,
                  named ? "RabbitMQ gives no more channels" : "the names are too long");
        mem_free(ch->words);
        mem_free(ch);
        return;
    }
    ch->engine = e;
    ch->sub = sub;
    ch->number = number;
    ch->prefetch = sub->prefetch > UINT16_MAX ? UINT16_MAX : (uint16_t)sub->prefetch;
    ch->ephemeral = sub->ephemeral;
    ch->lossy = sub->lossy;
    ch->again.fire = on_again;
    ch->backoff = (struct backoff){.first = RETRY_FIRST, .max = RETRY_MAX};
    e->channels[number] = ch;
    sub->data = ch;
    ch->starting = true;
    e->starting++;
    go_to(ch, STEP_OPEN);
}

void amqp_channel_end(struct engine_sub *sub)
{
    struct amqp_channel *ch = sub->data;

    sub->data = NULL;
    ch->sub = NULL;
    settled(ch);
    timer_clear(loop_timers(ch->engine->loop), &ch->again);
    if (ch->step == STEP_WAIT)
        channel_free(ch);
    else if (ch->step == STEP_LIVE && ch->ephemeral)
        go_to(ch, STEP_DROP_MAIN);
    else if (ch->step != STEP_CLOSE)
        go_to(ch, STEP_CLOSE);
}

void amqp_channel_settle(struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict)
{
    struct amqp_channel *ch = sub->data;

    /* The broker ends a channel that settles a delivery twice. */
    if (!idmap_take(&ch->unsettled, tag))
        return;
    if (verdict == BUS_ACK)
        amqp_put_ack(out_of(ch), ch->number, tag - ch->base);
    else
        amqp_put_nack(out_of(ch), ch->number, tag - ch->base, verdict == BUS_RETRY);
    amqp_wrote(ch->engine);
}
