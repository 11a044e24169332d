/* When readers are told of changes: together, not too often, and never without a change. */
#include "../unit.h"

#include "admin/throttle.h"

enum { GAP = 250 };

static void test_nothing_marked(void **state)
{
    struct throttle t = {0};

    (void)state;
    assert_true(throttle_next(&t) == UINT64_MAX);
    assert_int_equal(throttle_take(&t, 1000000), 0);
}

static void test_soon_and_together(void **state)
{
    struct throttle t = {0};

    (void)state;
    assert_true(throttle_mark(&t, 3, GAP, 1000));
    assert_false(throttle_mark(&t, 3, GAP, 1010)); /* does not delay the first mark */
    assert_true(throttle_mark(&t, 5, GAP, 1015));
    assert_int_equal(throttle_next(&t), 1000 + THROTTLE_GATHER);
    assert_int_equal(throttle_take(&t, 1000 + THROTTLE_GATHER - 1), 0);
    assert_int_equal(throttle_take(&t, 1000 + THROTTLE_GATHER), 1U << 3);
    assert_int_equal(throttle_next(&t), 1015 + THROTTLE_GATHER);
    assert_int_equal(throttle_take(&t, 2000), 1U << 5);
    assert_true(throttle_next(&t) == UINT64_MAX);
}

/* A kind that is marked a thousand times a second is sent four times a second. */
static void test_not_too_often(void **state)
{
    struct throttle t = {0};
    unsigned told = 0;

    (void)state;
    for (uint64_t now = 1; now <= 10000; now++) {
        throttle_mark(&t, 0, GAP, now);
        told += throttle_take(&t, now) != 0;
    }
    assert_in_range(told, 36, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_marked),
        cmocka_unit_test(test_soon_and_together),
        cmocka_unit_test(test_not_too_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
