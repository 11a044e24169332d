/* Splits McpServersIndexed messages and keeps the newest entry of each server. Called by broker.c
 * for published messages, and when a queue for announcements gets the first subscriber. */
#include "bus/retained.h"

#include "base/ascii.h"
#include "base/id.h"
#include "bus/topic.h"
#include "wire/json.h"

static const struct span topics = {"tool.meta.mcp.", 14};
static const struct span index_type = {"RockBot.Tools.Mcp.McpServersIndexed", 35};

struct kept {
    struct list node;
    struct parcel *parcel;
    struct buf key;
};

void retained_init(struct retained *r)
{
    *r = (struct retained){0};
    list_init(&r->parcels);
}

static void drop(struct retained *r, struct kept *k)
{
    map_del(&r->by_key, buf_view(&k->key));
    list_remove(&k->node);
    r->n--;
    r->bytes -= k->parcel->size;
    parcel_unref(k->parcel);
    buf_fini(&k->key);
    mem_free(k);
}

void retained_fini(struct retained *r)
{
    for (struct kept *first; (first = LIST_FIRST(&r->parcels, struct kept, node));)
        drop(r, first);
    map_fini(&r->by_key);
}

/* Agents write the name of one server in different cases. */
static void put_key(struct buf *key, struct span topic, struct span raw_name)
{
    size_t from;

    key->n = 0;
    buf_span(key, topic);
    buf_char(key, '\n');
    from = key->n;
    json_unescape(key, raw_name);
    for (size_t i = from; i < key->n; i++)
        key->p[i] = ascii_to_lower(key->p[i]);
}

static void forget(struct retained *r, struct span key)
{
    struct kept *k = map_get(&r->by_key, key);

    if (k)
        drop(r, k);
}

/* Takes over the caller's reference to the parcel. */
static void remember(struct retained *r, struct span key, struct parcel *p)
{
    struct kept *k = MEM_NEW(struct kept);

    forget(r, key);
    buf_span(&k->key, key);
    k->parcel = p;
    map_put(&r->by_key, key, k);
    list_append(&r->parcels, &k->node);
    r->n++;
    r->bytes += p->size;
    struct kept *first;
    while ((r->n > RETAINED_MOST || (r->bytes > RETAINED_BYTES && r->n > 1)) &&
           (first = LIST_FIRST(&r->parcels, struct kept, node)))
        drop(r, first);
}

/* The announcement of one server out of many. */
static struct parcel *part_of(const struct parcel *p, struct span server)
{
    struct message m;
    BUF_SCOPED body = {0};
    char id[ID_TOKEN_SIZE];

    message_pack_read(p->pack, &m);
    id_token(id);
    m.id = span_str(id);
    buf_str(&body, "{\"servers\":[");
    buf_span(&body, server);
    buf_str(&body, "],\"removedServers\":[]}");
    m.body = buf_view(&body);
    return parcel_new(p->topic, &m, p->account);
}

static size_t count(struct span list)
{
    struct json_iter it = json_iter(list);
    size_t n = 0;

    while (json_next(&it))
        n++;
    return n;
}

void retained_look(struct retained *r, struct parcel *p)
{
    struct message m;
    enum json_type type;
    BUF_SCOPED key = {0};

    if (!span_starts(p->topic, topics))
        return;
    message_pack_read(p->pack, &m);
    if (!span_eq(m.type, index_type) || json_skim(m.body, NULL, NULL, &type, NULL) < 0 ||
        type != JSON_OBJECT)
        return;
    struct span servers = json_get(m.body, "servers").value;
    struct span removed = json_get(m.body, "removedServers").value;
    size_t n = count(servers), n_removed = count(removed);
    struct json_iter it = json_iter(removed);
    while (json_next(&it)) {
        put_key(&key, p->topic, it.type == JSON_STRING ? it.value : SPAN("\"\""));
        forget(r, buf_view(&key));
    }
    it = json_iter(servers);
    for (size_t left = n; json_next(&it); left--) {
        if (left > RETAINED_MOST)
            continue; /* the entries after it would push this one out again */
        struct json_slot name = json_get(it.value, "serverName");
        if (name.type != JSON_STRING)
            continue;
        put_key(&key, p->topic, name.value);
        remember(r, buf_view(&key), n == 1 && !n_removed ? parcel_ref(p) : part_of(p, it.value));
    }
    if (!n && !n_removed) {
        put_key(&key, p->topic, SPAN("\"\""));
        remember(r, buf_view(&key), parcel_ref(p));
    }
}

bool retained_wanted(struct span pattern)
{
    return span_starts(pattern, topics);
}

void retained_each(const struct retained *r, struct span pattern,
                   void (*fn)(void *arg, struct parcel *p), void *arg)
{
    LIST_EACH (&r->parcels, it) {
        struct kept *k = LIST_ENTRY(it, struct kept, node);
        if (topic_matches(pattern, k->parcel->topic))
            fn(arg, k->parcel);
    }
}
