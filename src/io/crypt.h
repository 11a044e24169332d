/*
 * crypt: texts kept secret on disk (AES-256-GCM, by OpenSSL).
 *
 * The key is made from a secret of any length. A text that was changed, was sealed with another
 * secret, or for another `use`, does not open.
 */
#ifndef RIALTO_IO_CRYPT_H
#define RIALTO_IO_CRYPT_H

#include "base/buf.h"
#include "base/err.h"

/* Append the sealed bytes. Negative, with a reason, when OpenSSL is missing. */
MUST_CHECK int crypt_seal(struct buf *out, struct span secret, const char *use, struct span text,
                          struct err *err);
/* Append the text. Negative, with a reason, when it does not open. */
MUST_CHECK int crypt_open(struct buf *out, struct span secret, const char *use, struct span sealed,
                          struct err *err);

#endif
