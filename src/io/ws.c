/* An open WebSocket connection: messages, pings, the closing handshake, the end. Called by
 * ws_accept.c and ws_connect.c after their handshakes, and by users in mcp/, browser/, hub/ and
 * cmd/. */
#include "io/ws_conn.h"

#include "base/log.h"
#include "base/mem.h"

enum {
    CLOSE_MS = 3000,    /* time for the peer's close frame, and for the end of the stream */
    MISSED_PINGS = 2,   /* the connection ends after so many pings without any byte back */
    NOWHERE_KEEP = 256, /* capacity that `nowhere` keeps */
};

static void on_timer(struct timer *t);

/* Incomplete messages of this peer take too much memory. */
static void let_go(struct holding *h, const char *why)
{
    struct ws *w = CONTAINER_OF(h, struct ws, input);

    log_warn("memory", "%s was cut: %s", ws_peer(w), why);
    ws_abort(w, why);
}

struct ws *ws_new(struct loop *l, enum ws_role role, const struct ws_options *options,
                  const struct ws_events *on, void *owner)
{
    struct ws *w = MEM_NEW(struct ws);

    w->loop = l;
    w->role = role;
    w->options = *options;
    w->on = on;
    w->owner = owner;
    w->timer.fire = on_timer;
    ws_decoder_init(&w->decoder, role, options->max_message);
    holding_init(&w->input, loop_holdings(l), role == WS_SERVER ? let_go : NULL);
    return w;
}

/* --- the end --- */

void ws_note_end(struct ws *w, uint16_t code, const char *reason)
{
    if (w->code)
        return;
    w->code = code;
    w->reason = mem_str(reason ? reason : "");
}

void ws_finalize(struct ws *w)
{
    timer_clear(loop_timers(w->loop), &w->timer);
    loop_undefer(&w->later);
    w->state = WS_OVER;
    w->stream = NULL;
    w->on->closed(w->owner, w->code, w->reason);
    holding_set(&w->input, 0);
    ws_dial_free(w->dial);
    ws_decoder_fini(&w->decoder);
    buf_fini(&w->early);
    buf_fini(&w->nowhere);
    mem_free(w->reason);
    mem_free(w);
}

static void wait_for_end(struct ws *w, enum ws_state state)
{
    w->state = state;
    w->queued = SIZE_MAX;
    timer_set(loop_timers(w->loop), &w->timer, CLOSE_MS);
}

static void put_close(struct ws *w, uint16_t code, const char *reason)
{
    ws_frame_put_close(stream_out(w->stream), w->role, code, span_str(reason));
    stream_wrote(w->stream);
}

void ws_close(struct ws *w, uint16_t code, const char *reason)
{
    if (w->state == WS_DIALING) {
        ws_note_end(w, code, reason);
        ws_dial_cancel(w);
    } else if (w->state == WS_OPEN) {
        ws_note_end(w, code, reason);
        put_close(w, code, reason);
        wait_for_end(w, WS_CLOSING);
    }
}

void ws_abort(struct ws *w, const char *reason)
{
    ws_note_end(w, 1006, reason);
    if (w->state == WS_DIALING) {
        ws_dial_cancel(w);
    } else if (w->stream) {
        w->state = WS_OVER;
        stream_close(w->stream, reason);
    }
}

/* Both sides have sent a close frame. The server closes the stream. */
static void on_close_frame(struct ws *w, struct span payload)
{
    uint16_t code = ws_frame_close_code(payload);

    if (w->state == WS_OPEN) {
        char *reason = mem_span(span_from(payload, 2));
        ws_note_end(w, code, *reason ? reason : "closed by the peer");
        mem_free(reason);
        put_close(w, code, "");
    }
    wait_for_end(w, WS_OVER);
    if (w->role == WS_SERVER)
        stream_finish(w->stream, "closed", CLOSE_MS);
}

/*
 * The peer broke the rules. It may be in the middle of a long message: its bytes are read and
 * dropped for a while, because closing at once would reset the connection before the peer reads our
 * close frame.
 */
static void fail(struct ws *w, uint16_t code, const char *why)
{
    if (w->state == WS_OPEN)
        put_close(w, code, why);
    ws_note_end(w, code, why);
    stream_shutdown(w->stream);
    wait_for_end(w, WS_OVER);
}

/* --- input --- */

static void on_frame(void *owner, enum ws_opcode op, struct span payload)
{
    struct ws *w = owner;

    switch (op) {
    case WS_TEXT:
    case WS_BINARY:
        if (w->state == WS_OPEN)
            w->on->message(w->owner, op, payload);
        break;
    case WS_PING:
        if (w->state == WS_OPEN) {
            ws_frame_put(stream_out(w->stream), w->role, WS_PONG, payload);
            stream_wrote(w->stream);
        }
        break;
    case WS_PONG:
        break; /* any received byte counts as a sign of life */
    case WS_CLOSE:
        if (w->state != WS_OVER)
            on_close_frame(w, payload);
        break;
    }
}

static void feed(struct ws *w, struct span chunk)
{
    w->heard = true;
    int code = ws_decoder_feed(&w->decoder, chunk, on_frame, w);
    if (code && w->state != WS_OVER) {
        const char *why = code == ERR_SIZE   ? "message too large"
                          : code == ERR_UTF8 ? "text that is not UTF-8"
                                             : "broken frame";
        fail(w, w->decoder.close_code, why);
    }
    if (w->decoder.message.n || w->input.bytes)
        holding_set(&w->input, w->decoder.message.n ? w->decoder.message.cap : 0);
}

static void feed_early(struct deferred *d)
{
    struct ws *w = CONTAINER_OF(d, struct ws, later);
    BUF_SCOPED early = w->early;

    w->early = (struct buf){0};
    if (w->state == WS_OPEN || w->state == WS_CLOSING)
        feed(w, buf_view(&early));
}

static void on_data(void *owner, struct span chunk)
{
    struct ws *w = owner;

    if (w->state == WS_DIALING)
        ws_dial_data(w, chunk);
    else if (w->early.n)
        buf_span(&w->early, chunk); /* fed together with `early` at the end of this turn */
    else if (w->state != WS_OVER)
        feed(w, chunk);
}

static void on_closed(void *owner, const char *reason)
{
    struct ws *w = owner;

    ws_note_end(w, 1006, reason);
    log_debug("ws", "%s: %u %s", stream_name(w->stream), w->code, w->reason);
    ws_finalize(w);
}

const struct stream_events ws_stream_events = {.data = on_data, .closed = on_closed};

void ws_open(struct ws *w, struct span early)
{
    w->state = WS_OPEN;
    stream_set_limit(w->stream, w->options.queue_limit ? w->options.queue_limit : STREAM_LIMIT);
    timer_clear(loop_timers(w->loop), &w->timer);
    if (w->options.ping_every)
        timer_set(loop_timers(w->loop), &w->timer, w->options.ping_every);
    if (early.n) {
        buf_span(&w->early, early);
        loop_defer(w->loop, &w->later, feed_early);
    }
}

void ws_acknowledge(const struct ws *w)
{
    if (w->stream)
        stream_acknowledge(w->stream);
}

/* --- time --- */

/* Has the peer taken some of the queued output since the last check? */
static bool is_taking(struct ws *w)
{
    size_t queued = stream_queued(w->stream);
    bool progress = queued && queued < w->queued;

    w->queued = queued;
    return progress;
}

/*
 * Ping, unless the last two pings got nothing back. A ping waits behind the queued output: a peer
 * that is still taking that output is alive as well.
 */
static void check_life(struct ws *w)
{
    bool taking = is_taking(w);

    if (w->heard || taking)
        w->pings = 0;
    w->heard = false;
    if (w->pings == MISSED_PINGS) {
        ws_abort(w, "no answer to pings");
        return;
    }
    w->pings++;
    ws_frame_put(stream_out(w->stream), w->role, WS_PING, SPAN_EMPTY);
    stream_wrote(w->stream);
    timer_set(loop_timers(w->loop), &w->timer, w->options.ping_every);
}

static void on_timer(struct timer *t)
{
    struct ws *w = CONTAINER_OF(t, struct ws, timer);

    switch (w->state) {
    case WS_DIALING:
        ws_note_end(w, 1006, "the server did not answer in time");
        ws_dial_cancel(w);
        break;
    case WS_OPEN:
        check_life(w);
        break;
    case WS_CLOSING:
    case WS_OVER:
        if (is_taking(w))
            timer_set(loop_timers(w->loop), t, CLOSE_MS);
        else
            stream_close(w->stream, "the peer did not close in time");
        break;
    }
}

/* --- output --- */

struct buf *ws_begin(struct ws *w)
{
    w->framing = w->state == WS_OPEN;
    if (!w->framing)
        return &w->nowhere;
    w->frame_at = ws_frame_begin(stream_out(w->stream), w->role);
    return stream_out(w->stream);
}

void ws_end(struct ws *w, enum ws_opcode op)
{
    if (!w->framing) {
        buf_reset(&w->nowhere, NOWHERE_KEEP);
        return;
    }
    w->framing = false;
    ws_frame_end(stream_out(w->stream), w->role, op, w->frame_at);
    stream_wrote(w->stream);
}

void ws_send(struct ws *w, enum ws_opcode op, struct span payload)
{
    if (w->state != WS_OPEN)
        return;
    ws_frame_put(stream_out(w->stream), w->role, op, payload);
    stream_wrote(w->stream);
}

const char *ws_peer(const struct ws *w)
{
    return w->stream ? stream_name(w->stream) : "?";
}

int ws_refused_with(const struct ws *w)
{
    return w->refused_with;
}
