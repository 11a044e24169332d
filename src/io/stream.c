/* Reading, writing and closing an open stream: output queue, limits, pausing, EOF. Called by the
 * owners of streams: HTTP and WebSocket connections, children, bus connections, stdio. */
#include "io/stream_uv.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    OUT_KEEP = 1024,        /* capacity that an idle stream may keep */
    SPARE_KEEP = 64 * 1024, /* capacity that the loop's spare buffer may keep */
    SLICE_MAX = 256 * 1024, /* most bytes handed to libuv at once */
    LOW_WATER = STREAM_HIGH_WATER / 4,
    /* So much is written before the end of the turn: the reader can start while we go on. Several
     * messages at least, unless they are large, because each write costs as much as reading one. */
    WRITE_FROM = 4 * 1024,
    WRITE_MESSAGES = 4,
    WRITE_LARGE = 32 * 1024,
    COUNT_FROM = 64 * 1024, /* less output than this is counted only at the end of the turn */
    EOF_FLUSH_MS = 1000,    /* time for answers to reach a peer that has sent EOF */
};

struct stream *stream_new(struct loop *l)
{
    struct stream *s = MEM_NEW(struct stream);
    s->loop = l;
    s->limit = STREAM_LIMIT;
    s->keep = OUT_KEEP;
    holding_init(&s->waiting, &l->holdings, NULL);
    s->in.fl_restored = s->back.fl_restored = -1;
    return s;
}

static struct stream_end *writer(struct stream *s)
{
    return s->back.kind == END_NONE ? &s->in : &s->back;
}

/* --- the end --- */

static void finalize(struct stream *s)
{
    if (s->on)
        s->on->closed(s->owner, s->reason);
    if (s->gone)
        s->gone(s->gone_arg);
    stream_tls_free(s);
    buf_fini(&s->out);
    buf_fini(&s->flight);
    mem_free(s->name);
    mem_free(s->posed);
    mem_free(s->reason);
    mem_free(s);
}

static void finalize_later(struct deferred *d)
{
    finalize(CONTAINER_OF(d, struct stream, later));
}

static void on_end_closed(uv_handle_t *handle)
{
    struct stream *s = handle->data;
    loop_enter(s->loop);
    s->handles--;
    if (s->closing && s->handles == 0)
        finalize(s);
}

static void end_close(struct stream_end *end)
{
    if (end->kind == END_UV) {
        uv_os_fd_t fd;
        if (end->fl_restored >= 0 && uv_fileno(&end->uv.handle, &fd) == 0)
            fcntl(fd, F_SETFL, end->fl_restored);
        uv_close(&end->uv.handle, on_end_closed);
    } else if (end->kind == END_FILE) {
        close(end->fd);
    }
    end->kind = END_NONE;
}

static void set_reason(struct stream *s, const char *reason)
{
    if (!s->reason)
        s->reason = mem_str(reason ? reason : "closed");
}

/* Send TLS's close_notify, if the kernel takes it at once. */
static void say_goodbye(struct stream *s)
{
    struct span last = stream_tls_goodbye(s);
    uv_buf_t part = uv_buf_init((char *)(uintptr_t)last.p, (unsigned)last.n);

    if (last.n && s->in.kind == END_UV)
        (void)uv_try_write(&s->in.uv.stream, &part, 1);
}

void stream_close(struct stream *s, const char *reason)
{
    if (s->closing)
        return;
    s->closing = true;
    holding_set(&s->waiting, 0);
    if (s->secure)
        say_goodbye(s);
    set_reason(s, reason);
    timer_clear(&s->loop->timers, &s->deadline);
    loop_undefer(&s->flush);
    loop_undefer(&s->later);
    end_close(&s->in);
    end_close(&s->back);
    if (s->handles == 0)
        loop_defer(s->loop, &s->later, finalize_later);
}

static void fail(struct stream *s, int code)
{
    stream_close(s, uv_strerror(code));
}

static void on_deadline(struct timer *t)
{
    struct stream *s = CONTAINER_OF(t, struct stream, deadline);

    /* After a long turn the timer fires before input that waits in the kernel is read: wait once
     * more. */
    if (s->draining && !s->looked_again) {
        s->looked_again = true;
        timer_set(&s->loop->timers, t, 1);
        return;
    }
    stream_close(s, s->reason);
}

static void close_within(struct stream *s, const char *reason, uint64_t wait_ms)
{
    set_reason(s, reason);
    s->deadline.fire = on_deadline;
    timer_set(loop_timers(s->loop), &s->deadline, wait_ms);
}

/* --- output --- */

size_t stream_queued(const struct stream *s)
{
    size_t inside = s->secure ? stream_tls_queued(s) : 0;

    return s->out.n + inside + s->flight.n - s->flight_at;
}

/* Bytes that the kernel has taken, and that the peer has not read (TCP: not acknowledged). */
static size_t unread(const struct stream *s)
{
    const struct stream_end *end = s->back.kind == END_NONE ? &s->in : &s->back;
    uv_os_fd_t fd;
    int n = 0;

    if (end->kind != END_UV || uv_fileno(&end->uv.handle, &fd) < 0)
        return 0;
    /* On the writing end of a pipe, FIONREAD gives the bytes in the pipe. */
    if (ioctl(fd, SIOCOUTQ, &n) < 0 && ioctl(fd, FIONREAD, &n) < 0)
        return 0;
    return (size_t)n;
}

size_t stream_unread(const struct stream *s)
{
    return stream_queued(s) + (s->closing ? 0 : unread(s));
}

uint64_t stream_taken(const struct stream *s)
{
    const struct stream_end *end = s->back.kind == END_NONE ? &s->in : &s->back;
    size_t left = s->slice ? end->uv.stream.write_queue_size : 0;

    return s->written + s->slice - left - unread(s);
}

bool stream_is_high(const struct stream *s)
{
    return s->high;
}

static void cut(struct holding *h, const char *why)
{
    struct stream *s = CONTAINER_OF(h, struct stream, waiting);

    log_warn("memory", "%s was cut: %s", stream_name(s), why);
    stream_close(s, why);
    if (!s->appending)
        buf_fini(&s->out); /* at once: this turn may still write much to other streams */
}

void stream_accepted(struct stream *s)
{
    s->waiting.let_go = cut;
}

/* Counts the capacity of the buffers, not only the bytes. May close this stream, or others. */
static void count_waiting(struct stream *s)
{
    size_t queued = stream_queued(s);

    if (queued < s->out.cap + s->flight.cap)
        queued = queued ? s->out.cap + s->flight.cap : 0;
    if (!s->closing)
        holding_set(&s->waiting, queued);
}

/* Everything is written: send EOF or close, if that is wanted. */
static void written_out(struct stream *s)
{
    if (s->finishing) {
        stream_close(s, s->reason);
    } else if (s->shut && !s->shut_out) {
        uv_os_fd_t fd;
        s->shut_out = true;
        /* The peer of a socket sees EOF by this call, the peer of a pipe when our end is closed. */
        if (writer(s)->kind == END_UV && uv_fileno(&writer(s)->uv.handle, &fd) == 0)
            shutdown(fd, SHUT_WR);
        end_close(&s->back);
    }
}

/* Called only from the loop: `drained` may do anything, even close the stream. */
static void note_progress(struct stream *s)
{
    if (s->high && !s->closing && stream_queued(s) < LOW_WATER) {
        s->high = false;
        if (s->on && s->on->drained && !s->finishing)
            s->on->drained(s->owner);
    }
}

static void flush(struct stream *s);

static void on_written(uv_write_t *req, int status)
{
    struct stream *s = CONTAINER_OF(req, struct stream, write);

    loop_enter(s->loop);
    s->flight_at += s->slice;
    s->written += s->slice;
    s->slice = 0;
    if (s->closing)
        return;
    if (status < 0) {
        fail(s, status);
        return;
    }
    s->waiting.since = s->loop->timers.now; /* the peer does read */
    flush(s);
    count_waiting(s);
    note_progress(s);
}

/*
 * Give libuv the next part of the flight buffer. Slices keep stream_queued up to date; libuv tries
 * to write at once and calls back in the next turn, never from in here.
 */
static void write_slice(struct stream *s)
{
    size_t left = s->flight.n - s->flight_at;
    s->slice = left < SLICE_MAX ? left : SLICE_MAX;
    uv_buf_t part = uv_buf_init(s->flight.p + s->flight_at, (unsigned)s->slice);
    int code = uv_write(&s->write, &writer(s)->uv.stream, &part, 1, on_written);
    if (code < 0) {
        s->slice = 0;
        fail(s, code);
    }
}

/* How many bytes the kernel took at once, or a negative code. */
static ssize_t write_now(struct stream_end *end, const char *p, size_t n)
{
    if (end->kind == END_UV) {
        size_t most = n < (1u << 30) ? n : 1u << 30;
        uv_buf_t part = uv_buf_init((char *)(uintptr_t)p, (unsigned)most);
        int written = uv_try_write(&end->uv.stream, &part, 1);
        return written == UV_EAGAIN ? 0 : written;
    }
    size_t done = 0;
    while (end->kind == END_FILE && done < n) {
        ssize_t part = write(end->fd, p + done, n - done);
        if (part < 0 && errno != EINTR)
            return -errno;
        done += part > 0 ? (size_t)part : 0;
    }
    return (ssize_t)n;
}

/* The buffer is written out: if it is larger than an idle stream may keep, the loop keeps it for
 * the next stream that writes, which then does not have to grow its own. */
static void release(struct stream *s, struct buf *b)
{
    struct loop *l = s->loop;

    b->n = 0;
    if (b->cap <= s->keep)
        return;
    if (b->cap > l->spare.cap && b->cap <= SPARE_KEEP) {
        struct buf smaller = l->spare;
        l->spare = *b;
        *b = smaller;
    }
    buf_fini(b);
}

/*
 * Write from a buffer what the kernel takes now and leave the rest to libuv: true when there is no
 * rest.
 */
static bool write_from(struct stream *s, struct buf *from)
{
    ssize_t n = from->n ? write_now(writer(s), from->p, from->n) : 0;

    s->written += n > 0 ? (size_t)n : 0;
    if (n < 0) {
        fail(s, (int)n);
    } else if ((size_t)n == from->n) {
        release(s, from);
        return true;
    } else {
        struct buf full = *from;
        *from = s->flight;
        s->flight = full;
        s->flight_at = (size_t)n;
        write_slice(s);
    }
    return false;
}

/* Makes no callback. */
static void flush(struct stream *s)
{
    s->n_messages = 0;
    if (s->slice)
        return;
    if (s->flight_at < s->flight.n) {
        write_slice(s);
        return;
    }
    buf_reset(&s->flight, 0);
    s->flight_at = 0;

    struct buf *from = &s->out;
    while (s->secure && (from = stream_tls_next(s))->n)
        if (!write_from(s, from))
            return;
    if (write_from(s, from) && !(s->secure && stream_tls_holds(s)))
        written_out(s);
}

static void on_flush(struct deferred *d)
{
    struct stream *s = CONTAINER_OF(d, struct stream, flush);
    flush(s);
    if (s->slice || s->secure || s->waiting.bytes)
        count_waiting(s);
    note_progress(s);
}

void stream_flush_later(struct stream *s)
{
    loop_flush_later(s->loop, &s->flush, on_flush);
}

struct buf *stream_out(struct stream *s)
{
    s->appending = true;
    if (!s->out.n && s->out.cap < s->loop->spare.cap) {
        struct buf own = s->out;
        s->out = s->loop->spare;
        s->loop->spare = own;
    }
    return &s->out;
}

static bool is_worth_a_write(const struct stream *s)
{
    return s->out.n >= (s->n_messages < WRITE_MESSAGES ? WRITE_LARGE : WRITE_FROM);
}

void stream_wrote(struct stream *s)
{
    s->appending = false;
    if (s->closing || s->shut_out) {
        buf_reset(&s->out, 0);
        return;
    }
    size_t queued = stream_queued(s);
    s->n_messages++;
    /* Much output in one turn means a slow reader only if the kernel does not take it. */
    if (is_worth_a_write(s) || queued > s->limit) {
        flush(s);
        queued = stream_queued(s);
    }
    if (queued > STREAM_HIGH_WATER)
        s->high = true;
    if (queued > s->limit)
        stream_close(s, "reader too slow");
    if (queued > COUNT_FROM || s->waiting.bytes)
        count_waiting(s);
    if (!s->closing)
        stream_flush_later(s);
}

void stream_write(struct stream *s, struct span bytes)
{
    buf_span(&s->out, bytes);
    stream_wrote(s);
}

void stream_set_limit(struct stream *s, size_t bytes)
{
    s->limit = bytes;
}

void stream_set_keep(struct stream *s, size_t bytes)
{
    s->keep = bytes;
}

void stream_shutdown(struct stream *s)
{
    if (s->closing || s->shut)
        return;
    s->shut = true;
    stream_flush_later(s);
}

void stream_finish(struct stream *s, const char *reason, uint64_t wait_ms)
{
    if (s->closing || s->finishing)
        return;
    s->finishing = true;
    close_within(s, reason, wait_ms);
    stream_flush_later(s);
}

static void nobody_data(void *owner, struct span chunk)
{
    (void)owner;
    (void)chunk;
}

static void nobody_closed(void *owner, const char *reason)
{
    (void)owner;
    (void)reason;
}

void stream_abandon(struct stream *s, const char *reason, uint64_t wait_ms)
{
    static const struct stream_events nobody = {.data = nobody_data, .closed = nobody_closed};

    stream_rebind(s, &nobody, NULL);
    if (wait_ms)
        stream_finish(s, reason, wait_ms);
    else
        stream_close(s, reason);
}

/* --- input --- */

void stream_at_eof(struct stream *s)
{
    if (s->at_eof)
        return; /* with TLS the end comes twice: by TLS, then by the socket */
    s->at_eof = true;
    if (s->draining)
        stream_close(s, s->reason);
    else if (s->finishing)
        return;
    else if (s->on->eof)
        s->on->eof(s->owner);
    else
        stream_finish(s, "closed by the peer", EOF_FLUSH_MS);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct stream *s = handle->data;
    (void)suggested;
    *buf = uv_buf_init(s->loop->read_buffer, LOOP_READ_SIZE);
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf)
{
    struct stream *s = handle->data;

    loop_enter(s->loop);
    if (n > 0 && s->secure) {
        stream_tls_receive(s, span_of(buf->base, (size_t)n));
    } else if (n > 0) {
        if (!s->finishing)
            s->on->data(s->owner, span_of(buf->base, (size_t)n));
    } else if (n == UV_EOF && s->secure) {
        stream_tls_eof(s);
    } else if (n == UV_EOF) {
        stream_at_eof(s);
    } else if (n < 0) {
        fail(s, (int)n);
    }
}

/* A file cannot be polled, but reading it does not block for long. One piece a turn. */
static void read_file(struct deferred *d)
{
    struct stream *s = CONTAINER_OF(d, struct stream, later);
    ssize_t n = read(s->in.fd, s->loop->read_buffer, LOOP_READ_SIZE);

    if (n < 0 && errno != EINTR) {
        fail(s, -errno);
        return;
    }
    if (n == 0) {
        stream_at_eof(s);
        return;
    }
    loop_defer(s->loop, &s->later, read_file);
    if (n > 0 && !s->finishing)
        s->on->data(s->owner, span_of(s->loop->read_buffer, (size_t)n));
}

static void read_start(struct stream *s)
{
    if (s->closing || s->at_eof || s->paused)
        return;
    if (s->in.kind == END_FILE) {
        loop_defer(s->loop, &s->later, read_file);
    } else if (s->in.kind == END_UV) {
        int code = uv_read_start(&s->in.uv.stream, on_alloc, on_read);
        if (code < 0)
            fail(s, code);
    }
}

void stream_start(struct stream *s, const struct stream_events *on, void *owner)
{
    stream_rebind(s, on, owner);
    read_start(s);
}

void stream_rebind(struct stream *s, const struct stream_events *on, void *owner)
{
    s->on = on;
    s->owner = owner;
}

void stream_pause(struct stream *s)
{
    if (s->paused || s->closing || s->draining)
        return;
    s->paused = true;
    if (s->in.kind == END_FILE || s->secure)
        loop_undefer(&s->later);
    if (s->in.kind == END_UV)
        uv_read_stop(&s->in.uv.stream);
}

void stream_resume(struct stream *s)
{
    if (!s->paused)
        return;
    s->paused = false;
    if (s->on)
        read_start(s);
    if (s->on && s->secure)
        stream_tls_resume(s);
}

const char *stream_name(const struct stream *s)
{
    return s->name ? s->name : "?";
}

void stream_on_gone(struct stream *s, void (*gone)(void *arg), void *arg)
{
    s->gone = gone;
    s->gone_arg = arg;
}

void stream_drain(struct stream *s, const char *reason, uint64_t wait_ms)
{
    if (s->closing)
        return;
    s->draining = true;
    if (s->at_eof)
        stream_close(s, reason);
    else
        close_within(s, reason, wait_ms);
}
