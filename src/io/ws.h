/*
 * ws: a WebSocket connection on the loop, in either role.
 *
 * A server makes one out of an HTTP exchange (ws_accept), a client by connecting (ws_connect). It
 * joins fragments, answers pings, pings by itself and gives up a peer that stays silent, and does
 * the closing handshake with a time limit. Output queued for a slow reader is bounded: past the
 * limit the connection is cut.
 *
 * Life: `closed` is called exactly once, always from the loop and never from inside a function of
 * this header; the connection is freed when `closed` returns. Until then every call is safe:
 * messages sent before a client's `opened` or after closing began are dropped.
 */
#ifndef RIALTO_IO_WS_H
#define RIALTO_IO_WS_H

#include "io/http_server.h"
#include "wire/ws.h"

struct ws;

struct ws_events {
    /* The client's handshake is done: messages may be sent. May be NULL; servers never get it. */
    void (*opened)(void *owner);
    /* A whole message, WS_TEXT (valid UTF-8) or WS_BINARY; not after ws_close. */
    void (*message)(void *owner, enum ws_opcode op, struct span payload);
    /*
     * The end. `code` is that of the side that closed first: the peer's (1005: the peer gave none),
     * ours, or 1006 when the connection broke, was cut or was never established. `reason` is for
     * the log.
     */
    void (*closed)(void *owner, uint16_t code, const char *reason);
};

enum { WS_PING_MS = 30 * 1000 };

struct ws_options {
    size_t max_message;  /* bytes; a larger message ends the connection with 1009 */
    size_t queue_limit;  /* bytes that may wait for a slow reader; 0 = STREAM_LIMIT */
    uint64_t ping_every; /* ms; the connection ends after two pings without reply; 0 = no pings */
};

/* --- server --- */

/* Does the request ask for a WebSocket? */
bool ws_is_wanted(const struct http_request *req);
/*
 * Answer the request with 101 and take the connection over. The first of `protocols` (ours, in
 * order of preference, NULL-terminated) that the client offers is chosen. A client that offers none
 * gets none; one that offers only others is refused, unless `protocols` is NULL: then all clients
 * are accepted and no protocol is chosen. Returns NULL when the request was refused; the answer is
 * sent then.
 */
struct ws *ws_accept(struct loop *l, struct http_exchange *x, const struct http_request *req,
                     const char *const *protocols, const struct ws_options *options,
                     const struct ws_events *on, void *owner);

/* --- client --- */

struct ws_target {
    const char *url;     /* ws:// or wss://HOST[:PORT][/PATH][?QUERY] */
    const char *ca;      /* file of authorities to trust (wss); NULL = the system's */
    const char *address; /* connect to this ("unix:PATH"), not to the URL's host; or NULL */
    const char *const *protocols; /* to offer, NULL-terminated; NULL = none */
    struct span headers;          /* more header lines of the handshake ("Name: value\r\n") */
    uint64_t timeout;             /* ms until `opened`; 0 = 10 s */
    const struct reach *reach;    /* where the connection may go; borrowed; NULL = anywhere */
};

/*
 * Connect. Everything in `target` but `reach` is copied. A server that chooses no protocol is
 * accepted, one that chooses a protocol that was not offered is not. NULL, with `err` filled, only
 * for a wrong URL or a file of authorities that cannot be read.
 */
struct ws *ws_connect(struct loop *l, const struct ws_target *target,
                      const struct ws_options *options, const struct ws_events *on, void *owner,
                      struct err *err);
/* The HTTP status by which the server refused the handshake; 0 if the server did not refuse. */
int ws_refused_with(const struct ws *w);

/* --- both --- */

const char *ws_peer(const struct ws *w);

void ws_send(struct ws *w, enum ws_opcode op, struct span payload);
/*
 * The same without a copy: append the message to the buffer that begin returns, then call end. No
 * other function may be called for this connection between the two.
 */
struct buf *ws_begin(struct ws *w);
void ws_end(struct ws *w, enum ws_opcode op);

/* stream_acknowledge, for a message to which nothing will be said soon. */
void ws_acknowledge(const struct ws *w);

/*
 * Send a close frame after the queued output and wait a short time for the peer's. `reason` is
 * shown to the peer and given to `closed`. May be called at any time, and twice.
 */
void ws_close(struct ws *w, uint16_t code, const char *reason);
/* Close at once, without a handshake; `closed` follows, with 1006 unless closing had begun. */
void ws_abort(struct ws *w, const char *reason);

#endif
