/*
 * stream: an open byte pipe on the loop (TCP, Unix socket, pipe, terminal).
 *
 * Output is appended to one buffer and written when that has some kilobytes, else at the end of the
 * loop's turn; order is kept. Input arrives as chunks in a buffer that the whole loop shares: the
 * chunk is valid only inside the callback. A stream whose reader is too slow (more than the limit
 * queued) is closed with that reason.
 *
 * Life: listen, connect, child or stdio gives you an open stream; you set events; when the stream
 * ends, by the peer, by an error or by your stream_close, `closed` is called exactly once, never
 * from inside stream_close or stream_write but from the loop; the stream is freed when `closed`
 * returns.
 */
#ifndef RIALTO_IO_STREAM_H
#define RIALTO_IO_STREAM_H

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"
#include "io/reach.h"

struct stream;

struct stream_events {
    void (*data)(void *owner, struct span chunk);
    /* The peer sent EOF. Output may still be sent. Without this callback EOF closes the stream, as
     * soon as the queued output is written (often EOF comes in the same turn as the last
     * request). */
    void (*eof)(void *owner);
    /* Queued output fell below the low watermark after having passed the high one. May be NULL. */
    void (*drained)(void *owner);
    /* The end; the stream is freed after this returns. `reason` is for the log and for people. */
    void (*closed)(void *owner, const char *reason);
};

enum { STREAM_HIGH_WATER = 1024 * 1024, STREAM_LIMIT = 64 * 1024 * 1024 };

/* From here on `owner` gets the events; reading starts. */
void stream_start(struct stream *s, const struct stream_events *on, void *owner);
/* Hand the stream over to another owner (WebSocket upgrade). */
void stream_rebind(struct stream *s, const struct stream_events *on, void *owner);

/* Queue bytes. No error is reported here: a broken stream calls `closed`. */
void stream_write(struct stream *s, struct span bytes);
/* The output buffer itself, to append to directly; call stream_wrote afterwards. */
struct buf *stream_out(struct stream *s);
void stream_wrote(struct stream *s);
/* Bytes that wait to be written. */
size_t stream_queued(const struct stream *s);
/* stream_queued, and the bytes in the kernel that the peer has not read (TCP: not acknowledged). */
size_t stream_unread(const struct stream *s);
/* Bytes that the peer has read (TCP: acknowledged) so far. A system call: not for every message. */
uint64_t stream_taken(const struct stream *s);
/*
 * For a message to which nothing will be said soon (TCP only): the kernel acknowledges it now. It
 * would do so by a timer, and acknowledge every later message at once, with a packet of its own
 * that the peer has to handle while it is sending.
 */
void stream_acknowledge(const struct stream *s);
/* More than STREAM_HIGH_WATER waits: `drained` will be called, or `closed`. */
bool stream_is_high(const struct stream *s);
/* Queue limit in bytes; beyond it the stream is cut ("reader too slow"). */
void stream_set_limit(struct stream *s, size_t bytes);

/* Capacity that the output buffer keeps when it is written out, instead of the small default: for
 * the few streams that carry much. */
void stream_set_keep(struct stream *s, size_t bytes);

/* Stop and resume reading: only for streams that carry one peer's messages. */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);

/* Send EOF after the queued output; reading goes on. */
void stream_shutdown(struct stream *s);
/* Drop the queued output and close; `closed` follows with this reason. */
void stream_close(struct stream *s, const char *reason);
/* Close once the queued output is written, or after `wait_ms`. */
void stream_finish(struct stream *s, const char *reason, uint64_t wait_ms);
/* The same for an owner that gets no more callbacks, not even `closed`; with 0 the stream closes at
 * once. */
void stream_abandon(struct stream *s, const char *reason, uint64_t wait_ms);

/* "127.0.0.1:5123", "unix:/run/x.sock", "pipe": for logs. */
const char *stream_name(const struct stream *s);
/* Is this host ("192.0.2.7", "[2001:db8::7]") our end of a TCP connection? */
bool stream_is_to(const struct stream *s, struct span host);
/* Is the process at the other end of a Unix socket of our own user or of root? False for any other
 * stream. */
MUST_CHECK bool stream_peer_is_own_user(const struct stream *s);
/* Is the peer a child of this loop or a process that descends from one? Also true if the peer is
 * gone already; false for any stream but a Unix socket. Call it right after the peer connected. */
MUST_CHECK bool stream_peer_is_kin(const struct stream *s);
/* The same for TCP connections within this machine, at any time; reads all of /proc. A process to
 * which the descriptor is still on its way (SCM_RIGHTS) is not found. */
MUST_CHECK bool stream_is_held_by_kin(const struct stream *s);
/* Is the peer of a TCP connection within this machine a process of our own user or of root, and
 * none of our children? True for Unix sockets. */
MUST_CHECK bool stream_is_held_by_us(const struct stream *s);

/* The process's own stdin and stdout as one stream; stdout may be written even after stdin's EOF.
 * Descriptors 0 and 1 are /dev/null from now on, so that no other output gets into the protocol. */
struct stream *stream_stdio(struct loop *l);
/* Our end of a TCP connection: "127.0.0.1:443"; `out` has ADDRESS_TEXT_SIZE bytes. */
void stream_put_local(const struct stream *s, char *out);
/* The descriptor of a socket, to be passed to another process; -1 when there is none. */
int stream_descriptor(const struct stream *s);
/* Wrap connected descriptors (socket, pipe, file), which the stream owns from now on. Both may be
 * the same; -1 = that direction is closed. */
struct stream *stream_from_fds(struct loop *l, int in_fd, int out_fd, const char *name);

/*
 * Connect to "HOST:PORT" or "unix:PATH". `done` gets the stream (call stream_start inside the
 * callback or later in this turn), or NULL and a negative code. Returns a handle for cancelling;
 * cancelled connects never call `done`. The handle is gone once `done` was called.
 */
struct connect;
struct connect *stream_connect(struct loop *l, const char *address,
                               void (*done)(void *owner, struct stream *s, int code), void *owner);
/* The same, but only to where `reach` allows (borrowed until `done`; NULL = anywhere). */
struct connect *stream_connect_within(struct loop *l, const struct reach *reach,
                                      const char *address,
                                      void (*done)(void *owner, struct stream *s, int code),
                                      void *owner);
void stream_connect_cancel(struct connect *c);

#endif
