/* NATS subscriptions: messages that arrive, settling and retrying them, dead letters, and requests
 * for more from JetStream consumers. Called by bus.c through nats_engine, by nats_link.c for each
 * message that arrives, and by nats.c. */
#include "base/ascii.h"
#include "base/log.h"
#include "bus/nats_inside.h"
#include "bus/topic.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    MAX_RETRIES = 3,        /* after the first delivery */
    MAX_DELIVERIES = 6,     /* by JetStream, including those to workers that crashed */
    RETRY_MS = 1000,        /* doubling */
    AT_ONCE = 256,          /* waiting messages that are handed over in one turn of the loop */
    QUEUE_MESSAGES = 65536, /* waiting for one subscription; later ones are dropped */
    QUEUE_BYTES = 64 * 1024 * 1024,
    PROGRESS_MS = 5000,    /* a third of the time after which JetStream gives a message to others */
    ASK_MS = 30000,        /* how long a request for messages is valid */
    ASK_LOST_MS = 45000,   /* a request that has not ended by then counts as lost */
    LISTEN_AGAIN_MS = 2000 /* before asking for a consumer again */
};

/* One subject of a subscription. */
struct nats_leg {
    struct nats_sub *sub;
    const char *subject;
    uint64_t id;        /* its sid at the server; 0 = not listening */
    bool jet;           /* JetStream's, else plain NATS */
    bool open;          /* SUB is sent */
    bool holding, held; /* publishes wait for its consumer; held: they did, and will not again */
    struct nats_request *request; /* the request for a consumer */
    char *next;     /* jet: the subject that asks the consumer for more; NULL until there is one */
    char *inbox;    /* jet: the subject to which the consumer sends messages */
    uint64_t asked; /* messages we have asked for that did not come yet */
    uint64_t asked_at;   /* when we last asked, or when the latest of them came */
    struct timer listen; /* asks for a consumer again */
};

struct nats_sub {
    struct list node;
    struct nats_client *engine;
    struct engine_sub *sub;
    struct nats_plan plan;
    struct nats_leg legs[NATS_MAX_SUBJECTS];
    struct list waiting; /* items to be handed over */
    size_t n_waiting, waiting_bytes;
    struct list held;    /* handed over, not settled */
    struct list resting; /* to be handed over again, later */
    unsigned n_held;
};

/* A message, and one copy of its bytes. */
struct nats_item {
    struct list node;
    struct nats_sub *sub;
    struct span topic, reply, headers, payload;
    size_t size;
    bool jet, waiting;
    uint64_t tag; /* 0 = not handed over */
    uint64_t deliveries;
    struct timer rest;
    bool over; /* settled while it is being handed over */
    char bytes[];
};

static void on_work(struct deferred *d);

/* There is room again, or something to be handed over. */
static void work_later(struct nats_client *e)
{
    loop_defer(e->loop, &e->work, on_work);
}

/* --- items --- */

static void on_rested(struct timer *t);

static struct span copy(char **at, struct span bytes)
{
    struct span kept = span_of(*at, bytes.n);

    if (bytes.n)
        memcpy(*at, bytes.p, bytes.n);
    *at += bytes.n;
    return kept;
}

static struct nats_item *item_new(struct nats_leg *leg, struct span topic, const struct nats_op *op)
{
    size_t size = topic.n + op->reply.n + op->headers.n + op->payload.n;
    struct nats_item *i = mem_alloc(sizeof *i + size);
    char *at = i->bytes;

    *i = (struct nats_item){.sub = leg->sub, .jet = leg->jet, .size = sizeof *i + size};
    i->topic = copy(&at, topic);
    i->reply = copy(&at, op->reply);
    i->headers = copy(&at, op->headers);
    i->payload = copy(&at, op->payload);
    i->deliveries = leg->jet ? nats_delivery_count(i->reply) : 1;
    if (!i->deliveries) /* it is not from JetStream: count this delivery */
        i->deliveries = 1;
    i->rest.fire = on_rested;
    list_init(&i->node);
    return i;
}

/* Takes the item off the list that it is on. */
static void item_take(struct nats_item *i)
{
    struct nats_client *e = i->sub->engine;

    if (i->tag) {
        idmap_take(&e->items, i->tag);
        i->tag = 0;
        i->sub->n_held--;
    }
    if (i->waiting) {
        i->waiting = false;
        i->sub->n_waiting--;
        i->sub->waiting_bytes -= i->size;
    }
    timer_clear(loop_timers(e->loop), &i->rest);
    list_remove(&i->node);
}

static void item_free(struct nats_client *e, struct nats_item *i)
{
    if (i == e->current)
        i->over = true;
    else
        mem_free(i);
}

/* JetStream is answered with words like +ACK, sent to the message's reply subject. */
static void item_say(struct nats_client *e, const struct nats_item *i, const char *words)
{
    if (i->jet)
        nats_link_say(e, i->reply, SPAN_EMPTY, words);
}

static void bury(struct nats_client *e, struct nats_item *i, const char *why)
{
    struct message m;
    char made_id[ID_TOKEN_SIZE];
    BUF_SCOPED topic = {0};
    struct err err;

    log_line(log_seldom(&e->warned, loop_now(e->loop)), "nats",
             SPAN_FMT ": a message goes to the dead letters: %s", SPAN_ARG(i->topic), why);
    /* If the message cannot be read, the fields before the bad one are kept. A message that is a
     * dead letter already is not published again. */
    (void)(nats_message_read(&m, i->headers, i->payload, made_id, &err) < 0);
    if (!span_starts(i->topic, SPAN("dlq."))) {
        buf_str(&topic, "dlq.");
        buf_span(&topic, i->topic);
        bus_publish(e->bus, buf_view(&topic), &m, 0, NULL, NULL);
    }
    item_say(e, i, "+TERM");
}

/* --- handing over --- */

/* Only the server's own PINGs may wake a daemon that does nothing, so the timer stops with the last
 * item. */
static void tell_progress(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, progress);

    LIST_EACH (&e->subs, it) {
        struct nats_sub *s = LIST_ENTRY(it, struct nats_sub, node);
        LIST_EACH (&s->held, held)
            item_say(e, LIST_ENTRY(held, struct nats_item, node), "+WPI");
    }
    if (e->items.n)
        timer_set(loop_timers(e->loop), t, PROGRESS_MS);
}

static void hand_over(struct nats_client *e, struct nats_item *i)
{
    struct message m;
    char made_id[ID_TOKEN_SIZE];
    struct err err = {0};
    struct nats_sub *s = i->sub;

    item_take(i);
    if (nats_message_read(&m, i->headers, i->payload, made_id, &err) < 0) {
        bury(e, i, err.text);
        item_free(e, i);
        return;
    }
    i->tag = ++e->last_tag;
    idmap_put(&e->items, i->tag, i);
    list_append(&s->held, &i->node);
    s->n_held++;
    e->progress.fire = tell_progress;
    if (i->jet && !timer_is_set(&e->progress))
        timer_set(loop_timers(e->loop), &e->progress, PROGRESS_MS);
    e->current = i;
    engine_deliver(e->bus, s->sub, i->tag, i->deliveries > 1, i->topic, &m);
    e->current = NULL;
    /* `s` may be freed. */
    if (i->over)
        item_free(e, i);
}

static bool has_room(const struct nats_sub *s)
{
    return s->n_held < s->sub->prefetch;
}

static void item_wait(struct nats_item *i)
{
    struct nats_sub *s = i->sub;

    i->waiting = true;
    s->n_waiting++;
    s->waiting_bytes += i->size;
    list_append(&s->waiting, &i->node);
    work_later(s->engine);
}

static void on_rested(struct timer *t)
{
    struct nats_item *i = CONTAINER_OF(t, struct nats_item, rest);

    list_remove(&i->node);
    item_wait(i);
}

/* A delivery may close any subscription, so the list is walked from its start each time; the
 * subscription whose turn it was goes to the end. */
static struct nats_item *next_item(struct nats_client *e)
{
    LIST_EACH (&e->subs, it) {
        struct nats_sub *s = LIST_ENTRY(it, struct nats_sub, node);
        if (list_empty(&s->waiting) || !has_room(s))
            continue;
        list_remove(it);
        list_append(&e->subs, it);
        return LIST_FIRST(&s->waiting, struct nats_item, node);
    }
    return NULL;
}

static void ask_for_more(struct nats_client *e, struct nats_sub *s);

static void on_work(struct deferred *d)
{
    struct nats_client *e = CONTAINER_OF(d, struct nats_client, work);
    struct nats_item *i = NULL;

    for (int n = 0; n < AT_ONCE && (i = next_item(e)); n++)
        hand_over(e, i);
    LIST_EACH (&e->subs, it)
        ask_for_more(e, LIST_ENTRY(it, struct nats_sub, node));
    if (i)
        work_later(e);
}

/* Is the topic for this subscription, whose subject may be wider than its pattern? */
static bool is_wanted(const struct nats_sub *s, struct span topic)
{
    if (!topic.n || (s->plan.rootless && nats_is_internal(topic)))
        return false;
    return !s->plan.wider || topic_matches(span_str(s->sub->topic), topic);
}

static bool is_full(struct nats_client *e, const struct nats_sub *s)
{
    if (s->n_waiting < QUEUE_MESSAGES && s->waiting_bytes < QUEUE_BYTES)
        return false;
    log_line(log_seldom(&e->dropped, loop_now(e->loop)), "nats",
             "too many messages wait for %s: the latest were dropped", s->sub->topic);
    return true;
}

static void end_of_request(struct nats_client *e, struct nats_leg *leg, struct span headers);

void nats_sub_message(struct nats_client *e, const struct nats_op *op)
{
    struct nats_leg *leg = idmap_get(&e->legs, op->sid);
    struct span topic = nats_topic(e->options->prefix, op->subject);

    if (!leg) { /* it was on its way when we unsubscribed: the group gets it back */
        if (nats_delivery_count(op->reply))
            nats_link_say(e, op->reply, SPAN_EMPTY, "-NAK");
        return;
    }
    if (leg->jet) {
        leg->asked_at = loop_now(e->loop);
        work_later(e);
        if (!op->reply.n) {
            end_of_request(e, leg, op->headers);
            return;
        }
        leg->asked -= leg->asked > 0;
    }
    if (!is_wanted(leg->sub, topic)) {
        if (leg->jet)
            nats_link_say(e, op->reply, SPAN_EMPTY, "+ACK");
        return;
    }
    if (is_full(e, leg->sub))
        return;
    struct nats_item *i = item_new(leg, topic, op);
    if (i->jet && i->deliveries > MAX_DELIVERIES) {
        bury(e, i, "it was delivered too often and never settled");
        item_free(e, i);
    } else if (has_room(leg->sub) && list_empty(&leg->sub->waiting)) {
        hand_over(e, i);
    } else {
        item_wait(i);
    }
}

/* --- settling --- */

static void retry(struct nats_client *e, struct nats_item *i)
{
    uint64_t wait = (uint64_t)RETRY_MS << (i->deliveries - 1);
    char words[64];

    if (i->jet) {
        snprintf(words, sizeof words, "-NAK {\"delay\":%" PRIu64 "}", wait * 1000000);
        item_say(e, i, words);
        item_free(e, i);
        return;
    }
    /* Plain NATS has forgotten it: we keep it ourselves. */
    i->deliveries++;
    list_append(&i->sub->resting, &i->node);
    timer_set(loop_timers(e->loop), &i->rest, wait);
}

void nats_sub_settle(void *engine, struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict)
{
    struct nats_client *e = engine;
    struct nats_item *i = idmap_get(&e->items, tag);

    (void)sub;
    if (!i)
        return;
    item_take(i);
    if (verdict == BUS_RETRY && i->deliveries > MAX_RETRIES)
        bury(e, i, "it was tried too often");
    else if (verdict == BUS_DEAD)
        bury(e, i, "nobody can use it");
    else if (verdict == BUS_ACK)
        item_say(e, i, "+ACK");
    if (verdict == BUS_RETRY && i->deliveries <= MAX_RETRIES)
        retry(e, i);
    else
        item_free(e, i);
    work_later(e);
}

/* --- JetStream's consumers --- */

/*
 * A consumer sends only what it was asked for. We ask for as many messages as there is room for;
 * while a request is open, we ask again only when half of the prefetch is free.
 */
static void ask_for_more(struct nats_client *e, struct nats_sub *s)
{
    uint64_t taken = s->n_held + s->n_waiting;
    char words[96];

    for (size_t i = 0; i < s->plan.n; i++)
        taken += s->legs[i].asked;
    for (size_t i = 0; i < s->plan.n; i++) {
        struct nats_leg *leg = &s->legs[i];
        uint64_t room = s->sub->prefetch > taken ? s->sub->prefetch - taken : 0;
        room = (room + s->plan.n - 1 - i) / (s->plan.n - i); /* shared by the remaining legs */
        if (!leg->next || !room || (leg->asked && room < (s->sub->prefetch + 1) / 2))
            continue;
        snprintf(words, sizeof words, "{\"batch\":%" PRIu64 ",\"expires\":%" PRIu64 "}", room,
                 (uint64_t)ASK_MS * 1000000);
        nats_link_say(e, span_str(leg->next), span_str(leg->inbox), words);
        leg->asked += room;
        leg->asked_at = loop_now(e->loop);
        taken += room;
    }
}

static void leg_subscribe(struct nats_leg *leg, const char *subject, const char *group)
{
    struct nats_client *e = leg->sub->engine;

    if (!nats_link_is_open(e))
        return;
    nats_write_sub(nats_link_out(e), span_str(subject), span_str(group), leg->id);
    nats_link_wrote(e);
    leg->open = true;
}

static void leg_unsubscribe(struct nats_leg *leg)
{
    struct nats_client *e = leg->sub->engine;

    if (leg->open && nats_link_is_open(e)) {
        nats_write_unsub(nats_link_out(e), leg->id);
        nats_link_wrote(e);
    }
    leg->open = false;
}

static void on_consumer(struct nats_client *e, void *owner, bool granted, const char *text);

static void leg_listen(struct nats_leg *leg)
{
    struct nats_client *e = leg->sub->engine;
    const struct engine_sub *sub = leg->sub->sub;
    BUF_SCOPED text = {0};

    leg->id = ++e->last_id;
    idmap_put(&e->legs, leg->id, leg);
    if (leg->jet) {
        if (!leg->held) {
            leg->holding = leg->held = true;
            nats_hold(e);
        }
        leg->request =
            nats_request_stream(e, leg->subject, sub->group, sub->ephemeral, on_consumer, leg);
        return;
    }
    /* The subject is wider than the pattern, so the pattern is part of the queue group's name:
     * members with different patterns must not share messages. */
    if (leg->sub->plan.wider && sub->group)
        buf_printf(&text, "%s:%s", sub->group, sub->topic);
    leg_subscribe(leg, leg->subject, text.n ? buf_cstr(&text) : sub->group);
    nats_make_sure(e, leg->id);
}

static void leg_release(struct nats_leg *leg)
{
    if (leg->holding) {
        leg->holding = false;
        nats_release(leg->sub->engine);
    }
}

static void leg_unlisten(struct nats_leg *leg)
{
    struct nats_client *e = leg->sub->engine;

    timer_clear(loop_timers(e->loop), &leg->listen);
    if (!leg->id)
        return;
    if (leg->request)
        nats_request_drop(leg->request);
    leg->request = NULL;
    leg_unsubscribe(leg);
    leg_release(leg);
    idmap_take(&e->legs, leg->id);
    leg->id = 0;
    mem_free(leg->next);
    leg->next = NULL;
    mem_free(leg->inbox);
    leg->inbox = NULL;
    leg->asked = 0;
}

static void on_listen_again(struct timer *t)
{
    leg_listen(CONTAINER_OF(t, struct nats_leg, listen));
}

static void leg_listen_later(struct nats_leg *leg)
{
    leg_unlisten(leg);
    timer_set(loop_timers(leg->sub->engine->loop), &leg->listen, LISTEN_AGAIN_MS);
}

static void say_subscribed(const struct nats_leg *leg)
{
    if (leg == &leg->sub->legs[leg->sub->plan.n - 1])
        log_debug("bus", "subscribed to %s as %s", leg->sub->sub->topic,
                  leg->sub->sub->group ? leg->sub->sub->group : "itself");
}

void nats_sub_is_sure(struct nats_client *e, uint64_t id)
{
    struct nats_leg *leg = idmap_get(&e->legs, id);

    if (leg)
        say_subscribed(leg);
}

static void on_consumer(struct nats_client *e, void *owner, bool granted, const char *text)
{
    struct nats_leg *leg = owner;
    struct buf inbox = {0};

    leg->request = NULL;
    if (!granted) {
        log_warn("nats", "%s: %s; trying again", leg->subject, text);
        leg_listen_later(leg);
        return;
    }
    buf_printf(&inbox, "%s-%" PRIu64, e->inbox, leg->id);
    leg->inbox = buf_take(&inbox);
    leg->next = mem_str(text);
    leg_subscribe(leg, leg->inbox, NULL);
    say_subscribed(leg);
    leg_release(leg);
    work_later(e);
}

/*
 * A message without a reply subject is about our request: 408 (expired) and 404 (no messages) end
 * it, 100 (heartbeat) is ignored. Any other status means that the consumer is gone or has changed,
 * and we ask for a consumer again.
 */
static void end_of_request(struct nats_client *e, struct nats_leg *leg, struct span headers)
{
    unsigned status = nats_headers_status(headers);
    struct nats_headers h = nats_headers_of(headers);
    uint64_t left = leg->asked;

    (void)e;
    if (status == 100)
        return;
    while (nats_headers_next(&h))
        if (span_eq_nocase(h.key, SPAN("Nats-Pending-Messages")) && !ascii_number(h.value, &left))
            left = leg->asked;
    leg->asked -= left < leg->asked ? left : leg->asked;
    if (status != 408 && status != 404)
        leg_listen_later(leg);
}

void nats_subs_tick(struct nats_client *e)
{
    LIST_EACH (&e->subs, it) {
        struct nats_sub *s = LIST_ENTRY(it, struct nats_sub, node);
        for (size_t i = 0; i < s->plan.n; i++) {
            struct nats_leg *leg = &s->legs[i];
            if (leg->asked && loop_now(e->loop) - leg->asked_at > ASK_LOST_MS)
                leg->asked = 0;
        }
    }
    work_later(e);
}

/* --- subscriptions --- */

void nats_sub_open(void *engine, struct engine_sub *sub)
{
    struct nats_client *e = engine;
    struct nats_sub *s = MEM_NEW(struct nats_sub);

    s->engine = e;
    s->sub = sub;
    sub->data = s;
    list_init(&s->waiting);
    list_init(&s->held);
    list_init(&s->resting);
    list_append(&e->subs, &s->node);
    nats_plan_init(&s->plan, e->options->prefix, span_str(sub->topic));
    /* Onlookers need no acknowledgements, and a consumer cannot read from several streams. */
    bool jet = e->options->jetstream && sub->group && !sub->lossy && !s->plan.rootless;
    for (size_t i = 0; i < s->plan.n; i++) {
        s->legs[i] = (struct nats_leg){
            .sub = s, .subject = s->plan.subjects[i], .jet = jet, .listen.fire = on_listen_again};
        leg_listen(&s->legs[i]);
    }
}

static void free_items(struct nats_client *e, struct list *items)
{
    struct nats_item *i;

    while ((i = LIST_FIRST(items, struct nats_item, node))) {
        item_take(i);
        item_say(e, i, "-NAK");
        item_free(e, i);
    }
}

/* Unsubscribes before it gives messages back: our request is still open, and the server would send
 * them to us again. */
static void sub_free(struct nats_client *e, struct nats_sub *s)
{
    for (size_t i = 0; i < s->plan.n; i++)
        leg_unlisten(&s->legs[i]);
    free_items(e, &s->held);
    free_items(e, &s->waiting);
    free_items(e, &s->resting);
    s->sub->data = NULL;
    list_remove(&s->node);
    nats_plan_fini(&s->plan);
    mem_free(s);
}

void nats_sub_close(void *engine, struct engine_sub *sub)
{
    if (sub->data)
        sub_free(engine, sub->data);
}

void nats_subs_mute(struct nats_client *e)
{
    LIST_EACH (&e->subs, it) {
        struct nats_sub *s = LIST_ENTRY(it, struct nats_sub, node);
        for (size_t i = 0; i < s->plan.n; i++)
            leg_unsubscribe(&s->legs[i]);
    }
}

void nats_subs_drop(struct nats_client *e)
{
    struct nats_sub *s;

    timer_clear(loop_timers(e->loop), &e->progress);
    while ((s = LIST_FIRST(&e->subs, struct nats_sub, node)))
        sub_free(e, s);
}
