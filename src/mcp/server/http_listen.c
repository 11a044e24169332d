/* The GET stream of a session of the initialize era: opening, reading, opening again after a
 * failure. Called by http_upstream.c; http_old_sse.c shares the functions for both streams. */
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/server/http_link.h"

#include <errno.h>

enum {
    FIRST_MS = 250,     /* wait from the end of a stream to the first retry, about */
    MAX_MS = 30 * 1000, /* longest wait between tries */
    UNPROVEN_TRIES = 3, /* if the server never gave a stream: some always answer 500 */
    REFUSAL_MAX = 4096,
};

static const struct http_fetch_events listen_events;

/* --- for both kinds of stream --- */

struct listening *http_listen_new(struct http_upstream *u)
{
    struct listening *l = MEM_NEW(struct listening);

    l->link = u;
    l->backoff = (struct backoff){.first = FIRST_MS, .max = MAX_MS};
    l->source.retry = -1;
    return l;
}

static void listening_free(struct listening *l)
{
    sse_source_fini(&l->source);
    buf_fini(&l->refusal);
    buf_fini(&l->challenge);
    mem_free(l);
}

void http_listen_stop(struct http_upstream *u)
{
    struct listening *l = u->listening;

    if (!l)
        return;
    u->listening = NULL;
    if (l->fetch)
        http_fetch_cancel(l->fetch);
    timer_clear(loop_timers(u->loop), &l->timer);
    l->discarded = true;
    if (l->busy)
        sse_decoder_stop(&l->source.decoder);
    else
        listening_free(l);
}

static void leave(struct listening *l)
{
    l->busy = false;
    if (l->discarded)
        listening_free(l);
}

void http_listen_feed(struct listening *l, struct span chunk, sse_event_fn *on_event,
                      void (*too_long)(struct listening *l))
{
    if (!l->source.reading) {
        buf_span(&l->refusal, span_cut(chunk, 0, REFUSAL_MAX - l->refusal.n));
        return;
    }
    l->busy = true;
    if (sse_source_feed(&l->source, chunk, on_event, l) < 0 && !l->discarded)
        too_long(l);
    leave(l);
}

void http_listen_go_on(struct http_upstream *u)
{
    u->listening->timer.fire(&u->listening->timer);
}

bool http_listen_sign_again(struct listening *l, struct buf *why)
{
    if (l->source.reading || l->resigned ||
        http_request_resign(l->link, l->status, l->token, buf_view(&l->challenge), why) !=
            HTTP_SIGNED_AGAIN)
        return false;
    l->resigned = true;
    l->timer.fire(&l->timer);
    return true;
}

/* --- the standing stream of the initialize era --- */

static void try_now(struct timer *t)
{
    struct listening *l = CONTAINER_OF(t, struct listening, timer);
    struct http_upstream *u = l->link;

    l->unsigned_yet = !http_upstream_may_send(u);
    if (l->unsigned_yet)
        return;
    l->status = 0;
    buf_reset(&l->refusal, 0);
    l->fetch = http_request_start(u,
                                  &(struct request_spec){.method = "GET",
                                                         .version = u->version,
                                                         .with_session = true,
                                                         .last_id = l->source.last_id,
                                                         .token = &l->token},
                                  &listen_events, l);
}

static void try_later(struct listening *l)
{
    uint64_t wait = backoff_next(&l->backoff, id_random_u64());

    if (!l->worked && l->backoff.failures > UNPROVEN_TRIES)
        return;
    /* The server's `retry` replaces the first wait, and is the minimum for each later one. */
    if (l->source.retry >= 0 && (l->backoff.failures == 1 || wait < (uint64_t)l->source.retry))
        wait = (uint64_t)l->source.retry;
    timer_set(loop_timers(l->link->loop), &l->timer, wait);
}

static void on_head(void *owner, const struct http_head *head)
{
    struct listening *l = owner;

    l->status = head->status;
    http_request_keep_challenge(&l->challenge, head);
    if (head->status == 200 && http_request_type_is(head, "text/event-stream")) {
        l->resigned = false;
        l->worked = true;
        sse_source_open(&l->source, l->link->options.max_message);
    }
}

static void on_event(void *owner, const struct sse_event *event)
{
    struct listening *l = owner;

    backoff_reset(&l->backoff);
    if (event->data.n && span_is(event->name, "message"))
        mcp_provider_receive(l->link->provider, event->data, 0);
}

static void too_long(struct listening *l)
{
    log_warn(l->link->options.alias,
             "sent a message of more than %zu bytes (limits.message): dropped",
             l->link->options.max_message);
    http_fetch_cancel(l->fetch);
    l->fetch = NULL;
    sse_source_fini(&l->source); /* if resumed, the server would send the message again */
    try_later(l);
}

static void on_chunk(void *owner, struct span chunk)
{
    http_listen_feed(owner, chunk, on_event, too_long);
}

static void refused(struct listening *l)
{
    struct http_upstream *u = l->link;
    BUF_SCOPED why = {0};

    if (http_listen_sign_again(l, &why))
        return;
    if (l->worked && http_request_says_no_session(l->status, buf_view(&l->refusal)))
        http_upstream_forgotten(u);
    else if (l->status >= 500 || l->status == 409 || l->status == 429)
        try_later(l);
    else if (l->status != 405)
        log_debug(u->options.alias, "has no standing stream (HTTP %d)", l->status);
}

/* No HTTP response. The server may have restarted: a later 404 can then mean a lost session. */
static void broken(struct listening *l)
{
    l->worked = true;
    try_later(l);
}

static void on_done(void *owner, int code, const char *why, bool delivered)
{
    struct listening *l = owner;
    bool had_stream = l->source.reading;

    (void)delivered;
    l->fetch = NULL;
    sse_source_close(&l->source);
    l->busy = true;
    if (had_stream)
        try_later(l);
    else if (l->status)
        refused(l);
    else if (code == -ECONNREFUSED)
        http_upstream_lost(l->link, why);
    else
        broken(l);
    leave(l);
}

static const struct http_fetch_events listen_events = {on_head, on_chunk, on_done};

void http_listen_start(struct http_upstream *u)
{
    http_listen_stop(u);
    u->listening = http_listen_new(u);
    u->listening->timer.fire = try_now;
    try_now(&u->listening->timer);
}
