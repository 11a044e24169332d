/*
 * fingerprint: hashes of tools and lists, which change when these change.
 *
 * SHA-256 over a canonical text: a schema with only another order of members, or other white space,
 * has the same fingerprint.
 */
#ifndef RIALTO_ROCKBOT_FINGERPRINT_H
#define RIALTO_ROCKBOT_FINGERPRINT_H

#include "base/buf.h"

enum { FINGERPRINT_SIZE = 65 /* 64 lower-case hexadecimal digits, and the NUL */ };

/* Separators in a text that is hashed: unit, record and group separator. */
#define FINGERPRINT_UNIT   '\x1f'
#define FINGERPRINT_RECORD '\x1e'
#define FINGERPRINT_GROUP  '\x1d'

void fingerprint_of(char out[FINGERPRINT_SIZE], struct span text);
/* Append validated JSON without white space, the members of every object sorted by their keys. */
void fingerprint_put_canonical(struct buf *out, struct span json);
/* The fingerprint of a tool; `schema` is raw JSON, or empty. */
void fingerprint_of_tool(char out[FINGERPRINT_SIZE], struct span name, struct span description,
                         struct span schema);

#endif
