/* NATS subscriptions: messages that arrive, settling and retrying them, dead letters, and requests
 * for more from JetStream consumers. Called by nats.c, and by nats_pipe.c once the server has a
 * subscription. */
#include "base/log.h"
#include "bus/nats_engine.h"
#include "bus/nats_message.h"
#include "bus/nats_stream.h"
#include "bus/topic.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    MAX_RETRIES = 3,       /* after the first delivery */
    MAX_DELIVERIES = 6,    /* by JetStream, whatever became of them: crashed workers count too */
    RETRY_MS = 1000,       /* doubling */
    AT_ONCE = 256,         /* deliveries in one turn of the loop */
    ASK_MS = 30000,        /* how long a request for messages stands */
    ASK_LOST_MS = 45000,   /* it should have ended by now */
    LISTEN_AGAIN_MS = 2000 /* after a consumer could not be had */
};

/* One subject of a subscription. */
struct nats_leg {
    struct nats_sub *sub;
    const char *subject;
    uint64_t id;
    bool jet;                /* JetStream's, else plain NATS */
    bool holding, held;      /* publishes wait for its consumer, for the first time only */
    natsSubscription *queue; /* where its messages come in; NULL = not yet */
    char *next;              /* jet: where to ask the consumer for more; NULL until there is one */
    char *inbox;             /* and where to send that */
    uint64_t asked;          /* messages we have asked for that did not come yet */
    uint64_t asked_at;       /* or the latest of them came */
    struct timer listen;     /* once more */
};

struct nats_sub {
    struct list node;
    struct nats_client *engine;
    struct engine_sub *sub;
    struct nats_plan plan;
    struct nats_leg legs[NATS_MAX_SUBJECTS];
    struct list waiting; /* items to be handed over again */
    struct list held;    /* handed over */
    struct list resting; /* to be handed over again, later */
    unsigned n_held;
};

struct nats_item {
    struct list node;
    struct nats_sub *sub;
    natsMsg *msg;
    struct span topic;
    bool jet;
    uint64_t tag; /* 0 = not handed over */
    uint64_t deliveries;
    struct timer rest;
    bool over; /* settled while it is being handed over */
};

/* --- items --- */

static void on_rested(struct timer *t);

static struct nats_item *item_new(struct nats_leg *leg, natsMsg *msg)
{
    struct nats_item *i = MEM_NEW(struct nats_item);
    const char *prefix = leg->sub->engine->options->prefix;

    i->sub = leg->sub;
    i->msg = msg;
    i->jet = leg->jet;
    i->topic = nats_topic(prefix, span_str(natsMsg_GetSubject(msg)));
    i->deliveries = leg->jet ? nats_delivery_count(span_str(natsMsg_GetReply(msg))) : 1;
    if (!i->deliveries) /* it is not from JetStream, but here it is */
        i->deliveries = 1;
    i->rest.fire = on_rested;
    list_init(&i->node);
    return i;
}

/* Off whatever list it is on. */
static void item_take(struct nats_item *i)
{
    struct nats_client *e = i->sub->engine;

    if (i->tag) {
        idmap_take(&e->items, i->tag);
        i->tag = 0;
        i->sub->n_held--;
    }
    timer_clear(loop_timers(e->loop), &i->rest);
    list_remove(&i->node);
}

static void item_free(struct nats_client *e, struct nats_item *i)
{
    if (i == e->current) {
        i->over = true;
        return;
    }
    natsMsg_Destroy(i->msg);
    mem_free(i);
}

/* JetStream's verbs are words, sent to the address that came with the message. */
static void item_say(struct nats_client *e, const struct nats_item *i, const char *words)
{
    if (i->jet)
        nats_pipe_say(e, natsMsg_GetReply(i->msg), NULL, words);
}

static void bury(struct nats_client *e, struct nats_item *i, const char *why)
{
    struct message m;
    BUF_SCOPED scratch = {0}, subject = {0}, topic = {0};
    struct err err;

    log_line(log_seldom(&e->warned, loop_now(e->loop)), "nats",
             SPAN_FMT ": a message goes to the dead letters: %s", SPAN_ARG(i->topic), why);
    /* What cannot be read goes as far as it could be; and dead letters are not buried twice. */
    (void)(nats_message_read(&m, i->msg, &scratch, &err) < 0);
    if (!span_starts(i->topic, SPAN("dlq."))) {
        buf_str(&topic, "dlq.");
        buf_span(&topic, i->topic);
        nats_put_subject(&subject, e->options->prefix, buf_view(&topic));
        nats_pipe_publish(e, 0, nats_message_new(buf_cstr(&subject), NULL, &m, NULL));
    }
    item_say(e, i, "+TERM");
}

/* --- handing over --- */

static void hand_over(struct nats_client *e, struct nats_item *i)
{
    struct message m;
    BUF_SCOPED scratch = {0};
    struct err err = {0};
    struct nats_sub *s = i->sub;

    list_remove(&i->node);
    if (nats_message_read(&m, i->msg, &scratch, &err) < 0) {
        bury(e, i, err.text);
        item_free(e, i);
    } else {
        i->tag = ++e->last_tag;
        idmap_put(&e->items, i->tag, i);
        list_append(&s->held, &i->node);
        s->n_held++;
        e->current = i;
        engine_deliver(e->bus, s->sub, i->tag, i->deliveries > 1, i->topic, &m);
        e->current = NULL;
        /* `s` may be gone. */
        if (i->over)
            item_free(e, i);
    }
}

static void item_wait(struct nats_item *i)
{
    list_append(&i->sub->waiting, &i->node);
    nats_work_later(i->sub->engine);
}

static void on_rested(struct timer *t)
{
    struct nats_item *i = CONTAINER_OF(t, struct nats_item, rest);

    list_remove(&i->node);
    item_wait(i);
}

/* Is it for this subscription, which may have had to listen to more than it wanted? */
static bool is_wanted(const struct nats_sub *s, const struct nats_item *i)
{
    if (!i->topic.n || (s->plan.rootless && nats_is_internal(i->topic)))
        return false;
    return !s->plan.wider || topic_matches(span_str(s->sub->topic), i->topic);
}

/* NULL when it goes no further. */
static struct nats_item *admit(struct nats_client *e, struct nats_leg *leg, natsMsg *msg)
{
    struct nats_item *i = item_new(leg, msg);

    if (!is_wanted(leg->sub, i))
        item_say(e, i, "+ACK");
    else if (i->jet && i->deliveries > MAX_DELIVERIES)
        bury(e, i, "it was delivered too often and never settled");
    else
        return i;
    item_free(e, i);
    return NULL;
}

static void end_of_request(struct nats_client *e, struct nats_leg *leg, natsMsg *msg);

static struct nats_item *leg_next(struct nats_client *e, struct nats_leg *leg)
{
    struct nats_item *i = NULL;
    natsMsg *msg;

    while (!i && (msg = nats_next(leg->queue))) {
        leg->asked_at = loop_now(e->loop);
        if (leg->jet && !natsMsg_GetReply(msg)) {
            end_of_request(e, leg, msg);
            continue;
        }
        leg->asked -= leg->asked > 0;
        i = admit(e, leg, msg);
    }
    return i;
}

static struct nats_item *sub_next(struct nats_client *e, struct nats_sub *s)
{
    struct nats_item *i = NULL;

    if (s->n_held < s->sub->prefetch) {
        i = LIST_FIRST(&s->waiting, struct nats_item, node);
        for (size_t n = 0; !i && n < s->plan.n; n++)
            i = leg_next(e, &s->legs[n]);
    }
    return i;
}

/* Deliveries may close any subscription, also the one they are made to: looked at anew each time.
 * Whose turn it was stands last then. */
static struct nats_item *next_item(struct nats_client *e)
{
    LIST_EACH (&e->subs, it) {
        struct nats_item *i = sub_next(e, LIST_ENTRY(it, struct nats_sub, node));
        if (!i)
            continue;
        list_remove(it);
        list_append(&e->subs, it);
        return i;
    }
    return NULL;
}

static void ask_for_more(struct nats_client *e, struct nats_sub *s);

bool nats_subs_work(struct nats_client *e)
{
    struct nats_item *i = NULL;

    for (int n = 0; n < AT_ONCE && (i = next_item(e)); n++)
        hand_over(e, i);
    LIST_EACH (&e->subs, it)
        ask_for_more(e, LIST_ENTRY(it, struct nats_sub, node));
    return i != NULL;
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

void nats_sub_settle(struct nats_client *e, uint64_t tag, enum bus_verdict verdict)
{
    struct nats_item *i = idmap_get(&e->items, tag);

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
    nats_work_later(e);
}

/* --- JetStream's consumers --- */

/*
 * A consumer sends what it was asked for. We ask for as many as we have room for, but not for each
 * message by itself when there is room for more.
 */
static void ask_for_more(struct nats_client *e, struct nats_sub *s)
{
    uint64_t taken = s->n_held;
    char words[96];

    for (size_t i = 0; i < s->plan.n; i++)
        taken += s->legs[i].asked;
    for (size_t i = 0; i < s->plan.n; i++) {
        struct nats_leg *leg = &s->legs[i];
        uint64_t room = s->sub->prefetch > taken ? s->sub->prefetch - taken : 0;
        room = (room + s->plan.n - 1 - i) / (s->plan.n - i); /* shared by those that are left */
        if (!leg->next || !room || (leg->asked && room < (s->sub->prefetch + 1) / 2))
            continue;
        snprintf(words, sizeof words, "{\"batch\":%" PRIu64 ",\"expires\":%" PRIu64 "}", room,
                 (uint64_t)ASK_MS * 1000000);
        nats_pipe_say(e, leg->next, leg->inbox, words);
        leg->asked += room;
        leg->asked_at = loop_now(e->loop);
        taken += room;
    }
}

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
            nats_pipe_hold(e);
        }
        nats_link_find_consumer(e->link, leg->id, leg->subject, sub->group, sub->ephemeral);
        return;
    }
    /* Members that want different parts of the same subjects must not share them. */
    if (leg->sub->plan.wider && sub->group)
        buf_printf(&text, "%s:%s", sub->group, sub->topic);
    leg->queue = nats_pipe_subscribe(e, leg->subject, text.n ? buf_cstr(&text) : sub->group);
    nats_pipe_make_sure(e, leg->id);
}

static void leg_release(struct nats_leg *leg)
{
    if (leg->holding) {
        leg->holding = false;
        nats_pipe_release(leg->sub->engine);
    }
}

static void leg_unlisten(struct nats_leg *leg)
{
    struct nats_client *e = leg->sub->engine;

    if (!leg->id)
        return;
    leg_release(leg);
    idmap_take(&e->legs, leg->id);
    leg->id = 0;
    if (leg->queue)
        nats_link_drop(e->link, leg->queue);
    leg->queue = NULL;
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

void nats_leg_is_sure(struct nats_client *e, uint64_t id)
{
    struct nats_leg *leg = idmap_get(&e->legs, id);

    if (leg)
        say_subscribed(leg);
}

void nats_leg_consumer(struct nats_client *e, struct nats_news *n)
{
    struct nats_leg *leg = idmap_get(&e->legs, n->id);
    struct buf inbox = {0};

    if (!leg)
        return;
    if (!n->ok) {
        log_warn("nats", "%s: %s; trying again", leg->subject, n->text);
        leg_listen_later(leg);
        return;
    }
    buf_printf(&inbox, "%s-%" PRIu64, e->inbox, leg->id);
    leg->inbox = buf_take(&inbox);
    leg->queue = nats_pipe_subscribe(e, leg->inbox, NULL);
    leg->next = n->text;
    n->text = NULL;
    say_subscribed(leg);
    leg_release(leg);
    nats_work_later(e);
}

static uint64_t number_in(natsMsg *msg, const char *header, uint64_t otherwise)
{
    const char *text = NULL;

    if (natsMsgHeader_Get(msg, header, &text) != NATS_OK || !text)
        return otherwise;
    return strtoull(text, NULL, 10);
}

/*
 * What comes without an address for an acknowledgement is about our request: 408 says that its time
 * is over, 100 means nothing to us. All else means that the consumer is not what it was.
 */
static void end_of_request(struct nats_client *e, struct nats_leg *leg, natsMsg *msg)
{
    uint64_t status = number_in(msg, "Status", 0);
    uint64_t left = number_in(msg, "Nats-Pending-Messages", UINT64_MAX);

    natsMsg_Destroy(msg);
    if (status == 100)
        return;
    leg->asked -= left < leg->asked ? left : leg->asked;
    if (status != 408 && status != 404)
        leg_listen_later(leg);
    nats_work_later(e);
}

static void say_alive(struct nats_client *e, struct list *items)
{
    LIST_EACH (items, it)
        item_say(e, LIST_ENTRY(it, struct nats_item, node), "+WPI");
}

void nats_subs_tick(struct nats_client *e)
{
    LIST_EACH (&e->subs, it) {
        struct nats_sub *s = LIST_ENTRY(it, struct nats_sub, node);
        say_alive(e, &s->held);
        for (size_t i = 0; i < s->plan.n; i++) {
            struct nats_leg *leg = &s->legs[i];
            if (leg->asked && loop_now(e->loop) - leg->asked_at > ASK_LOST_MS)
                leg->asked = 0;
        }
    }
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
    /* Onlookers need no acknowledgements; and what is in several streams no consumer can get. */
    bool jet = e->options->jetstream && sub->group && !sub->lossy && !s->plan.rootless;
    for (size_t i = 0; i < s->plan.n; i++) {
        s->legs[i] = (struct nats_leg){
            .sub = s, .subject = s->plan.subjects[i], .jet = jet, .listen.fire = on_listen_again};
        leg_listen(&s->legs[i]);
    }
}

static void free_items(struct nats_client *e, struct list *items, const char *words)
{
    struct nats_item *i;

    while ((i = LIST_FIRST(items, struct nats_item, node))) {
        item_take(i);
        if (words)
            item_say(e, i, words);
        item_free(e, i);
    }
}

/*
 * What has come and was not looked at yet is to be given back as well. And the server must know
 * first that we do not listen any more, or it sends us again what we give back: we still have a
 * request.
 */
static void leg_stop(struct nats_client *e, struct nats_leg *leg)
{
    natsMsg *msg;

    while (leg->jet && (msg = nats_next(leg->queue))) {
        if (natsMsg_GetReply(msg))
            list_append(&leg->sub->waiting, &item_new(leg, msg)->node);
        else
            natsMsg_Destroy(msg);
    }
    if (leg->queue && nats_pipe_is_live(e))
        natsSubscription_Unsubscribe(leg->queue);
}

static void sub_free(struct nats_client *e, struct nats_sub *s, const char *words)
{
    for (size_t i = 0; words && i < s->plan.n; i++)
        leg_stop(e, &s->legs[i]);
    free_items(e, &s->held, words);
    free_items(e, &s->waiting, words);
    free_items(e, &s->resting, words);
    for (size_t i = 0; i < s->plan.n; i++) {
        struct nats_leg *leg = &s->legs[i];
        timer_clear(loop_timers(e->loop), &leg->listen);
        leg_unlisten(leg);
    }
    s->sub->data = NULL;
    list_remove(&s->node);
    nats_plan_fini(&s->plan);
    mem_free(s);
}

void nats_sub_close(void *engine, struct engine_sub *sub)
{
    struct nats_client *e = engine;
    if (sub->data)
        sub_free(e, sub->data, "-NAK");
}

void nats_subs_init(struct nats_client *e)
{
    list_init(&e->subs);
}

void nats_subs_drop(struct nats_client *e)
{
    struct nats_sub *s;

    while ((s = LIST_FIRST(&e->subs, struct nats_sub, node)))
        sub_free(e, s, NULL);
}

void nats_subs_fini(struct nats_client *e)
{
    idmap_fini(&e->legs);
    idmap_fini(&e->items);
}
