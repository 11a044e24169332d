/* The table of recent messages by sender and id, with their replies, and dropping the oldest.
 * Called by job.c for each request; worker.c makes and frees the table. */
#include "rockbot/recent.h"

#include "base/mem.h"

enum { MAX_KEY = 2 * MESSAGE_MAX_WORD + 1 };

static struct span make_key(char key[MAX_KEY], struct span source, struct span id)
{
    struct span who = span_cut(source, 0, MESSAGE_MAX_WORD),
                which = span_cut(id, 0, MESSAGE_MAX_WORD);

    if (who.n)
        memcpy(key, who.p, who.n);
    key[who.n] = '\0';
    if (which.n)
        memcpy(key + who.n + 1, which.p, which.n);
    return span_of(key, who.n + 1 + which.n);
}

void recent_init(struct recent *r)
{
    *r = (struct recent){0};
    list_init(&r->order);
    list_init(&r->kept);
}

static void drop_reply(struct recent *r, struct recent_entry *e)
{
    if (!e->reply)
        return;
    r->bytes -= e->reply_bytes;
    list_remove(&e->in_kept);
    message_pack_free(e->reply);
    mem_free(e->topic);
    e->reply = NULL;
}

static void forget(struct recent *r, struct recent_entry *e)
{
    drop_reply(r, e);
    map_del(&r->by_key, span_of(e->key, e->key_n));
    list_remove(&e->node);
    r->n--;
    mem_free(e);
}

void recent_fini(struct recent *r)
{
    struct recent_entry *e;

    while ((e = LIST_FIRST(&r->order, struct recent_entry, node)))
        forget(r, e);
    map_fini(&r->by_key);
}

struct recent_entry *recent_find(const struct recent *r, struct span source, struct span id)
{
    char key[MAX_KEY];

    return map_get(&r->by_key, make_key(key, source, id));
}

/* Messages that are being worked on stay, whatever their age; there are never many. */
static void make_room(struct recent *r)
{
    struct recent_entry *oldest;

    LIST_EACH_SAFE (&r->order, it) {
        struct recent_entry *e = LIST_ENTRY(it, struct recent_entry, node);
        if (r->n <= RECENT_ENTRIES)
            break;
        if (!e->work)
            forget(r, e);
    }
    while (r->bytes > RECENT_BYTES && (oldest = LIST_FIRST(&r->kept, struct recent_entry, in_kept)))
        drop_reply(r, oldest);
}

struct recent_entry *recent_add(struct recent *r, struct span source, struct span id, void *work)
{
    char text[MAX_KEY];
    struct span key = make_key(text, source, id);
    struct recent_entry *e = mem_zalloc(sizeof *e + key.n);

    e->work = work;
    e->key_n = key.n;
    memcpy(e->key, key.p, key.n);
    list_append(&r->order, &e->node);
    map_put(&r->by_key, key, e);
    r->n++;
    make_room(r);
    return e;
}

void recent_finish(struct recent *r, struct recent_entry *e, struct span topic,
                   const struct message *reply)
{
    e->work = NULL;
    e->topic = mem_span(topic);
    e->reply = message_pack_new(reply);
    e->reply_bytes = message_pack_size(reply);
    list_append(&r->kept, &e->in_kept);
    r->bytes += e->reply_bytes;
    make_room(r);
}
