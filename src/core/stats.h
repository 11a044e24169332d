/*
 * stats: plain counters and a latency histogram. One thread, so plain numbers.
 */
#ifndef RIALTO_CORE_STATS_H
#define RIALTO_CORE_STATS_H

#include "core/peer.h"

enum { STATS_BUCKETS = 24 }; /* bucket i counts calls that took less than 2^i ms */

struct stats {
    uint64_t opened;
    uint64_t results, errors;    /* ended by the provider */
    uint64_t failed[FAIL_COUNT]; /* ended by the bridge */
    uint64_t retried;
    uint64_t asks, events;
    uint64_t in_flight, queued; /* now */
    uint64_t starts, crashes;
    uint64_t latency[STATS_BUCKETS];
    uint64_t latency_sum_ms;
};

/* Add the counters of `of` to those of `to`. */
void stats_add(struct stats *to, const struct stats *of);
void stats_count_outcome(struct stats *s, const struct outcome *outcome, uint64_t took_ms);

#endif
