#include "core/stats.h"

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
