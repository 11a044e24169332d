/* The limits of a token's owner: what may be in use at once and called in a minute. */
#include "stage.h"

#include "core/principal.h"

static bool take(struct principal *p, uint64_t now, size_t bytes, uint64_t *retry)
{
    struct buf why = {0};
    bool fits = principal_take(p, now, bytes, &why, retry);

    assert_int_equal(fits, why.n == 0);
    buf_fini(&why);
    return fits;
}

/* Never more than three calls in any 60 s; `retry` is exactly the time until the next one. */
static void a_minute_is_any_minute(void **state)
{
    struct principal *p = principal_new("ann");
    uint64_t retry, t = 5000000;

    (void)state;
    principal_set_limits(p, &(struct principal_limits){.calls_per_minute = 3});
    assert_true(take(p, t, 0, &retry));
    assert_true(take(p, t + 50000, 0, &retry));
    assert_true(take(p, t + 50001, 0, &retry));
    assert_false(take(p, t + 50002, 0, &retry));
    assert_int_equal(retry, 60000 - 50002);
    assert_false(take(p, t + 59999, 0, &retry));
    assert_int_equal(retry, 1);
    assert_true(take(p, t + 60000, 0, &retry));
    assert_false(take(p, t + 60000, 0, &retry));
    assert_int_equal(retry, 50000);
    /* A reload with another limit does not forget the calls that were made. */
    principal_set_limits(p, &(struct principal_limits){.calls_per_minute = 2});
    assert_false(take(p, t + 60001, 0, &retry));
    principal_set_limits(p, &(struct principal_limits){.calls_per_minute = 3});
    assert_true(take(p, t + 60001, 0, &retry));
    assert_false(take(p, t + 60001, 0, &retry));
    principal_release(p);
}

static void what_is_open_counts_until_it_ends(void **state)
{
    struct principal *p = principal_new("ann");
    uint64_t retry;

    (void)state;
    principal_set_limits(p, &(struct principal_limits){.in_flight = 2, .bytes = 100});
    assert_true(take(p, 1, 60, &retry));
    assert_false(take(p, 1, 41, &retry));
    assert_true(retry > 0);
    assert_true(take(p, 1, 40, &retry));
    assert_false(take(p, 1, 0, &retry));
    principal_give_back(p, 60);
    assert_false(take(p, 1, 61, &retry));
    assert_false(take(p, 1, 101, &retry));
    assert_int_equal(retry, 0); /* waiting does not help */
    assert_true(take(p, 1, 60, &retry));
    principal_give_back(p, 60);
    principal_give_back(p, 40);
    assert_int_equal(p->in_flight, 0);
    assert_int_equal(p->bytes, 0);
    principal_release(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_is_any_minute),
        cmocka_unit_test(what_is_open_counts_until_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
