/* The list of a session's latest SSE events: their ids, dropping the oldest, replaying those after
 * an id. Called by http_session.c. */
#include "mcp/agent/event_store.h"

#include "base/ascii.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_out.h"

struct kept_event {
    struct list node;
    struct event_id id;
    size_t n;
    char bytes[];
};

static void drop_oldest(struct event_store *s)
{
    struct kept_event *k = LIST_FIRST(&s->events, struct kept_event, node);

    s->n--;
    s->bytes -= k->n;
    list_remove(&k->node);
    mem_free(k);
}

static void drop_all(struct event_store *s)
{
    while (s->n)
        drop_oldest(s);
}

static void let_go(struct holding *h, const char *why)
{
    log_warn("memory", "the events kept for a session were dropped: %s", why);
    drop_all(CONTAINER_OF(h, struct event_store, held));
}

void event_store_init(struct event_store *s, struct holdings *holdings)
{
    *s = (struct event_store){.tag = (uint32_t)id_random_u64()};
    list_init(&s->events);
    holding_init(&s->held, holdings, let_go);
}

void event_store_fini(struct event_store *s)
{
    holding_set(&s->held, 0);
    drop_all(s);
}

struct event_id event_store_next(struct event_store *s, uint64_t stream)
{
    return (struct event_id){stream, ++s->last};
}

void event_store_put_id(const struct event_store *s, struct buf *out, struct event_id id)
{
    buf_printf(out, "%08x-", s->tag);
    buf_u64(out, id.stream);
    buf_char(out, '-');
    buf_u64(out, id.number);
}

bool event_store_parse(const struct event_store *s, struct span text, struct event_id *id)
{
    BUF_SCOPED tag = {0};

    buf_printf(&tag, "%08x-", s->tag);
    bool ours = span_starts(text, buf_view(&tag));
    struct span rest = span_from(text, tag.n);
    size_t dash = span_find(rest, '-');
    return ours && ascii_number(span_cut(rest, 0, dash), &id->stream) &&
           ascii_number(span_from(rest, dash + 1), &id->number) && id->number <= s->last;
}

void event_store_add(struct event_store *s, struct event_id id, struct span event, bool missed)
{
    if (!missed && event.n > EVENT_STORE_BYTES)
        return;
    struct kept_event *k = mem_alloc(sizeof *k + event.n);
    k->id = id;
    k->n = event.n;
    memcpy(k->bytes, event.p, event.n);
    list_append(&s->events, &k->node);
    s->n++;
    s->bytes += k->n;
    while (s->n > 1 && (s->bytes > EVENT_STORE_BYTES || s->n > EVENT_STORE_EVENTS))
        drop_oldest(s);
    holding_set(&s->held, s->bytes);
}

size_t event_store_replay(const struct event_store *s, struct event_id after, struct buf *out)
{
    size_t n = 0;

    LIST_EACH (&s->events, it) {
        struct kept_event *k = LIST_ENTRY(it, struct kept_event, node);
        if (k->id.stream != after.stream || k->id.number <= after.number)
            continue;
        buf_bytes(out, k->bytes, k->n);
        n++;
    }
    return n;
}

/* --- another daemon takes over --- */

/* The old daemon still numbers the events of its last calls: the new one begins this far above. */
enum { NUMBERS_APART = 1000 * 1000 };

void event_store_export(const struct event_store *s, struct buf *out)
{
    json_out_number(out, "tag", s->tag);
    json_out_number(out, "last", s->last + NUMBERS_APART);
    json_out_open(out, "events", '[');
    LIST_EACH (&s->events, it) {
        const struct kept_event *k = LIST_ENTRY(it, struct kept_event, node);
        json_out_open(out, NULL, '{');
        json_out_number(out, "stream", k->id.stream);
        json_out_number(out, "number", k->id.number);
        json_out_text(out, "text", span_of(k->bytes, k->n));
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void event_store_import(struct event_store *s, struct span state)
{
    struct json_iter it = json_iter(json_get(state, "events").value);

    s->tag = (uint32_t)json_count(state, "tag");
    while (json_next(&it)) {
        struct event_id id = {json_count(it.value, "stream"), json_count(it.value, "number")};
        BUF_SCOPED text = {0};
        json_unescape(&text, json_get(it.value, "text").value);
        event_store_add(s, id, buf_view(&text), true); /* what was kept is kept, at any size */
    }
    s->last = json_count(state, "last");
}
