/*
 * jws: signatures of JWTs (RFC 7515, 7518, 8037), made and checked by OpenSSL.
 *
 * A key is public and from a JWK, to check with, or private and from a PEM file, to sign with. An
 * algorithm is a row of a constant table and belongs to one type of key: the caller finds the row
 * by the name in the token, and the functions below refuse a key of another type. There is no row
 * for `none`, nor for HMAC. Nothing here reads a token: wire/jwt parses its header and claims. All
 * calls are synchronous, and take less than 0.2 ms with every key that is accepted.
 *
 * Nouns: jws_, jws_alg_, jws_key_.
 */
#ifndef RIALTO_IO_JWS_H
#define RIALTO_IO_JWS_H

#include "base/buf.h"
#include "base/err.h"

struct jws_alg;
struct jws_key;

/* RS256 to RS512, PS256 to PS512, ES256 to ES512, EdDSA and Ed25519 (two names of one); else
 * NULL. */
const struct jws_alg *jws_alg_find(struct span name);

/* The public key of a JWK, a valid JSON object: RSA of 2048 to 8192 bits, the curves P-256, P-384
 * and P-521, Ed25519. Other members than those of the key itself are ignored. NULL with a
 * reason. */
struct jws_key *jws_key_read(struct span jwk, struct err *err);
/* The private key of a PEM text without a passphrase. NULL with a reason. */
struct jws_key *jws_key_read_pem(struct span pem, struct err *err);
void jws_key_free(struct jws_key *k);
bool jws_key_fits(const struct jws_key *k, const struct jws_alg *alg);

/* Is this the signature (decoded) of the text by the owner of the key? */
bool jws_verify(const struct jws_key *k, const struct jws_alg *alg, struct span text,
                struct span signature);
/* Appends the signature as raw bytes, not as base64url. */
MUST_CHECK int jws_sign(struct buf *out, const struct jws_key *k, const struct jws_alg *alg,
                        struct span text, struct err *err);

#endif
