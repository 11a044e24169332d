/*
 * numbers: calls, failures and durations of the last hour, minute by minute.
 *
 * One struct for a server or a tool: a ring of 60 minutes, each with two counts and a histogram of
 * durations by powers of two (core/stats.h). Pure: the time is passed in. Counting touches one
 * minute and allocates nothing.
 */
#ifndef RIALTO_ADMIN_NUMBERS_H
#define RIALTO_ADMIN_NUMBERS_H

#include "base/buf.h"
#include "core/stats.h"

enum { NUMBERS_MINUTES = 60, NUMBERS_MINUTE_MS = 60 * 1000 };

struct numbers_minute {
    uint64_t minute; /* which one this is, counted from 1; an older one counts as empty */
    uint32_t calls, errors;
    uint16_t durations[STATS_BUCKETS];
};

struct numbers {
    struct numbers_minute minutes[NUMBERS_MINUTES];
};

void numbers_count(struct numbers *n, uint64_t now, uint64_t took_ms, bool failed);
/* "calls":[...],"errors":[...],"p50":[...],"p99":[...]: 60 each, oldest first. Percentiles are the
 * upper edges of their buckets in ms, null for a minute without calls. */
void numbers_put(struct buf *out, const struct numbers *n, uint64_t now);

#endif
