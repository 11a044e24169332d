/* The memory of the last calls: chunks that are filled by the router's tap and used again, oldest
 * first. Begun and ended by admin.c; calls.c reads the records. */
#include "admin/recorder.h"

#include "base/mem.h"
#include "core/principal.h"

#include <stddef.h>

/* Bytes of a clientInfo; one that is longer is no JSON then, and is not shown. */
enum { CLIENT_KEPT = 512 };

/* Records with their texts, in the order in which they were taken. */
struct chunk {
    struct list node;
    size_t used;
    _Alignas(max_align_t) char bytes[RECORD_CHUNK];
};

static bool holds(const struct chunk *c, const void *p)
{
    return (const char *)p >= c->bytes && (const char *)p < c->bytes + RECORD_CHUNK;
}

/* Forgets the records that begin in this chunk. What was added to them later is in this chunk or a
 * newer one. */
static void forget_all_in(struct recorder *r, const struct chunk *c)
{
    struct record *oldest;

    while ((oldest = LIST_FIRST(&r->records, struct record, node)) && holds(c, oldest)) {
        idmap_take(&r->by_id, oldest->id);
        list_remove(&oldest->node);
    }
}

static void next_chunk(struct recorder *r)
{
    struct chunk *c;

    if (r->n_chunks < r->max_chunks) {
        c = mem_alloc(sizeof *c);
        r->n_chunks++;
    } else {
        c = LIST_FIRST(&r->chunks, struct chunk, node);
        forget_all_in(r, c);
        list_remove(&c->node);
    }
    c->used = 0;
    list_append(&r->chunks, &c->node);
    r->current = c;
}

static void *take(struct recorder *r, size_t n)
{
    size_t whole = (n + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);

    if (!r->current || r->current->used + whole > RECORD_CHUNK)
        next_chunk(r);
    r->current->used += whole;
    return r->current->bytes + r->current->used - whole;
}

static struct span bounded(struct span text)
{
    return span_cut(text, 0, RECORD_KEPT);
}

/* Copies `text` to `*at` and moves `*at` behind the copy. */
static struct span keep(char **at, struct span text)
{
    struct span copy = span_of(*at, text.n);

    if (text.n)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return copy;
}

static const char *on_opened(struct tap *self, const struct call *c, const struct request *q)
{
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    const struct provider *p = c->provider;

    if (!call_concerns_people(c))
        return NULL;
    struct span server = p ? span_str(p->told_as ? p->told_as : p->alias) : SPAN_EMPTY;
    struct span name = bounded(q->name), params = bounded(q->params);
    struct span token = span_str(c->principal ? c->principal->name : NULL);
    struct span client = span_cut(span_str(c->caller->client), 0, CLIENT_KEPT);
    struct record *rec = take(r, sizeof *rec + server.n + name.n + params.n + token.n + client.n);
    char *at = (char *)(rec + 1);
    *rec = (struct record){.id = c->handle, .op = c->op, .opened_at = c->opened_at};
    rec->server = keep(&at, server);
    rec->name = keep(&at, name);
    rec->params = (struct record_body){keep(&at, params), q->params.n};
    rec->token = keep(&at, token);
    rec->client = keep(&at, client);
    list_append(&r->records, &rec->node);
    idmap_put(&r->by_id, rec->id, rec);
    return NULL;
}

static const char *on_ended(struct tap *self, const struct call *c, const struct outcome *outcome)
{
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    struct record *rec = idmap_get(&r->by_id, c->handle);

    if (!rec)
        return NULL; /* forgotten to make room for later records */
    struct span error = bounded(outcome->text), result = bounded(outcome->body);
    char *at = take(r, error.n + result.n);
    if (recorder_find(r, c->handle) != rec)
        return NULL; /* forgotten just now, to make room for its own end */
    rec->ended = true;
    rec->took = router_timers(r->router)->now - rec->opened_at;
    rec->kind = outcome->kind;
    rec->why = outcome->why;
    rec->is_error = outcome->is_error;
    rec->error = keep(&at, error);
    rec->result = (struct record_body){keep(&at, result), outcome->body.n};
    return NULL;
}

static const char *on_decided(struct tap *self, const struct call *c, bool allowed, struct span by)
{
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    struct record *rec = idmap_get(&r->by_id, c->handle);

    if (!rec)
        return NULL;
    struct span who = bounded(by);
    char *at = take(r, who.n);
    if (recorder_find(r, c->handle) != rec)
        return NULL;
    rec->decided_by = keep(&at, who);
    rec->allowed = allowed;
    return NULL;
}

void recorder_begin(struct recorder *r, struct router *router, size_t keep)
{
    *r = (struct recorder){.tap = {.opened = on_opened, .ended = on_ended, .decided = on_decided},
                           .router = router,
                           .max_chunks = keep / RECORD_CHUNK};
    list_init(&r->chunks);
    list_init(&r->records);
    if (r->max_chunks)
        router_add_tap(router, &r->tap);
}

void recorder_end(struct recorder *r)
{
    router_remove_tap(&r->tap);
    LIST_EACH_SAFE (&r->chunks, it)
        mem_free(LIST_ENTRY(it, struct chunk, node));
    idmap_fini(&r->by_id);
}

const struct record *recorder_find(const struct recorder *r, uint64_t id)
{
    return idmap_get(&r->by_id, id);
}

const struct record *recorder_next(const struct recorder *r, const struct record *rec)
{
    const struct list *prev = rec ? rec->node.prev : r->records.prev;

    return prev == &r->records ? NULL : LIST_ENTRY(prev, struct record, node);
}
