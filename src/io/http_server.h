/*
 * http_server: HTTP/1.1 connections on the loop.
 *
 * Keep-alive, pipelining (one request at a time, in order), streaming responses, an upgrade hook,
 * and timers for head, body and idling. The handler gets an *exchange* when a request is complete
 * and answers it now or later, whole or as a stream. If the client goes away first, the exchange's
 * `gone` callback is called; after that, or after the answer is complete, the exchange may not be
 * touched any more.
 *
 * Nouns: http_server_, http_exchange_, http_respond_, http_stream_, http_refuse_.
 * Nouns: http_upgrade_. Files: http_answer.
 */
#ifndef RIALTO_IO_HTTP_SERVER_H
#define RIALTO_IO_HTTP_SERVER_H

#include "io/listen.h"
#include "io/stream.h"
#include "wire/http.h"

struct http_server;
struct http_exchange;

struct http_server_options {
    size_t max_body;
    /* ms, 0 = for ever: from the first byte of a head to its end, from there to the end of the
     * body, and between requests. */
    uint64_t head_timeout, body_timeout, idle_timeout;
    size_t max_connections; /* more are turned away, except those by Unix sockets */
};

/* Called for each complete request. The request's spans are valid until the exchange is answered.
 */
typedef void http_handler_fn(void *owner, struct http_exchange *x, const struct http_request *req);

struct http_server *http_server_new(struct loop *l, const struct http_server_options *options,
                                    http_handler_fn *handler, void *owner);
/* May be called several times: one server, many addresses. */
MUST_CHECK int http_server_listen(struct http_server *s, const char *address, struct err *err);
/* The same with TLS, by the certificate chain and the private key in these PEM files. */
MUST_CHECK int http_server_listen_tls(struct http_server *s, const char *address, const char *cert,
                                      const char *key, struct err *err);
/* Connections to the n-th address use these files from now on; on failure the old ones stay in
 * use. */
MUST_CHECK int http_server_renew_tls(struct http_server *s, size_t n, const char *cert,
                                     const char *key, struct err *err);
/* The n-th bound address, NULL past the end, and whether it speaks TLS. */
const char *http_server_address(const struct http_server *s, size_t n);
bool http_server_is_secure(const struct http_server *s, size_t n);
/* Is Host our first address, on loopback, and Origin too if there is one? Else the request is of a
 * web page of another site, maybe under a name that leads here (DNS rebinding). */
bool http_server_is_meant(const struct http_server *s, const struct http_request *req);
/*
 * Stop accepting; streams and exchanges end now (clients without an answer get a 503, and each
 * exchange's `gone` is called); `closed` is called when all connections except upgraded ones are
 * gone; the server is freed when `closed` returns.
 */
void http_server_close(struct http_server *s, void (*closed)(void *arg), void *arg);

/* A connection on its way to another process. */
struct http_given {
    const char *address; /* the address that the client connected to */
    int fd;
    struct span early; /* bytes that were read and not handled */
    /* The client's address and ours, if the connection has TLS (the giver carries its bytes as long
     * as the giver lives); else NULL. */
    const char *peer, *local;
    bool by_kin; /* the client descends from one of our children, as far as that is known */
};

/*
 * Another daemon serves from now on: `give` gets each connection as soon as no request is open on
 * it, but a connection with TLS only with its next request. A request that becomes complete from
 * now on is not handled here: it is in the `early` bytes. `give` copies what it needs.
 */
typedef void http_give_fn(void *arg, const struct http_given *given);
void http_server_leave(struct http_server *s, http_give_fn *give, void *arg);
/* From now on close connections with TLS that have no request, instead of waiting for one. */
void http_server_hurry(struct http_server *s);
/* The number of open connections that were not given away, or whose bytes we still carry. */
size_t http_server_left(const struct http_server *s);
/* Goes on with a connection that another daemon had; takes the socket over. False: this server does
 * not listen on its address. */
MUST_CHECK bool http_server_adopt(struct http_server *s, const struct http_given *given);

/* --- answering --- */

/* Header lines ("Name: value\r\n" each) to add to the answer, of any kind; copied. */
void http_exchange_add_headers(struct http_exchange *x, struct span lines);

/* `headers` are extra header lines, "Name: value\r\n" each; may be empty. */
void http_respond(struct http_exchange *x, int status, const char *content_type,
                  struct span headers, struct span body);
/*
 * The same in two steps without a copy of the body: begin returns the buffer to append the body to,
 * end fills in the length. Both must be called within one callback.
 */
struct buf *http_respond_begin(struct http_exchange *x, int status, const char *content_type,
                               struct span headers);
void http_respond_end(struct http_exchange *x);

/* A response of unknown length (chunked): the head is sent at once. */
void http_stream_begin(struct http_exchange *x, int status, const char *content_type,
                       struct span headers);
void http_stream_write(struct http_exchange *x, struct span data);
void http_stream_end(struct http_exchange *x);
/* Bytes queued towards this client. */
size_t http_exchange_queued(const struct http_exchange *x);

/* What the handler keeps with the connection, for its next requests; `drop` is called when it is
 * replaced, and when the connection is gone. */
void *http_exchange_kept(const struct http_exchange *x);
void http_exchange_keep(struct http_exchange *x, void *thing, void (*drop)(void *thing));

/* What to call when the client leaves before the answer is complete. */
void http_exchange_on_gone(struct http_exchange *x, void (*gone)(void *owner), void *owner);
/* {"error": ..., "hint": ...}, for peers that do not speak JSON-RPC; `hint` may be NULL. */
void http_refuse(struct http_exchange *x, int status, const char *error, const char *hint);
/* The same with more header lines. */
void http_refuse_with(struct http_exchange *x, int status, struct span headers, const char *error,
                      const char *hint);
void http_refuse_put_body(struct buf *out, const char *error, const char *hint);
/* Cut the connection, e.g. of a reader that is too slow; `gone` is not called. */
void http_exchange_abort(struct http_exchange *x, const char *reason);
const char *http_exchange_peer(const struct http_exchange *x);
/* Which address the request came by: the n of http_server_address. */
size_t http_exchange_came_by(const struct http_exchange *x);
/* Is this host ("192.0.2.7", "[2001:db8::7]") the address that the client connected to? */
bool http_exchange_is_to(const struct http_exchange *x, struct span host);
/* Did the request come from one of our children or a process that descends from one? Slow for TCP;
 * ask it only for connections within this machine. */
bool http_exchange_is_by_kin(const struct http_exchange *x);
/* Did the request come from a process of our own user or of root, and not from one of our children?
 * Slow for TCP. For a Unix socket only the children are checked: the file's mode has decided the
 * rest. */
bool http_exchange_is_by_us(const struct http_exchange *x);
/* Did the request come by TLS? */
bool http_exchange_is_secure(const struct http_exchange *x);

/*
 * Take the connection over after writing a 101 with `headers` (complete lines). The exchange is
 * finished; the returned stream has no owner yet: stream_rebind it at once. `early` gets the bytes
 * that have already arrived behind the request, valid until the end of this turn.
 */
struct stream *http_upgrade(struct http_exchange *x, struct span headers, struct span *early);

#endif
