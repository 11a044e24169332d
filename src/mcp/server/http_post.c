/* One message posted to a server: the headers, the answer as JSON or as a stream, resuming a broken
 * stream, sending a message again. Called by http_upstream.c. */
#include "base/log.h"
#include "base/mem.h"
#include "mcp/header_value.h"
#include "mcp/server/http_link.h"

#include <errno.h>
#include <stdio.h>

enum {
    ERROR_BODY_MAX = 64 * 1024, /* bytes that are read of the body of a refusal */
    SESSION_ID_MAX = 1024,
    RESUME_MS = 1000, /* wait before resuming, when the server sent no `retry` */
    RESUME_TRIES = 5, /* in a row, without any event */
    LINGER_MS = 2000, /* how long a stream may stay open after the answer */
};

static const struct http_fetch_events post_events;
static void on_timer(struct timer *t);

/* --- life --- */

/* Does the Mcp-Name header repeat the name, uri or task id in a request of this method? */
static bool is_named(const char *method)
{
    static const char *const methods[] = {"tools/call", "prompts/get",  "resources/read",
                                          "tasks/get",  "tasks/update", "tasks/cancel"};

    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

/* In the stateless era headers repeat the method and the name in the message. */
static void put_modern_lines(struct server_post *p, const struct mcp_parcel *parcel)
{
    snprintf(p->version, sizeof p->version, "%s", parcel->version ? parcel->version : "");
    if (parcel->method) { /* may be any text that an agent calls a method */
        buf_str(&p->lines, "Mcp-Method: ");
        header_value_put(&p->lines, span_str(parcel->method));
        buf_str(&p->lines, "\r\n");
    }
    if (parcel->method && parcel->name.p && is_named(parcel->method)) {
        buf_str(&p->lines, "Mcp-Name: ");
        header_value_put(&p->lines, parcel->name);
        buf_str(&p->lines, "\r\n");
    }
}

struct server_post *http_post_new(struct http_upstream *u, const struct mcp_parcel *parcel)
{
    struct server_post *p = MEM_NEW(struct server_post);

    p->link = u;
    p->kind = parcel->kind;
    p->id = parcel->kind == RPC_REQUEST ? parcel->id : 0;
    p->modern = parcel->modern;
    p->timer.fire = on_timer;
    p->source.retry = -1;
    list_init(&p->node);
    p->body = u->out;
    u->out = (struct buf){0};
    p->repeatable = !parcel->method || mcp_is_repeatable(parcel->method);
    if (parcel->method) {
        p->initialize = strcmp(parcel->method, "initialize") == 0;
        p->initialized = strcmp(parcel->method, "notifications/initialized") == 0;
        p->greets = p->initialize || strcmp(parcel->method, "server/discover") == 0;
    }
    if (p->modern)
        put_modern_lines(p, parcel);
    else if (p->initialize && mcp_provider_core(u->provider)->stand_in)
        /* This server speaks the stateless era, perhaps only that, and may want its headers. */
        buf_str(&p->lines, "Mcp-Method: initialize\r\n");
    buf_span(&p->lines, parcel->headers);
    if (p->id)
        idmap_put(&u->by_id, p->id, p);
    return p;
}

static void post_free(struct server_post *p)
{
    buf_fini(&p->lines);
    buf_fini(&p->body);
    buf_fini(&p->answer);
    buf_fini(&p->challenge);
    sse_source_fini(&p->source);
    mem_free(p);
}

/* Inside a callback of the post itself, the post is only unlinked; leave() frees it then. */
void http_post_drop(struct server_post *p)
{
    if (p->discarded)
        return;
    if (p->fetch)
        http_fetch_cancel(p->fetch);
    p->fetch = NULL;
    timer_clear(loop_timers(p->link->loop), &p->timer);
    list_remove(&p->node);
    if (p->id)
        idmap_take(&p->link->by_id, p->id);
    p->discarded = true;
    if (p->busy)
        sse_decoder_stop(&p->source.decoder);
    else
        post_free(p);
}

static void leave(struct server_post *p)
{
    p->busy = false;
    if (p->discarded)
        post_free(p);
}

static void send_message(struct server_post *p)
{
    struct http_upstream *u = p->link;

    p->epoch = u->epoch;
    p->with_session = !p->modern && !p->initialize && u->session;
    struct request_spec spec = {
        .method = "POST",
        .lines = buf_view(&p->lines),
        .with_session = p->with_session,
        .body = &p->body,
        .token = &p->token,
    };
    if (p->modern)
        spec.version = p->version;
    else if (!p->initialize && !u->old_sse)
        spec.version = u->version;
    p->fetch = http_request_start(u, &spec, &post_events, p);
}

/* Ask for the rest of a stream that broke. The message itself is not sent again. */
static void resume(struct server_post *p)
{
    p->fetch = http_request_start(p->link,
                                  &(struct request_spec){.method = "GET",
                                                         .version = p->link->version,
                                                         .with_session = p->with_session,
                                                         .last_id = p->source.last_id,
                                                         .token = &p->token},
                                  &post_events, p);
}

void http_post_send(struct server_post *p)
{
    struct http_upstream *u = p->link;

    list_remove(&p->node);
    if (!http_upstream_may_send(u)) {
        list_append(&u->unsent, &p->node);
        return;
    }
    list_append(&u->posts, &p->node);
    p->status = 0;
    if (p->resuming)
        resume(p);
    else
        send_message(p);
    u->token_shown |= p->token != 0;
}

/* --- the answer as it comes --- */

static void learn_session(struct server_post *p, const struct http_head *head)
{
    struct http_upstream *u = p->link;
    struct span id = http_head_value(head, "Mcp-Session-Id");

    if (!id.p || head->status >= 300)
        return;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] < 0x21 || id.p[i] > 0x7e)
            id.n = 0;
    if (!id.n || id.n > SESSION_ID_MAX) {
        log_warn(u->options.alias, "gave a session id that cannot be used: left out");
        return;
    }
    mem_free(u->session);
    u->session = mem_span(id);
}

static bool is_fine(int status)
{
    return status >= 200 && status < 300;
}

static void on_head(void *owner, const struct http_head *head)
{
    struct server_post *p = owner;
    struct http_upstream *u = p->link;

    u->answered = true;
    p->status = head->status;
    p->json = http_request_type_is(head, "application/json");
    http_request_keep_challenge(&p->challenge, head);
    if (p->initialize)
        learn_session(p, head);
    if (!is_fine(p->status) || !p->id || u->old_sse)
        return;
    if (p->with_session)
        u->forgets = 0;
    if (http_request_type_is(head, "text/event-stream")) {
        p->resigned = false;
        sse_source_open(&p->source, u->options.max_message);
    }
}

static void on_event(void *owner, const struct sse_event *event)
{
    struct server_post *p = owner;
    struct http_upstream *u = p->link;

    p->tries = 0;
    if (!event->data.n || !span_is(event->name, "message"))
        return;
    mcp_provider_receive(u->provider, event->data, p->id);
    /* The server should end the stream now. If we end it, the connection is lost. */
    if (!p->discarded && !timer_is_set(&p->timer) && !mcp_provider_expects(u->provider, p->id))
        timer_set(loop_timers(u->loop), &p->timer, LINGER_MS);
}

static void answer_too_long(struct server_post *p)
{
    char why[96];

    snprintf(why, sizeof why, "answered with more than %zu bytes (limits.message)",
             p->link->options.max_message);
    log_warn(p->link->options.alias, "%s", why);
    mcp_provider_failed(p->link->provider, p->id, p->status, true, why);
    http_post_drop(p);
}

static void on_chunk(void *owner, struct span chunk)
{
    struct server_post *p = owner;
    bool fine = is_fine(p->status);
    size_t max = fine ? p->link->options.max_message : ERROR_BODY_MAX;
    int code = 0;

    p->busy = true;
    if (p->source.reading) {
        code = sse_source_feed(&p->source, chunk, on_event, p);
    } else if (chunk.n <= max - p->answer.n) {
        buf_span(&p->answer, chunk);
    } else if (fine && p->id) {
        code = ERR_SIZE;
    } else {
        buf_span(&p->answer, span_cut(chunk, 0, max - p->answer.n));
    }
    if (code < 0 && !p->discarded)
        answer_too_long(p);
    leave(p);
}

/* --- the end of an answer --- */

static void fail(struct server_post *p, int status, bool delivered, const char *why)
{
    /* 401 says that the server did not read the request, and that it may be sent again after a
     * sign-in. A server that refuses only the rest of its answer has read it. */
    if (p->resuming && status == 401)
        status = 503;
    if (p->id)
        mcp_provider_failed(p->link->provider, p->id, status, delivered, why);
    else
        log_debug(p->link->options.alias, "a message was not taken: %s", why);
    http_post_drop(p);
}

/*
 * The stream ended, perhaps before the answer came. In the initialize era a server may close the
 * stream on purpose, and events with ids say that the client can resume.
 */
static void stream_over(struct server_post *p, const char *why)
{
    struct http_upstream *u = p->link;

    sse_source_close(&p->source);
    timer_clear(loop_timers(u->loop), &p->timer);
    if (!mcp_provider_expects(u->provider, p->id)) {
        http_post_drop(p);
    } else if (!p->modern && p->source.last_id && p->tries < RESUME_TRIES) {
        p->tries++;
        timer_set(loop_timers(u->loop), &p->timer,
                  p->source.retry >= 0 ? (uint64_t)p->source.retry : RESUME_MS);
    } else {
        fail(p, 0, true, why);
    }
}

static void on_timer(struct timer *t)
{
    struct server_post *p = CONTAINER_OF(t, struct server_post, timer);

    if (p->fetch) { /* the answer has come, but the stream has not ended */
        http_post_drop(p);
        return;
    }
    p->resuming = true;
    http_post_send(p);
}

/* Is the body the JSON-RPC response to this request? */
static bool is_answer(const struct server_post *p)
{
    struct rpc_message m;
    int64_t id;

    if (rpc_skim(buf_view(&p->answer), NULL, NULL, NULL, 0, &m) < 0)
        return false;
    return (m.kind == RPC_ERROR || m.kind == RPC_RESULT) && json_int(m.id, &id) && id > 0 &&
           (uint64_t)id == p->id;
}

/* The server does not know the session. True if the request is sent again in the next session. */
static bool session_lost(struct server_post *p)
{
    struct http_upstream *u = p->link;
    bool news = p->epoch == u->epoch && u->phase == LINK_READY;
    bool again = p->id && !p->resent && mcp_provider_expects(u->provider, p->id);

    if (again) {
        p->resent = true;
        buf_reset(&p->answer, 0);
        list_remove(&p->node);
        list_append(&u->held, &p->node);
    }
    if (news)
        http_upstream_forgotten(u);
    else if (again && u->phase == LINK_READY)
        http_post_send(p); /* another post noticed this first, and the next session is up */
    return again;
}

/* A token may be missing, or was refused. True if that is handled: the request is sent again with
 * another token, or has failed because there is none. */
static bool see_to_token(struct server_post *p)
{
    struct http_upstream *u = p->link;
    /* A server that was never sent a token serves other calls without one: the link stays open. */
    bool locks = !p->greets && u->token_shown;
    BUF_SCOPED why = {0};
    enum http_signed now =
        http_request_resign(u, p->status, p->token, buf_view(&p->challenge), &why);

    if (now == HTTP_SIGNED_AGAIN && !p->resigned) {
        p->resigned = true;
        buf_reset(&p->answer, 0);
        http_post_send(p);
        return true;
    }
    if (!why.n)
        return false;
    /* 503 instead of 401: the provider must not wait for a sign-in, which this does not need. */
    fail(p, now == HTTP_SIGNED_LATER ? 503 : p->status, true, buf_cstr(&why));
    /* During the handshake the provider itself gives the link up. */
    if (now == HTTP_SIGNED_OUT && locks)
        http_upstream_lock(u, buf_cstr(&why));
    return true;
}

static void refused(struct server_post *p)
{
    struct span body = buf_view(&p->answer);
    BUF_SCOPED why = {0};

    /* Checked first: some servers report an unknown session in an error with the request's id. */
    if (p->with_session && !p->resuming && http_request_says_no_session(p->status, body) &&
        session_lost(p))
        return;
    if (see_to_token(p))
        return;
    if (p->id && is_answer(p)) {
        mcp_provider_receive(p->link->provider, body, p->id);
        http_post_drop(p);
        return;
    }
    http_request_put_refusal(&why, p->status, body);
    if (p->initialize)
        snprintf(p->link->refusal, sizeof p->link->refusal, "%s", buf_cstr(&why));
    fail(p, p->status, true, buf_cstr(&why));
}

static void answered(struct server_post *p)
{
    struct mcp_provider *provider = p->link->provider;
    char why[80];

    if (p->json && p->answer.n)
        mcp_provider_receive(provider, buf_view(&p->answer), p->id);
    if (mcp_provider_expects(provider, p->id)) {
        snprintf(why, sizeof why, "HTTP %d, but %s", p->status,
                 !p->answer.n ? "without an answer"
                 : p->json    ? "with another answer"
                              : "the answer is not JSON");
        fail(p, p->status, true, why);
    } else {
        http_post_drop(p);
    }
}

static void unreachable(struct server_post *p, int code, const char *why, bool delivered)
{
    struct http_upstream *u = p->link;
    bool down = code == -ECONNREFUSED || !u->answered;

    /* The server may have closed an idle connection at the moment when we used it again. */
    if (!down && !p->resuming && p->repeatable && !p->repeated) {
        p->repeated = true;
        http_post_send(p);
        return;
    }
    down |= p->initialized;
    if (p->resuming && !down)
        stream_over(p, why);
    else
        fail(p, 0, delivered, why);
    if (down)
        http_upstream_lost(u, why);
}

static void finish(struct server_post *p, int code, const char *why, bool delivered)
{
    struct http_upstream *u = p->link;

    if (code < 0 && !p->status)
        unreachable(p, code, why, delivered);
    else if (!is_fine(p->status))
        refused(p);
    else if (p->source.reading)
        stream_over(p, code < 0 ? why : "the stream ended without the answer");
    else if (!p->id || u->old_sse)
        http_post_drop(p); /* accepted; in the old transport the answer comes on the GET stream */
    else if (code < 0)
        fail(p, 0, true, why);
    else
        answered(p);
    if (p->initialized && p->discarded && u->phase == LINK_GREETING)
        http_upstream_ready(u);
}

static void on_done(void *owner, int code, const char *why, bool delivered)
{
    struct server_post *p = owner;

    p->busy = true;
    if (!p->resuming)
        p->body = http_fetch_take_body(p->fetch);
    p->fetch = NULL;
    finish(p, code, why, delivered);
    leave(p);
}

static const struct http_fetch_events post_events = {on_head, on_chunk, on_done};
