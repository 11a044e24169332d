/*
 * scrypt: a password, hashed so slowly that trying many takes too long (RFC 7914), by OpenSSL.
 *
 * What is kept is "scrypt:LOG2N:R:P:SALT:HASH", salt and hash in base64url. Checking takes a tenth
 * of a second and 32 MiB: so it is done by a thread, and the loop gets the result.
 */
#ifndef RIALTO_IO_SCRYPT_H
#define RIALTO_IO_SCRYPT_H

#include "base/buf.h"
#include "base/err.h"
#include "io/loop.h"

struct scrypt;

/* Appends what is to be kept of a password. Blocks for a tenth of a second: for commands. */
MUST_CHECK int scrypt_put(struct buf *out, struct span password, struct err *err);

/* Is this the password? `done` is called from the loop, unless the check is cancelled first. NULL,
 * with a reason, if `kept` is malformed or OpenSSL is missing. */
struct scrypt *scrypt_check(struct loop *l, const char *kept, struct span password,
                            void (*done)(void *owner, bool same), void *owner, struct err *err);
void scrypt_cancel(struct scrypt *s);

#endif
