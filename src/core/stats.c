/* Counting the outcome and duration of a call, and adding up the counters of several providers.
 * Called by call.c at the end of each call; summed by admin/status.c, hub/graph/instance.c and
 * browser/.
 */
#include "core/stats.h"

/* All fields are counters, so two structs are added as arrays of numbers. */
_Static_assert(sizeof(struct stats) % sizeof(uint64_t) == 0, "every field is a uint64_t");

void stats_add(struct stats *to, const struct stats *of)
{
    uint64_t *sum = (uint64_t *)to;
    const uint64_t *part = (const uint64_t *)of;

    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += part[i];
}

void stats_count_outcome(struct stats *s, const struct outcome *outcome, uint64_t took_ms)
{
    switch (outcome->kind) {
    case OUTCOME_RESULT:
        s->results++;
        break;
    case OUTCOME_ERROR:
        s->errors++;
        break;
    case OUTCOME_FAILED:
        s->failed[outcome->why]++;
        break;
    }
    unsigned bucket = 0;
    while (bucket < STATS_BUCKETS - 1 && took_ms >= (1ull << bucket))
        bucket++;
    s->latency[bucket]++;
    s->latency_sum_ms += took_ms;
}
