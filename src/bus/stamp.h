/*
 * stamp: moments as ISO 8601 texts in UTC, "2026-02-18T06:30:24.123Z", and the wall clock.
 */
#ifndef RIALTO_BUS_STAMP_H
#define RIALTO_BUS_STAMP_H

#include "base/buf.h"

#include <stdint.h>

/* Milliseconds of Unix time. */
uint64_t stamp_now(void);
void stamp_put(struct buf *out, uint64_t ms);
/* Reads any fraction, and `Z` or an offset. 0 when the text is no such time. */
uint64_t stamp_read(struct span text);

#endif
