/* The HTTP+SSE transport: a server's one stream, and the address for POSTs in its first event.
 * Called by http_upstream.c, when configured or when Streamable HTTP was refused. */
#include "base/log.h"
#include "base/mem.h"
#include "mcp/server/http_link.h"

#include <stdio.h>

/*
 * The older transport: all messages of the server come on the stream of one GET, whose first event
 * has the address for POSTs. The session ends with the stream.
 */

static void learn_endpoint(struct http_upstream *u, struct span where)
{
    char why[256];

    if (u->endpoint)
        return;
    u->endpoint = http_url_resolve(u->url, where);
    if (u->endpoint) {
        u->phase = LINK_FRESH;
        mcp_provider_connected(u->provider);
        return;
    }
    /* Our messages may hold secrets: they must not go to any host that the server names. */
    snprintf(why, sizeof why, "wants messages to be sent elsewhere ('" SPAN_FMT "')",
             SPAN_ARG(span_cut(where, 0, 100)));
    http_upstream_lost(u, why);
}

static void on_event(void *owner, const struct sse_event *event)
{
    struct listening *l = owner;

    if (event->cut)
        mcp_provider_too_long(l->link->provider, event->data, l->link->options.max_message);
    else if (span_is(event->name, "endpoint"))
        learn_endpoint(l->link, event->data);
    else if (span_is(event->name, "message") && event->data.n)
        mcp_provider_receive(l->link->provider, event->data, 0);
}

static void on_head(void *owner, const struct http_head *head)
{
    struct listening *l = owner;

    l->link->answered = true;
    l->status = head->status;
    http_request_keep_challenge(&l->challenge, head);
    if (head->status == 200 && http_request_type_is(head, "text/event-stream"))
        sse_source_open(&l->source, l->link->options.max_message);
    /* The stream is the session: a message that is too long must not end it for all calls. */
    l->source.decoder.skips = true;
}

static void on_chunk(void *owner, struct span chunk)
{
    http_listen_feed(owner, chunk, on_event, NULL);
}

/* Did the server answer, but not with HTTP+SSE? */
static bool is_other_way(const struct listening *l)
{
    return !l->source.reading &&
           (l->status == 200 || l->status == 400 || l->status == 404 || l->status == 405);
}

static void put_reason(struct buf *text, const struct listening *l, int code, const char *why)
{
    const struct http_upstream *u = l->link;

    if (l->source.reading)
        buf_str(text, code < 0 ? why : "closed its event stream");
    else if (!l->status)
        buf_str(text, why);
    else if (l->status == 200)
        buf_str(text, "HTTP 200, but no event stream");
    else
        http_request_put_refusal(text, l->status, buf_view(&l->refusal));
    if (u->refusal[0] && !u->endpoint)
        buf_printf(text, "; before that, with Streamable HTTP: %s", u->refusal);
    if (u->pathless && !u->endpoint)
        buf_str(text, " (the url has no path: give the whole one if you know it)");
}

static void on_done(void *owner, int code, const char *why, bool delivered)
{
    struct listening *l = owner;
    struct http_upstream *u = l->link;
    BUF_SCOPED text = {0};

    (void)delivered;
    l->fetch = NULL;
    if (is_other_way(l) && http_upstream_turn(u))
        return;
    if (http_listen_sign_again(l, &text))
        return;
    if (!text.n)
        put_reason(&text, l, code, why);
    if (l->status == 401)
        mcp_provider_locked(u->provider);
    http_upstream_lost(u, buf_cstr(&text));
}

static const struct http_fetch_events stream_events = {on_head, on_chunk, on_done};

static void open_stream(struct timer *t)
{
    struct listening *l = CONTAINER_OF(t, struct listening, timer);

    l->unsigned_yet = !http_upstream_may_send(l->link);
    if (l->unsigned_yet)
        return;
    l->status = 0;
    buf_reset(&l->refusal, 0);
    l->fetch = http_request_start(
        l->link, &(struct request_spec){.method = "GET", .token = &l->token}, &stream_events, l);
}

void http_old_sse_start(struct http_upstream *u)
{
    u->old_sse = true;
    u->listening = http_listen_new(u);
    u->listening->timer.fire = open_stream;
    open_stream(&u->listening->timer);
}
