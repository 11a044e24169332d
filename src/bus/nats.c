/* The NATS engine's operations: open, close, and publishing until the server has the message.
 * Called by bus.c through nats_engine, for nats:// and tls:// URLs; nats_link.c and nats_sub.c
 * report here. */
#include "base/ascii.h"
#include "base/log.h"
#include "bus/nats_inside.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    USUAL_PAYLOAD = 1024 * 1024, /* a server's default limit */
    HEADER_ROOM = 8 * 1024,      /* headers count as payload */
    FRESH_MS = 10000,            /* after a reconnect: other clients may still be reconnecting */
    AGAIN_MS = 250,
    STREAM_AGAIN_MS = 3000, /* longer than LISTEN_AGAIN_MS (nats_sub.c): consumers come first */
    LATE_MS = 5000,         /* a stream that finds another leader answers sooner */
    /* One PING asks about several messages: so many, or those of this time. A worker has only so
     * many calls at once, and none of them is over before its answer has arrived. */
    ASK_FROM = 4,
    ASK_MS = 1,
};

/*
 * Plain NATS confirms nothing. But the server handles what we send in order: when it answers a
 * PING, all that was sent before has arrived.
 */
struct nats_unsure {
    struct list node;
    uint64_t place;  /* position among all that was sent */
    uint64_t number; /* of a publication, or 0 */
    uint64_t leg;    /* a subscription, or 0 */
};

/* JetStream: a publication whose answer has not come. */
struct nats_unstored {
    struct list node;
    uint64_t number, since;
};

/* A stream that must be there before the first message is published to it. */
struct nats_root {
    char *key; /* the prefix and the first segment of its subjects */
    enum { LOOKED_FOR, READY, REFUSED } state;
};

/* --- what has arrived --- */

static void ask(struct nats_client *e)
{
    timer_clear(loop_timers(e->loop), &e->ask);
    e->asked_upto = e->last_unsure;
    nats_link_ping(e);
}

static void on_ask(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, ask);

    if (!e->link.pings)
        ask(e);
}

static void ask_soon(struct nats_client *e)
{
    uint64_t n = e->last_unsure - e->asked_upto;

    /* One PING at a time: the next one asks about all that was sent in the meantime. None when this
     * server is being left, which is over when the PING that is under way has been answered. */
    if (e->link.pings || e->link.moving || n == 0)
        return;
    if (n >= ASK_FROM)
        ask(e);
    else if (!timer_is_set(&e->ask))
        timer_set(loop_timers(e->loop), &e->ask, ASK_MS);
}

static void unsure_add(struct nats_client *e, uint64_t number, uint64_t leg)
{
    struct nats_unsure *u = MEM_NEW(struct nats_unsure);

    u->place = ++e->last_unsure;
    u->number = number;
    u->leg = leg;
    list_append(&e->unsure, &u->node);
    ask_soon(e);
}

static void unsure_free(struct nats_unsure *u)
{
    list_remove(&u->node);
    mem_free(u);
}

void nats_make_sure(struct nats_client *e, uint64_t leg)
{
    unsure_add(e, 0, leg);
}

/* In JetStream only publications that are late are asked about: the server had them, and has not
 * stored them. */
void nats_pong(struct nats_client *e)
{
    BUF_SCOPED late = {0};
    struct nats_unsure *u;

    while ((u = LIST_FIRST(&e->unsure, struct nats_unsure, node)) && u->place <= e->asked_upto) {
        if (u->leg)
            nats_sub_is_sure(e, u->leg);
        if (u->number && e->options->jetstream)
            buf_bytes(&late, &u->number, sizeof u->number);
        else if (u->number)
            engine_sent(e->bus, u->number, BUS_SENT);
        unsure_free(u);
    }
    engine_again(e->bus, &late);
    ask_soon(e);
}

/*
 * After a server was away its clients reconnect one after the other, and plain NATS drops a message
 * that is published before its first subscriber is back. So for a while after a reconnect we ask
 * the server to report each message that had no subscriber, and publish that message again.
 */
static bool is_fresh(const struct nats_client *e)
{
    return !e->options->jetstream && loop_now(e->loop) < e->fresh_until;
}

/* The message stays in the outbox and is published again by engine_again: after `wait_ms`, or
 * sooner when a stream or a subscription is ready; 0 = only then. */
static void park(struct nats_client *e, uint64_t number, uint64_t wait_ms)
{
    buf_bytes(&e->parked, &number, sizeof number);
    if (wait_ms && !timer_is_set(&e->again))
        timer_set(loop_timers(e->loop), &e->again, wait_ms);
}

/* --- what JetStream has stored --- */

static void unstored_drop(struct nats_client *e, uint64_t number)
{
    struct nats_unstored *u = idmap_take(&e->by_number, number);

    if (u)
        list_remove(&u->node);
    mem_free(u);
}

static void unstored_add(struct nats_client *e, uint64_t number)
{
    struct nats_unstored *u = MEM_NEW(struct nats_unstored);

    unstored_drop(e, number);
    u->number = number;
    u->since = loop_now(e->loop);
    idmap_put(&e->by_number, number, u);
    list_append(&e->unstored, &u->node);
    if (!timer_is_set(&e->late))
        timer_set(loop_timers(e->loop), &e->late, LATE_MS);
}

/*
 * While a stream has no leader, the server drops what is published to it and says nothing. What is
 * not answered in time is published again, once the server has answered a PING: one that stands
 * still will answer all. The stream keeps one of each.
 */
static void on_late(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, late);
    uint64_t now = loop_now(e->loop), upto = now - LATE_MS;
    struct nats_unstored *u;
    size_t n = 0;

    for (; (u = LIST_FIRST(&e->unstored, struct nats_unstored, node)) && u->since <= upto; n++) {
        unsure_add(e, u->number, 0);
        unstored_drop(e, u->number);
    }
    if (n)
        log_warn("nats", "no answer about %zu messages: they are published once more", n);
    if (u)
        timer_set(loop_timers(e->loop), &e->late, u->since - upto);
}

/* The message had no subscriber; the server reports this before it answers the next PING. */
static void on_unheard(struct nats_client *e, uint64_t number)
{
    LIST_EACH (&e->unsure, it) {
        struct nats_unsure *u = LIST_ENTRY(it, struct nats_unsure, node);
        if (u->number != number || !is_fresh(e))
            continue;
        unsure_free(u);
        park(e, number, AGAIN_MS);
        return;
    }
}

/* {"stream":…,"seq":…}, or {"error":…} from a stream that is full. */
static void on_stored(struct nats_client *e, uint64_t number, const struct nats_op *op)
{
    struct span text = op->payload;

    unstored_drop(e, number);
    if (nats_headers_status(op->headers)) { /* the stream was deleted: the message is not stored */
        if (!timer_is_set(&e->again))
            log_warn("nats", "a stream is gone: what is not stored yet is published once more");
        park(e, number, STREAM_AGAIN_MS);
        return;
    }
    bool ok = json_skim(text, NULL, NULL, NULL, NULL) == 0 &&
              json_get(text, "error").type == JSON_NONE &&
              json_get(text, "seq").type == JSON_NUMBER;
    if (!ok)
        log_warn("nats", "a message was not stored: " SPAN_FMT, SPAN_ARG(span_cut(text, 0, 300)));
    engine_sent(e->bus, number, ok ? BUS_SENT : BUS_FULL);
}

/* The subject is INBOX.KIND.NUMBER. */
void nats_answer(struct nats_client *e, const struct nats_op *op)
{
    struct span what = span_from(op->subject, strlen(e->inbox));
    uint64_t number;

    if (what.n < 4 || !ascii_number(span_from(what, 3), &number))
        return;
    if (span_starts(what, SPAN(".a.")))
        nats_request_answer(e, number, op);
    else if (span_starts(what, SPAN(".p.")))
        on_stored(e, number, op);
    else if (span_starts(what, SPAN(".n.")) && nats_headers_status(op->headers))
        on_unheard(e, number);
}

/* --- streams for what is published --- */

static void root_free(struct nats_root *r)
{
    mem_free(r->key);
    mem_free(r);
}

static void on_stream(struct nats_client *e, void *owner, bool granted, const char *text)
{
    struct nats_root *r = owner;

    r->state = granted ? READY : REFUSED;
    engine_again(e->bus, &e->parked);
    if (granted)
        return;
    log_warn("nats", "%s: %s", r->key, text);
    map_del(&e->roots, span_str(r->key)); /* the next message tries again */
    root_free(r);
}

/* May a message to this subject be stored now? If not, it is parked or refused. */
static bool may_store(struct nats_client *e, uint64_t number, const char *subject)
{
    struct span key = nats_root(e->options->prefix, span_str(subject));
    struct nats_root *r = map_get(&e->roots, key);

    if (!r) {
        r = MEM_NEW(struct nats_root);
        r->key = mem_span(key);
        map_put(&e->roots, key, r);
        nats_request_stream(e, subject, NULL, false, on_stream, r);
    }
    if (r->state == READY && !e->holds)
        return true;
    if (r->state == REFUSED)
        engine_sent(e->bus, number, BUS_FULL);
    else
        park(e, number, 0);
    return false;
}

void nats_hold(struct nats_client *e)
{
    e->holds++;
}

void nats_release(struct nats_client *e)
{
    /* After a lost connection bus.c publishes all of its outbox again. */
    if (--e->holds == 0 && nats_link_is_open(e))
        engine_again(e->bus, &e->parked);
}

/* One of the streams is gone: all are looked for again, except those being looked for now. */
static void forget_streams(struct nats_client *e)
{
    size_t at = 0;
    struct span key;
    void *root;

    while (map_next(&e->roots, &at, &key, &root)) {
        if (((struct nats_root *)root)->state != READY)
            continue;
        map_del(&e->roots, key);
        root_free(root);
        at = 0; /* the map has changed */
    }
}

static void on_again(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, again);

    forget_streams(e);
    engine_again(e->bus, &e->parked);
}

/* --- publishing --- */

static void put_message(struct nats_client *e, uint64_t number, struct span topic,
                        const struct message *m)
{
    BUF_SCOPED subject = {0}, reply = {0}, once = {0};
    bool jet = e->options->jetstream;

    nats_put_subject(&subject, e->options->prefix, topic);
    if (jet && !may_store(e, number, buf_cstr(&subject)))
        return;
    /* After a lost connection the message may be sent twice: the stream keeps one. */
    if (jet)
        buf_printf(&once, SPAN_FMT "@" SPAN_FMT, SPAN_ARG(m->id), SPAN_ARG(topic));
    e->headers.n = 0;
    nats_message_put(&e->headers, m, buf_view(&once));
    if (e->headers.n + m->body.n > e->max_payload) {
        engine_sent(e->bus, number, BUS_TOO_LARGE);
        return;
    }
    if (jet || is_fresh(e))
        buf_printf(&reply, "%s.%c.%" PRIu64, e->inbox, jet ? 'p' : 'n', number);
    nats_write_pub(nats_link_out(e), buf_view(&subject), buf_view(&reply), buf_view(&e->headers),
                   m->body);
    nats_link_wrote(e);
    if (jet)
        unstored_add(e, number);
    else
        unsure_add(e, number, 0);
}

static void publish(void *engine, uint64_t number, struct span topic, const struct message *m)
{
    struct nats_client *e = engine;

    if (!nats_link_is_open(e))
        return; /* the connection is lost, which bus.c learns at the end of this turn */
    /* A `>` makes the subject a pattern for NATS: nobody can be subscribed to such a topic. */
    if (span_find(topic, '>') < topic.n) {
        log_warn("nats", "'" SPAN_FMT "' is not a subject: a message to it was dropped",
                 SPAN_ARG(topic));
        engine_sent(e->bus, number, BUS_SENT);
        return;
    }
    put_message(e, number, topic, m);
}

/* --- what the connection reports --- */

static void on_tick(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, tick);

    timer_set(loop_timers(e->loop), &e->tick, NATS_TICK_MS);
    nats_subs_tick(e);
    nats_link_tick(e);
}

void nats_up(struct nats_client *e)
{
    if (e->was_up)
        e->fresh_until = loop_now(e->loop) + FRESH_MS;
    e->was_up = true;
    timer_set(loop_timers(e->loop), &e->tick, NATS_TICK_MS);
    engine_up(e->bus);
}

void nats_down(struct nats_client *e)
{
    struct nats_unstored *s;
    struct nats_unsure *u;
    size_t at = 0;
    struct span key;
    void *root;

    timer_clear(loop_timers(e->loop), &e->tick);
    timer_clear(loop_timers(e->loop), &e->ask);
    timer_clear(loop_timers(e->loop), &e->again);
    timer_clear(loop_timers(e->loop), &e->late);
    nats_subs_drop(e);
    nats_requests_drop(e);
    while ((u = LIST_FIRST(&e->unsure, struct nats_unsure, node)))
        unsure_free(u);
    while ((s = LIST_FIRST(&e->unstored, struct nats_unstored, node)))
        unstored_drop(e, s->number);
    e->asked_upto = e->last_unsure;
    buf_reset(&e->parked, 0);
    while (map_next(&e->roots, &at, &key, &root))
        root_free(root);
    map_fini(&e->roots);
    e->roots = (struct map){0};
}

/* --- the engine --- */

static int check_options(struct nats_client *e, const struct bus_options *options, struct err *err)
{
    BUF_SCOPED json = {0};

    if (!nats_prefix_is_valid(options->prefix)) {
        err_set(err, ERR_CONFIG, "'%s' cannot be the prefix of NATS subjects", options->prefix);
        err_hint(err,
                 "a prefix is one or more words of letters, digits, - and _, separated by dots");
        return ERR_CONFIG;
    }
    if (options->ca && access(options->ca, R_OK) < 0)
        return err_set(err, ERR_CONFIG, "cannot read the certificates in %s", options->ca);
    if (options->credentials && nats_login_put(&json, options->credentials, SPAN("try"), err) < 0)
        return ERR_CONFIG;
    return nats_address_parse(&e->address, options->url, err);
}

void nats_free(struct nats_client *e)
{
    loop_undefer(&e->work);
    nats_link_fini(e);
    nats_address_fini(&e->address);
    idmap_fini(&e->legs);
    idmap_fini(&e->items);
    idmap_fini(&e->requests);
    idmap_fini(&e->by_number);
    buf_fini(&e->headers);
    mem_free(e);
}

static void *open_engine(struct bus *b, struct loop *loop, const struct bus_options *options,
                         struct err *err)
{
    struct nats_client *e = MEM_NEW(struct nats_client);
    char token[ID_TOKEN_SIZE];

    e->bus = b;
    e->loop = loop;
    e->options = options;
    e->last_id = NATS_ANSWERS_SID;
    if (check_options(e, options, err) < 0 || nats_link_init(e, err) < 0) {
        nats_free(e);
        return NULL;
    }
    if (e->address.user)
        log_add_secret(span_str(e->address.password ? e->address.password : e->address.user));
    e->tick.fire = on_tick;
    e->ask.fire = on_ask;
    e->again.fire = on_again;
    e->late.fire = on_late;
    id_token(token);
    snprintf(e->inbox, sizeof e->inbox, "_INBOX.%s", token);
    list_init(&e->unsure);
    list_init(&e->unstored);
    list_init(&e->subs);
    return e;
}

static void connect_engine(void *engine)
{
    nats_link_connect(engine);
}

static void close_engine(void *engine)
{
    nats_link_leave(engine);
}

static void describe(const void *engine, struct buf *out)
{
    const struct nats_client *e = engine;
    buf_printf(out, "%s at " SPAN_FMT, e->options->jetstream ? "NATS JetStream" : "NATS",
               SPAN_ARG(buf_view(&e->address.label)));
}

static size_t max_body(const void *engine)
{
    const struct nats_client *e = engine;
    size_t payload = e->max_payload ? e->max_payload : USUAL_PAYLOAD;

    return payload > 2 * HEADER_ROOM ? payload - HEADER_ROOM : payload / 2;
}

const struct engine_ops nats_engine = {
    .name = "NATS",
    .open = open_engine,
    .connect = connect_engine,
    .close = close_engine,
    .describe = describe,
    .max_body = max_body,
    .subscribe = nats_sub_open,
    .unsubscribe = nats_sub_close,
    .publish = publish,
    .settle = nats_sub_settle,
};
