/*
 * units: durations, sizes and times as people write them.
 *
 * Durations are "500ms", "30s", "10m", "2h"; sizes are "512B", "16KiB", "10MiB", "1GiB". A number
 * without a unit is refused, because half of its readers would take it for seconds and the other
 * half for milliseconds; only 0 needs none.
 */
#ifndef RIALTO_CONFIG_UNITS_H
#define RIALTO_CONFIG_UNITS_H

#include "base/buf.h"

/* NULL when the text was read, else what is wrong with it. */
const char *units_read_duration(struct span text, uint64_t *ms);
const char *units_read_size(struct span text, uint64_t *bytes);
/* A time of RFC 3339, "2026-02-18T06:30:24Z" or with an offset, as ms of Unix time. */
const char *units_read_time(struct span text, int64_t *ms);

/* As "2026-02-18T06:30:24.017Z"; without the fraction if it is 0. */
void units_put_time(struct buf *out, int64_t ms);
/* In the largest unit that is exact. */
void units_put_duration(struct buf *out, uint64_t ms);
void units_put_size(struct buf *out, uint64_t bytes);

#endif
