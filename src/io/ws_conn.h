/*
 * ws_conn: the inside of a WebSocket connection, for ws.c (frames, pings, closing), ws_accept.c
 * (the server's handshake) and ws_connect.c (the client's).
 */
#ifndef RIALTO_IO_WS_CONN_H
#define RIALTO_IO_WS_CONN_H

#include "io/ws.h"

enum ws_state {
    WS_DIALING, /* a client whose handshake is not done */
    WS_OPEN,
    WS_CLOSING, /* our close frame is out, the peer's has not come */
    WS_OVER,    /* input is dropped: waiting for the end of the stream */
};

struct ws_dial;

struct ws {
    struct loop *loop;
    const struct ws_events *on;
    void *owner;
    struct ws_options options;
    enum ws_role role;
    enum ws_state state;
    struct stream *stream; /* NULL while a client connects */
    struct ws_dial *dial;  /* only while WS_DIALING */
    struct ws_decoder decoder;
    struct holding input;  /* memory of an incomplete message */
    struct buf early;      /* bytes that came behind the handshake; fed at the end of the turn */
    struct deferred later; /* feeds `early`; ends a connection that has no stream */
    struct timer timer;    /* by state: the handshake's limit, the next ping, the closing's limit */

    bool framing;       /* between ws_begin and ws_end, into the stream */
    size_t frame_at;    /* where the frame being written starts */
    struct buf nowhere; /* takes messages that cannot be sent */

    bool heard;    /* bytes came since the last check */
    int pings;     /* pings sent since bytes came last */
    size_t queued; /* queued output at the last check */

    uint16_t code; /* of the first close; 0 = none yet */
    char *reason;
    int refused_with;
};

/* A new connection of either role; it has no stream yet and is WS_DIALING. */
struct ws *ws_new(struct loop *l, enum ws_role role, const struct ws_options *options,
                  const struct ws_events *on, void *owner);
extern const struct stream_events ws_stream_events;
/* The handshake is done: frames from now on. `early` has the bytes that arrived behind the
 * handshake. */
void ws_open(struct ws *w, struct span early);
/* Records code and reason of the end; later calls change nothing. */
void ws_note_end(struct ws *w, uint16_t code, const char *reason);
/* Call the owner's `closed` and free; only from the loop. */
void ws_finalize(struct ws *w);

/* --- ws_connect.c --- */
/* Bytes of the server's answer. */
void ws_dial_data(struct ws *w, struct span chunk);
/* Give up connecting; `closed` follows. */
void ws_dial_cancel(struct ws *w);
void ws_dial_free(struct ws_dial *d);

#endif
