/*
 * tls: one TLS connection as bytes in and bytes out, by OpenSSL between two memory buffers.
 *
 * A struct tls does no I/O: io/stream feeds it the socket's bytes, reads the peer's plain bytes
 * from it, and sends the bytes that it puts out. Others call stream_secure, at the end; only
 * stream_tls.c needs the functions of "one connection". TLS 1.2 and newer, ALPN http/1.1, no
 * renegotiation. A client always checks the server's certificate and name; no option turns that
 * off.
 *
 * A context is what many connections share: certificates, and the authorities to trust. Connections
 * keep what they need of a context, so it may be freed before them.
 */
#ifndef RIALTO_IO_TLS_H
#define RIALTO_IO_TLS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct tls_context;
struct tls;

/* A server with the certificate chain and the private key of these PEM files. NULL with `err`
 * filled, naming the file, when they cannot be used. */
struct tls_context *tls_context_server(const char *cert_file, const char *key_file,
                                       struct err *err);
/*
 * A client that trusts the authorities in the PEM file `ca_file` and no others; NULL = those of the
 * system (SSL_CERT_FILE and SSL_CERT_DIR name others).
 */
struct tls_context *tls_context_client(const char *ca_file, struct err *err);
/* Adds a reference; each is given back with tls_context_free. */
struct tls_context *tls_context_hold(struct tls_context *c);
void tls_context_free(struct tls_context *c);
/* May all users read the key file, not only its owner and group? */
bool tls_key_is_exposed(const char *key_file);

/* --- one connection --- */

/* `host` is the name or address the server's certificate must be for; NULL makes this side the
 * server. */
struct tls *tls_new(const struct tls_context *c, const char *host);
void tls_free(struct tls *t);
/* Bytes from the peer. They are copied; tls_read decrypts them. */
void tls_feed(struct tls *t, struct span bytes);
enum { TLS_MORE = 0, TLS_END = -1, TLS_BROKEN = -2 };
/*
 * Continues the handshake, then decrypts the peer's bytes: returns how many, TLS_MORE when more
 * must be fed first, TLS_END when the peer has closed its side, TLS_BROKEN when the connection
 * cannot go on (tls_why). After every result there may be bytes to send.
 */
ssize_t tls_read(struct tls *t, char *room, size_t n);
/* Is the handshake done? */
bool tls_is_ready(const struct tls *t);
/* Encrypts; returns how many bytes were taken: 0 before the handshake is done. */
size_t tls_write(struct tls *t, struct span plain);
/* Say that nothing follows (close_notify). */
void tls_end(struct tls *t);
/* Move the bytes that wait to be sent into `out`; tls_output is their number. */
void tls_take_output(struct tls *t, struct buf *out);
size_t tls_output(const struct tls *t);
/* Are there fed bytes that tls_read has not seen? */
bool tls_has_input(const struct tls *t);
/* Why the connection is broken, for people. */
const char *tls_why(const struct tls *t);
/* Did the peer of a server send an HTTP request in the clear? */
bool tls_is_plain_http(const struct tls *t);

/* --- on a stream --- */

struct stream;
/*
 * From now on `s` is TLS: what is written to it is encrypted, what its owner gets is plain, and
 * output waits until the handshake is done. Call it before anything is written or read. A peer that
 * does not complete the handshake within `wait_ms` is cut. `plain_answer`, a constant text, is sent
 * in the clear to a client that speaks HTTP without TLS; may be NULL.
 */
void stream_secure(struct stream *s, const struct tls_context *c, const char *host,
                   const char *plain_answer, uint64_t wait_ms);
bool stream_is_secure(const struct stream *s);

#endif
