/*
 * stream_uv: the inside of struct stream, for the files of io/ only.
 *
 * A stream has one end (a socket, both ways) or two (a pipe to read from and one to write to). An
 * end is a libuv handle or a file, which the kernel cannot poll and which is read and written
 * synchronously. The struct is freed when its last libuv handle has given its close callback.
 */
#ifndef RIALTO_IO_STREAM_UV_H
#define RIALTO_IO_STREAM_UV_H

#include "io/loop_uv.h"
#include "io/stream.h"

enum stream_end_kind { END_NONE, END_UV, END_FILE };

struct stream_end {
    enum stream_end_kind kind;
    int fd;          /* END_FILE */
    int fl_restored; /* file status flags to put back at close, -1 = none: see stream_stdio */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
};

/* What a stream with TLS has in addition. Its `out` is plain text, its `flight` is encrypted. */
struct secure {
    struct stream *stream;
    struct tls *tls;
    struct timer handshake;   /* time limit of the handshake; cleared when the handshake is done */
    struct buf plain;         /* being encrypted: swapped with `out` when used up */
    size_t plain_at;          /* bytes of `plain` that are encrypted */
    struct buf sealed;        /* encrypted bytes, to be written next */
    const char *plain_answer; /* to a client that speaks HTTP without TLS; may be NULL */
    bool client;
    bool ended; /* our close_notify is sent: nothing may follow */
};

struct stream {
    struct loop *loop;
    const struct stream_events *on; /* NULL until started */
    void *owner;
    struct deferred flush; /* queued while `out` has bytes to write */
    struct deferred later; /* the next read of a file, or of what TLS holds; the end of a stream
                              without handles */
    struct timer deadline; /* of stream_finish and stream_drain */

    struct buf out;    /* callers append here */
    struct buf flight; /* libuv writes from here: never moved, only swapped in when empty */
    size_t flight_at;  /* bytes of `flight` that are written */
    size_t slice;      /* bytes of `flight` that libuv is writing */
    uint64_t written;  /* bytes that the kernel has taken, without those of the slice */
    size_t limit;
    size_t keep;            /* capacity that `out` keeps: see stream_set_keep */
    struct holding waiting; /* the memory of output that waits for the reader */
    bool appending;         /* the owner writes into `out`: between stream_out and stream_wrote */
    uv_write_t write;

    struct secure *secure; /* NULL without TLS */
    char *posed;           /* our address in the TLS connection that this one stands for; or NULL */

    bool paused, at_eof;
    bool high;           /* passed the high watermark; `drained` must be called */
    bool shut, shut_out; /* EOF is to follow the output; EOF has been sent */
    bool finishing;      /* close once all is written; input is thrown away */
    bool draining;       /* close at EOF */
    bool looked_again;   /* the deadline was extended once, to read the last input */
    bool closing;

    unsigned n_messages; /* in `out`, since output was last written */
    unsigned handles;    /* libuv handles that have not given their close callback */
    char *name;
    char *reason;
    void (*gone)(void *arg);
    void *gone_arg;
    struct stream_end in;   /* reads; a socket writes here as well */
    struct stream_end back; /* writes, if that is another descriptor than `in` */
};

struct stream *stream_new(struct loop *l);
/* A stream with an unconnected socket for uv_accept or a connect to fill; stream_close frees it. */
struct stream *stream_new_socket(struct loop *l, bool tcp);
/* A socket that another process of ours had accepted. `name` is for Unix sockets. */
struct stream *stream_from_socket(struct loop *l, int fd, bool tcp, const char *name);
/* The stream stands for a TLS connection that another process has; `local` is our address in that
 * connection. */
void stream_pose(struct stream *s, const char *local);
/* The socket is connected now: set its TCP options and its name. `name` is for Unix sockets. */
void stream_connected(struct stream *s, const char *name);

/* The peer has sent its last byte. */
void stream_at_eof(struct stream *s);
/* The peer connected to us: the stream is cut when its output takes too much of limits.memory. */
void stream_accepted(struct stream *s);
/* Output waits: write it at the end of the turn. */
void stream_flush_later(struct stream *s);

/* --- stream_tls.c: of streams with `secure` --- */
/* Bytes from the socket; the decrypted bytes go to the owner. */
void stream_tls_receive(struct stream *s, struct span bytes);
/* Reading goes on after a pause: give the owner what has already arrived. */
void stream_tls_resume(struct stream *s);
/* The socket is at EOF. */
void stream_tls_eof(struct stream *s);
/* The encrypted bytes to write next, a part of the output at a time; empty when there are none
 * now. */
struct buf *stream_tls_next(struct stream *s);
/* Is there output that waits for the handshake? */
bool stream_tls_holds(const struct stream *s);
/* Plain bytes that were taken out of `out` and are not encrypted yet. */
size_t stream_tls_queued(const struct stream *s);
/* The stream closes now: the close_notify, if it can be sent at once. */
struct span stream_tls_goodbye(struct stream *s);
void stream_tls_free(struct stream *s);

/* Call `gone` right after `closed`, the last thing before the stream is freed. */
void stream_on_gone(struct stream *s, void (*gone)(void *arg), void *arg);
/* Close at EOF, which may have come already, or after `wait_ms`. */
void stream_drain(struct stream *s, const char *reason, uint64_t wait_ms);

#endif
