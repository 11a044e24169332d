/* The embedded bus: queues of groups, subscriptions, deliveries, retries and limits. Called by
 * embedded.c for the process that hosts the bus, by line_conn.c for each connected process, and by
 * buses.c and live.c of admin/ for operators. */
#include "bus/broker.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "bus/dead_letters.h"
#include "bus/parcel.h"
#include "bus/retained.h"
#include "bus/topic.h"

#include <assert.h>

#include <errno.h>

enum {
    QUEUE_MESSAGES = 1024,
    QUEUE_BYTES = 64 * 1024 * 1024,
    TOTAL_BYTES = 256 * 1024 * 1024,
    DURABLE_MS = 60000,
    RETRY_MS = 1000,
    RETRIES_MOST = 3,
    SUBS_MOST = 10000,
    QUEUES_MOST = 10000, /* durable queues stay for a while without subscribers */
    PREFETCH = 10,
    PUMP_MOST = 256, /* deliveries of one queue in a turn */
};

struct group { /* subscribers that share messages: a queue for each of their patterns */
    char *name;
    size_t n_queues;
    uint64_t publication; /* the number of the last message that the group got */
    size_t found;         /* index in broker->found of the group's queue for that message */
};

struct queue {
    struct topic_entry entry; /* in the tree */
    struct broker *broker;
    struct group *group;
    char *key; /* group, newline, pattern */
    struct span pattern;
    struct list subs;    /* the subscription whose turn is next stands first */
    struct list waiting; /* items, to be delivered in this order */
    struct list delayed; /* items, until their timer brings them back */
    size_t n, bytes;     /* of all items: waiting, delayed and unsettled */
    bool durable, lossy;
    bool pumping, gone; /* gone: freed when pumping ends */
    struct timer expiry;
    struct deferred pump;
};

struct queue_item { /* a parcel in a queue: on a list of the queue or of a subscription */
    struct list node;
    struct parcel *parcel;
    struct queue *queue;
    struct broker_sub *sub; /* has the item while it is unsettled; else NULL */
    uint64_t tag;
    unsigned retries;
    bool redelivered;
    struct timer retry;
};

struct broker_sub {
    struct list in_queue, in_member;
    struct queue *queue;
    struct broker_member *member;
    unsigned prefetch, n_unsettled;
    struct list unsettled; /* items, in the order of delivery */
    void *data;
};

struct broker_member {
    struct broker *broker;
    const struct broker_events *on;
    void *owner;
    struct list subs;
    struct idmap by_tag; /* items */
};

struct broker {
    struct loop *loop;
    struct broker_options options;
    struct topic_tree tree;
    struct map queues, groups;
    struct queue **found; /* queues for the message that is being published */
    size_t n_found, found_cap;
    uint64_t publication, last_tag;
    size_t n_members, n_subs;
    size_t bytes;    /* of all parcels and items */
    uint64_t warned; /* when a dead letter was last logged */
    struct dead_letters dead;
    struct retained retained;
    void (*changed)(void *arg); /* or NULL */
    void *changed_arg;
};

/* --- life --- */

static void default_to(size_t *value, size_t preset)
{
    if (!*value)
        *value = preset;
}

struct broker *broker_new(struct loop *loop, const struct broker_options *options)
{
    struct broker *b = MEM_NEW(struct broker);

    b->loop = loop;
    b->options = *options;
    default_to(&b->options.queue_messages, QUEUE_MESSAGES);
    default_to(&b->options.queue_bytes, QUEUE_BYTES);
    default_to(&b->options.total_bytes, TOTAL_BYTES);
    default_to(&b->options.durable_ms, DURABLE_MS);
    default_to(&b->options.retry_ms, RETRY_MS);
    topic_tree_init(&b->tree);
    dead_letters_init(&b->dead);
    retained_init(&b->retained);
    return b;
}

static void queue_free(struct queue *q);

void broker_free(struct broker *b)
{
    struct span key;
    void *q;

    if (!b)
        return;
    assert(!b->n_members);
    for (size_t at = 0; map_next(&b->queues, &at, &key, &q); at = 0)
        queue_free(q);
    map_fini(&b->queues);
    map_fini(&b->groups);
    topic_tree_fini(&b->tree);
    dead_letters_fini(&b->dead);
    retained_fini(&b->retained);
    mem_free(b->found);
    mem_free(b);
}

/* --- items --- */

static void pump_later(struct queue *q);

static void on_retry(struct timer *t)
{
    struct queue_item *it = CONTAINER_OF(t, struct queue_item, retry);

    list_remove(&it->node);
    /* At the head: this item has waited longer than those in the queue. */
    list_append(it->queue->waiting.next, &it->node);
    pump_later(it->queue);
}

static void queue_put(struct queue *q, struct parcel *p)
{
    struct queue_item *it = MEM_NEW(struct queue_item);

    it->parcel = parcel_ref(p);
    it->queue = q;
    it->retry.fire = on_retry;
    list_append(&q->waiting, &it->node);
    q->n++;
    q->bytes += p->size;
    q->broker->bytes += sizeof *it;
    pump_later(q);
}

static void tell(const struct broker *b)
{
    if (b->changed)
        b->changed(b->changed_arg);
}

static void item_free(struct queue_item *it)
{
    tell(it->queue->broker);
    timer_clear(loop_timers(it->queue->broker->loop), &it->retry);
    list_remove(&it->node);
    it->queue->n--;
    it->queue->bytes -= it->parcel->size;
    it->queue->broker->bytes -= sizeof *it;
    parcel_unref(it->parcel);
    mem_free(it);
}

static void item_bury(struct queue_item *it, const char *why)
{
    const struct queue *q = it->queue;
    struct message m;
    struct broker *b = q->broker;

    message_pack_read(it->parcel->pack, &m);
    log_line(log_seldom(&b->warned, loop_now(b->loop)), "bus",
             "dead letter: " SPAN_FMT " on " SPAN_FMT " for group %s %s", SPAN_ARG(m.type),
             SPAN_ARG(it->parcel->topic), q->group->name, why);
    dead_letters_add(&b->dead, it->parcel, q->group->name, why);
    item_free(it);
}

static void item_retry(struct queue_item *it)
{
    struct queue *q = it->queue;

    if (it->retries == RETRIES_MOST) {
        item_bury(it, "was tried four times");
        return;
    }
    it->redelivered = true;
    list_append(&q->delayed, &it->node);
    timer_set(loop_timers(q->broker->loop), &it->retry, q->broker->options.retry_ms << it->retries);
    it->retries++;
}

/* --- queues --- */

static bool queue_has_room(const struct queue *q, size_t size)
{
    const struct broker_options *o = &q->broker->options;

    return q->n < o->queue_messages && size <= o->queue_bytes && q->bytes <= o->queue_bytes - size;
}

static void free_items(struct list *items)
{
    for (struct queue_item *first; (first = LIST_FIRST(items, struct queue_item, node));)
        item_free(first);
}

static void queue_free(struct queue *q)
{
    struct broker *b = q->broker;

    tell(b);
    if (!q->gone) {
        q->gone = true;
        topic_tree_remove(&b->tree, &q->entry);
        map_del(&b->queues, span_str(q->key));
        if (--q->group->n_queues == 0) {
            map_del(&b->groups, span_str(q->group->name));
            mem_free(q->group->name);
            mem_free(q->group);
        }
        q->group = NULL;
        loop_undefer(&q->pump);
        timer_clear(loop_timers(b->loop), &q->expiry);
        free_items(&q->waiting);
        free_items(&q->delayed);
    }
    if (q->pumping)
        return;
    mem_free(q->key);
    mem_free(q);
}

static void on_expiry(struct timer *t)
{
    struct queue *q = CONTAINER_OF(t, struct queue, expiry);

    log_debug("bus", "nobody came back to group %s on " SPAN_FMT ": %zu messages dropped",
              q->group->name, SPAN_ARG(q->pattern), q->n);
    queue_free(q);
}

/* The next subscription in turn that can take a message; it moves to the end of the list. */
static struct broker_sub *next_sub(struct queue *q)
{
    LIST_EACH (&q->subs, it) {
        struct broker_sub *sub = LIST_ENTRY(it, struct broker_sub, in_queue);
        if (sub->n_unsettled >= sub->prefetch || !sub->member->on->is_ready(sub->member->owner))
            continue;
        list_remove(&sub->in_queue);
        list_append(&q->subs, &sub->in_queue);
        return sub;
    }
    return NULL;
}

/* Inside the callback anything may happen to the item, the subscription and the queue. */
static void deliver(struct queue_item *it, struct broker_sub *sub)
{
    struct broker_member *m = sub->member;
    struct parcel *p = parcel_ref(it->parcel);
    struct message message;

    message_pack_read(p->pack, &message);
    list_remove(&it->node);
    list_append(&sub->unsettled, &it->node);
    sub->n_unsettled++;
    it->sub = sub;
    it->tag = ++m->broker->last_tag;
    idmap_put(&m->by_tag, it->tag, it);
    m->on->deliver(m->owner, sub, it->tag, it->redelivered, p->topic, &message);
    parcel_unref(p);
}

static void on_pump(struct deferred *d)
{
    struct queue *q = CONTAINER_OF(d, struct queue, pump);
    struct broker_sub *sub;
    struct queue_item *first;
    int n = 0;

    q->pumping = true;
    while (!q->gone && (first = LIST_FIRST(&q->waiting, struct queue_item, node)) &&
           n++ < PUMP_MOST && (sub = next_sub(q)))
        deliver(first, sub);
    q->pumping = false;
    if (q->gone)
        queue_free(q);
    else if (n > PUMP_MOST)
        pump_later(q);
}

static void pump_later(struct queue *q)
{
    tell(q->broker);
    if (!q->gone && !list_empty(&q->waiting) && !list_empty(&q->subs))
        loop_defer(q->broker->loop, &q->pump, on_pump);
}

static struct group *group_of(struct broker *b, const char *name)
{
    struct group *g = map_get(&b->groups, span_str(name));

    if (!g) {
        g = MEM_NEW(struct group);
        g->name = mem_str(name);
        map_put(&b->groups, span_str(name), g);
    }
    return g;
}

/* NULL when there are too many queues. */
static struct queue *queue_of(struct broker *b, const struct bus_subscription *s)
{
    BUF_SCOPED key = {0};

    buf_printf(&key, "%s\n%s", s->group, s->topic);
    struct queue *q = map_get(&b->queues, buf_view(&key));
    if (q || b->queues.n == QUEUES_MOST)
        return q;
    q = MEM_NEW(struct queue);
    q->broker = b;
    q->group = group_of(b, s->group);
    q->group->n_queues++;
    map_put(&b->queues, buf_view(&key), q);
    q->key = buf_take(&key);
    q->pattern = span_str(q->key + strlen(s->group) + 1);
    q->expiry.fire = on_expiry;
    list_init(&q->subs);
    list_init(&q->waiting);
    list_init(&q->delayed);
    topic_tree_add(&b->tree, q->pattern, &q->entry);
    return q;
}

/* --- members and subscriptions --- */

struct broker_member *broker_join(struct broker *b, const struct broker_events *on, void *owner)
{
    struct broker_member *m = MEM_NEW(struct broker_member);

    m->broker = b;
    m->on = on;
    m->owner = owner;
    list_init(&m->subs);
    b->n_members++;
    return m;
}

void broker_leave(struct broker_member *m)
{
    for (struct broker_sub *first; (first = LIST_FIRST(&m->subs, struct broker_sub, in_member));)
        broker_unsubscribe(first);
    m->broker->n_members--;
    idmap_fini(&m->by_tag);
    mem_free(m);
}

void broker_member_ready(struct broker_member *m)
{
    LIST_EACH (&m->subs, it)
        pump_later(LIST_ENTRY(it, struct broker_sub, in_member)->queue);
}

static void replay(void *arg, struct parcel *p)
{
    struct queue *q = arg;

    if (queue_has_room(q, p->size))
        queue_put(q, p);
}

struct broker_sub *broker_subscribe(struct broker_member *m, const struct bus_subscription *s,
                                    void *data)
{
    struct broker *b = m->broker;

    struct queue *q = b->n_subs < SUBS_MOST ? queue_of(b, s) : NULL;
    if (!q)
        return NULL;
    struct broker_sub *sub = MEM_NEW(struct broker_sub);
    bool first = list_empty(&q->subs);
    sub->queue = q;
    sub->member = m;
    sub->prefetch = s->prefetch ? s->prefetch : PREFETCH;
    sub->data = data;
    list_init(&sub->unsettled);
    list_append(&q->subs, &sub->in_queue);
    list_append(&m->subs, &sub->in_member);
    b->n_subs++;
    q->durable |= !s->ephemeral;
    q->lossy = s->lossy && (first || q->lossy);
    timer_clear(loop_timers(b->loop), &q->expiry);
    if (first && retained_wanted(q->pattern))
        retained_each(&b->retained, q->pattern, replay, q);
    pump_later(q);
    return sub;
}

void *broker_sub_data(const struct broker_sub *sub)
{
    return sub->data;
}

/* The unsettled items go back to the head of the queue, in the order they had. */
static void give_back(struct broker_sub *sub)
{
    while (!list_empty(&sub->unsettled)) {
        struct queue_item *it = LIST_ENTRY(sub->unsettled.prev, struct queue_item, node);
        idmap_take(&sub->member->by_tag, it->tag);
        list_remove(&it->node);
        it->sub = NULL;
        it->redelivered = true;
        list_append(sub->queue->waiting.next, &it->node);
    }
}

void broker_unsubscribe(struct broker_sub *sub)
{
    struct queue *q = sub->queue;

    give_back(sub);
    list_remove(&sub->in_queue);
    list_remove(&sub->in_member);
    q->broker->n_subs--;
    mem_free(sub);
    if (!list_empty(&q->subs))
        pump_later(q);
    else if (q->durable)
        timer_set(loop_timers(q->broker->loop), &q->expiry, q->broker->options.durable_ms);
    else
        queue_free(q);
}

void broker_settle(struct broker_member *m, uint64_t tag, enum bus_verdict verdict)
{
    struct queue_item *it = tag ? idmap_take(&m->by_tag, tag) : NULL;

    if (!it)
        return;
    struct queue *q = it->queue;
    it->sub->n_unsettled--;
    it->sub = NULL;
    list_remove(&it->node);
    if (verdict == BUS_RETRY)
        item_retry(it);
    else if (verdict == BUS_DEAD)
        item_bury(it, "was refused");
    else
        item_free(it);
    pump_later(q);
}

/* --- publishing --- */

static void on_found(void *arg, struct topic_entry *e)
{
    struct broker *b = arg;
    struct queue *q = CONTAINER_OF(e, struct queue, entry);

    /* Another pattern of the same group matched already: the group gets the message once, in a
     * queue that has subscribers if there is one. */
    if (q->group->publication == b->publication) {
        if (list_empty(&b->found[q->group->found]->subs))
            b->found[q->group->found] = q;
        return;
    }
    q->group->publication = b->publication;
    q->group->found = b->n_found;
    if (b->n_found == b->found_cap) {
        b->found_cap = b->found_cap ? b->found_cap * 2 : 16;
        b->found = mem_resize(b->found, b->found_cap * sizeof(struct queue *));
    }
    b->found[b->n_found++] = q;
}

/*
 * May the message be put into the queues found for it? A full queue that has subscribers prevents
 * it. A full queue without subscribers prevents it only when no other queue with subscribers gets
 * the message. Lossy queues never count.
 */
static bool may_be_put(const struct broker *b, size_t size)
{
    bool any = false, crowded = false;

    for (size_t i = 0; i < b->n_found; i++) {
        const struct queue *q = b->found[i];
        bool room = q->lossy || queue_has_room(q, size);
        if (!room && !list_empty(&q->subs))
            return false;
        any |= !q->lossy && !list_empty(&q->subs);
        crowded |= !room;
    }
    return any || !crowded;
}

static void drop_oldest(struct queue *q, size_t size)
{
    struct queue_item *oldest;

    while (!queue_has_room(q, size) && size <= q->broker->options.queue_bytes &&
           (oldest = LIST_FIRST(&q->waiting, struct queue_item, node)))
        item_free(oldest);
}

enum bus_sent broker_publish(struct broker *b, struct span topic, const struct message *m)
{
    size_t size = parcel_size(topic, m);

    b->n_found = 0;
    b->publication++;
    topic_tree_match(&b->tree, topic, on_found, b);
    if (!may_be_put(b, size))
        return BUS_FULL;
    if (!b->n_found && !retained_wanted(topic))
        return BUS_SENT;
    size_t more = size + b->n_found * sizeof(struct queue_item);
    if (more > b->options.total_bytes || b->bytes > b->options.total_bytes - more)
        return BUS_FULL;
    struct parcel *p = parcel_new(topic, m, &b->bytes);
    for (size_t i = 0; i < b->n_found; i++) {
        if (list_empty(&b->found[i]->subs))
            drop_oldest(b->found[i], size);
        if (queue_has_room(b->found[i], size))
            queue_put(b->found[i], p);
    }
    retained_look(&b->retained, p);
    parcel_unref(p);
    return BUS_SENT;
}

bool broker_dead_letter(const struct broker *b, uint64_t after, struct dead_letter *out)
{
    return dead_letters_next(&b->dead, after, out);
}

int broker_resend(struct broker *b, uint64_t number)
{
    struct parcel *p = dead_letters_find(&b->dead, number);
    struct message m;

    if (!p)
        return -ENOENT;
    message_pack_read(p->pack, &m);
    enum bus_sent how = broker_publish(b, p->topic, &m);
    if (how == BUS_SENT)
        dead_letters_drop(&b->dead, number);
    tell(b);
    parcel_unref(p);
    return how == BUS_SENT ? 0 : -EAGAIN;
}

void broker_watch(struct broker *b, void (*changed)(void *arg), void *arg)
{
    b->changed = changed;
    b->changed_arg = arg;
}

bool broker_next_queue(const struct broker *b, size_t *at, struct broker_queue *out)
{
    void *value;

    if (!map_next(&b->queues, at, NULL, &value))
        return false;
    const struct queue *q = value;
    *out = (struct broker_queue){.group = span_str(q->group->name),
                                 .pattern = q->pattern,
                                 .messages = q->n,
                                 .bytes = q->bytes};
    LIST_EACH (&q->subs, it)
        out->subscribers++;
    return true;
}
