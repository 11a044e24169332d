/*
 * base64: bytes as text (RFC 4648): with the standard alphabet and padding, or with the alphabet
 * for URLs and without padding (base64url, which JWTs and OAuth use).
 */
#ifndef RIALTO_BASE_BASE64_H
#define RIALTO_BASE_BASE64_H

#include "base/buf.h"
#include "base/err.h"

void base64_put(struct buf *out, struct span bytes);
/* Append the bytes that `text` stands for. Strict: no blanks, full padding, no stray bits; a
 * negative code, and nothing appended, otherwise. */
MUST_CHECK int base64_read(struct buf *out, struct span text);
/* The same two for base64url. */
void base64_put_url(struct buf *out, struct span bytes);
MUST_CHECK int base64_read_url(struct buf *out, struct span text);

#endif
