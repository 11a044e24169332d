#include "../unit.h"
#include "core/stats.h"

static void test_outcomes_are_told_apart(void **state)
{
    struct stats s = {0};

    (void)state;
    stats_count_outcome(&s, &(struct outcome){.kind = OUTCOME_RESULT}, 0);
    stats_count_outcome(&s, &(struct outcome){.kind = OUTCOME_RESULT}, 0);
    stats_count_outcome(&s, &(struct outcome){.kind = OUTCOME_ERROR}, 0);
    stats_count_outcome(&s, &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_BUSY}, 0);
    assert_int_equal(s.results, 2);
    assert_int_equal(s.errors, 1);
    assert_int_equal(s.failed[FAIL_BUSY], 1);
    assert_int_equal(s.failed[FAIL_TIMEOUT], 0);
}

/* Bucket i counts calls that took less than 2^i ms and are in no lower bucket; the last bucket
 * counts the rest. */
static void test_latency_goes_into_its_bucket(void **state)
{
    static const struct {
        uint64_t took;
        size_t bucket;
    } rows[] = {
        {0, 0},
        {1, 1},
        {2, 2},
        {3, 2},
        {4, 3},
        {1023, 10},
        {1024, 11},
        {(1u << 22) - 1, 22},
        {1u << 22, 23},
        {1u << 23, 23},
        {UINT64_MAX / 2, 23},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct stats s = {0};
        stats_count_outcome(&s, &(struct outcome){.kind = OUTCOME_RESULT}, rows[i].took);
        for (size_t b = 0; b < STATS_BUCKETS; b++)
            assert_int_equal(s.latency[b], b == rows[i].bucket);
        assert_int_equal(s.latency_sum_ms, rows[i].took);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes_are_told_apart),
        cmocka_unit_test(test_latency_goes_into_its_bucket),
    };
    return cmocka_run_group_tests_name("core/stats", tests, NULL, NULL);
}
