/* TLS on a stream: plain output encrypted, input decrypted, the handshake's time limit. Called by
 * stream.c for each read and write, switched on by http_server.c, ws_connect.c, bus/amqp.c and
 * bus/nats_link.c. */
#include "io/stream_uv.h"
#include "io/tls.h"

#include "base/mem.h"

enum {
    PIECE_MAX = 256 * 1024, /* most plain bytes encrypted at once: like a slice in stream.c */
    SEALED_KEEP = 1024,
    LAST_WORD_MS = 2000, /* time for the peer to read our alert */
};

/* --- output --- */

size_t stream_tls_queued(const struct stream *s)
{
    return s->secure->plain.n - s->secure->plain_at;
}

bool stream_tls_holds(const struct stream *s)
{
    return s->out.n > 0 || stream_tls_queued(s) > 0;
}

struct buf *stream_tls_next(struct stream *s)
{
    struct secure *x = s->secure;

    if (!stream_tls_queued(s) && s->out.n) {
        struct buf used = x->plain;
        x->plain = s->out;
        x->plain_at = 0;
        s->out = used;
        buf_reset(&s->out, SEALED_KEEP);
    }
    x->plain_at += tls_write(x->tls, span_cut(buf_view(&x->plain), x->plain_at, PIECE_MAX));
    if (!stream_tls_queued(s)) {
        buf_reset(&x->plain, SEALED_KEEP);
        x->plain_at = 0;
    }
    if ((s->shut || s->finishing) && !stream_tls_holds(s) && !x->ended) {
        x->ended = true;
        tls_end(x->tls);
    }
    tls_take_output(x->tls, &x->sealed);
    return &x->sealed;
}

struct span stream_tls_goodbye(struct stream *s)
{
    struct secure *x = s->secure;

    timer_clear(loop_timers(s->loop), &x->handshake);
    /* In the middle of a record close_notify would be garbage. */
    if (x->ended || s->slice || s->flight_at < s->flight.n || x->sealed.n)
        return SPAN_EMPTY;
    x->ended = true;
    tls_end(x->tls);
    tls_take_output(x->tls, &x->sealed);
    return buf_view(&x->sealed);
}

/* --- input --- */

/* The connection cannot go on. Queued output is dropped; the peer gets an alert, the owner the
 * reason. */
static void give_up(struct stream *s)
{
    struct secure *x = s->secure;

    timer_clear(loop_timers(s->loop), &x->handshake);
    buf_reset(&s->out, 0);
    buf_reset(&x->plain, 0);
    x->plain_at = 0;
    x->ended = true;
    tls_take_output(x->tls, &x->sealed); /* the alert */
    if (tls_is_plain_http(x->tls) && x->plain_answer) {
        buf_reset(&x->sealed, SEALED_KEEP);
        buf_str(&x->sealed, x->plain_answer);
    }
    if (x->client) {
        stream_finish(s, tls_why(x->tls), LAST_WORD_MS);
        return;
    }
    /* Closing with the client's bytes unread would reset the connection and lose our answer. */
    stream_shutdown(s);
    stream_drain(s, tls_why(x->tls), LAST_WORD_MS);
}

/*
 * Give the owner what has arrived, until the owner pauses. Inside the callback anything may happen
 * to the stream, except that it is freed.
 */
static void pump(struct stream *s)
{
    struct secure *x = s->secure;
    ssize_t n = TLS_MORE;

    while (!s->closing && !s->paused && !s->at_eof) {
        /* tls_feed copied the bytes, so the shared buffer is free again. */
        n = tls_read(x->tls, s->loop->read_buffer, LOOP_READ_SIZE);
        if (n <= 0)
            break;
        if (!s->finishing && !s->draining)
            s->on->data(s->owner, span_of(s->loop->read_buffer, (size_t)n));
    }
    if (s->closing)
        return;
    if (tls_is_ready(x->tls))
        timer_clear(loop_timers(s->loop), &x->handshake);
    if (n == TLS_BROKEN && !s->draining && !s->finishing)
        give_up(s);
    /* Output of TLS itself counts as well: a peer can ask for new keys again and again without
     * reading the answers. */
    if (stream_queued(s) + tls_output(x->tls) > s->limit) {
        stream_close(s, "reader too slow");
        return;
    }
    stream_flush_later(s); /* answers of the handshake, and output that waited for the handshake */
    if (n == TLS_END)
        stream_at_eof(s);
}

static void pump_later(struct deferred *d)
{
    pump(CONTAINER_OF(d, struct stream, later));
}

void stream_tls_receive(struct stream *s, struct span bytes)
{
    tls_feed(s->secure->tls, bytes);
    pump(s);
}

void stream_tls_resume(struct stream *s)
{
    if (!s->closing && tls_has_input(s->secure->tls))
        loop_defer(s->loop, &s->later, pump_later);
}

void stream_tls_eof(struct stream *s)
{
    if (!tls_is_ready(s->secure->tls) && !s->draining)
        stream_close(s, "TLS: the peer closed the connection during the handshake");
    else
        stream_at_eof(s);
}

/* --- life --- */

static void on_handshake_late(struct timer *t)
{
    struct secure *x = CONTAINER_OF(t, struct secure, handshake);

    stream_close(x->stream, "TLS: the peer did not complete the handshake in time");
}

void stream_secure(struct stream *s, const struct tls_context *c, const char *host,
                   const char *plain_answer, uint64_t wait_ms)
{
    struct secure *x = MEM_NEW(struct secure);

    x->stream = s;
    x->tls = tls_new(c, host);
    x->client = host != NULL;
    x->plain_answer = plain_answer;
    x->handshake.fire = on_handshake_late;
    s->secure = x;
    timer_set(loop_timers(s->loop), &x->handshake, wait_ms);
    stream_flush_later(s); /* a client speaks first */
}

bool stream_is_secure(const struct stream *s)
{
    return s->secure || s->posed;
}

void stream_tls_free(struct stream *s)
{
    struct secure *x = s->secure;

    if (!x)
        return;
    tls_free(x->tls);
    buf_fini(&x->plain);
    buf_fini(&x->sealed);
    mem_free(x);
}
