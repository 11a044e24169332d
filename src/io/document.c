/* Fetching one small HTTP answer whole. Called by hub/ for OAuth: key sets, introspection,
 * discovery, registration, tokens and the metadata of clients. */
#include "io/document.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "wire/http.h"

#include <errno.h>
#include <stdio.h>

struct fetched_document {
    struct loop *loop;
    struct http_fetch *fetch;
    size_t max;
    struct timer late;
    int status;
    struct buf head, body;
    char ip[64];
    void (*done)(void *owner, const struct document_answer *a);
    void *owner;
};

static void document_free(struct fetched_document *d)
{
    timer_clear(loop_timers(d->loop), &d->late);
    buf_fini(&d->head);
    buf_fini(&d->body);
    mem_free(d);
}

static void finish(struct fetched_document *d, int code, const char *why)
{
    const struct document_answer a = {.code = code,
                                      .why = why,
                                      .head = {d->status, buf_view(&d->head), d->ip},
                                      .body = buf_view(&d->body)};

    d->done(d->owner, &a);
    document_free(d);
}

static void on_head(void *owner, const struct http_head *head)
{
    struct fetched_document *d = owner;

    d->status = head->status;
    buf_span(&d->head, head->lines);
    snprintf(d->ip, sizeof d->ip, "%s", head->ip);
}

static void on_chunk(void *owner, struct span chunk)
{
    struct fetched_document *d = owner;

    if (d->body.n + chunk.n <= d->max) {
        buf_span(&d->body, chunk);
        return;
    }
    http_fetch_cancel(d->fetch);
    finish(d, ERR_SIZE, "the answer is too large");
}

static void on_done(void *owner, int code, const char *why, bool delivered)
{
    (void)delivered;
    finish(owner, code, why);
}

static void on_late(struct timer *t)
{
    struct fetched_document *d = CONTAINER_OF(t, struct fetched_document, late);

    http_fetch_cancel(d->fetch);
    finish(d, -ETIMEDOUT, "the answer did not come in time");
}

struct fetched_document *document_fetch(struct loop *l, struct http_client *c,
                                        const struct document_spec *spec,
                                        void (*done)(void *owner, const struct document_answer *a),
                                        void *owner)
{
    static const struct http_fetch_events events = {on_head, on_chunk, on_done};
    struct fetched_document *d = MEM_NEW(struct fetched_document);
    struct http_fetch_spec fetch = spec->fetch;

    d->loop = l;
    d->max = spec->max;
    d->done = done;
    d->owner = owner;
    d->late.fire = on_late;
    timer_set(loop_timers(l), &d->late, spec->timeout);
    fetch.direct = true;
    d->fetch = http_fetch_start(c, &fetch, &events, d);
    return d;
}

void document_cancel(struct fetched_document *d)
{
    http_fetch_cancel(d->fetch);
    document_free(d);
}

uint64_t document_freshness(const struct document_answer *a, uint64_t least, uint64_t most)
{
    struct span rest = http_head_value(&a->head, "cache-control"), item;
    uint64_t seconds = 0, found;

    while (http_next_item(&rest, &item))
        if (span_eq_nocase(span_cut(item, 0, 8), SPAN("max-age=")) &&
            ascii_number(span_from(item, 8), &found))
            seconds = found;
    uint64_t ms = seconds > most / 1000 ? most : seconds * 1000;
    return ms < least ? least : ms;
}
