#include "../unit.h"

#include "base/backoff.h"

static void test_doubles_to_max(void **state)
{
    static const uint64_t steps[] = {100, 200, 400, 800, 1000, 1000, 1000};
    uint64_t seed = 4;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct backoff b = {.first = 100, .max = 1000};
        for (size_t i = 0; i < COUNT_OF(steps); i++) {
            uint64_t wait = backoff_next(&b, unit_random(&seed));
            assert_in_range(wait, steps[i] / 2, steps[i]);
        }
        assert_int_equal(b.failures, COUNT_OF(steps));
    }
}

/* The jitter uses the whole range, both ends included. */
static void test_jitter(void **state)
{
    struct backoff low = {.first = 100, .max = 1000}, high = low;

    (void)state;
    assert_int_equal(backoff_next(&low, 0), 50);
    assert_int_equal(backoff_next(&high, 50), 100);
}

static void test_reset(void **state)
{
    struct backoff b = {.first = 100, .max = 1000};

    (void)state;
    for (int i = 0; i < 10; i++)
        backoff_next(&b, 0);
    backoff_reset(&b);
    assert_int_equal(backoff_next(&b, 0), 50);
}

static void test_edges(void **state)
{
    struct backoff small = {.first = 1, .max = 1}, above = {.first = 5000, .max = 1000};

    (void)state;
    assert_in_range(backoff_next(&small, 7), 0, 1);
    assert_in_range(backoff_next(&above, 12345), 500, 1000);
    struct backoff many = {.first = 1, .max = UINT64_MAX / 2, .failures = 1000000};
    assert_in_range(backoff_next(&many, 0), UINT64_MAX / 8, UINT64_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles_to_max),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
