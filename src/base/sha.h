/*
 * sha: digests of texts (SHA-1 and SHA-256, FIPS 180-4) and HMAC with SHA-256 (RFC 2104).
 *
 * Our own, because nearly every start of the program needs a digest or two, and a cryptographic
 * library takes longer to load than the rest of the start (docs/decisions/011-light.md). SHA-1
 * is for the handshake of WebSocket only, where it protects nothing.
 */
#ifndef RIALTO_BASE_SHA_H
#define RIALTO_BASE_SHA_H

#include "base/span.h"

enum { SHA1_N = 20, SHA256_N = 32 };

void sha_1(unsigned char out[SHA1_N], struct span text);
void sha_256(unsigned char out[SHA256_N], struct span text);
void sha_hmac(unsigned char out[SHA256_N], struct span key, struct span text);

/* Are these secrets the same? Takes constant time, wherever they differ. */
bool sha_same(const unsigned char *a, const unsigned char *b, size_t n);

#endif
