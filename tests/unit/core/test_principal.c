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

/* Owners of tokens were let in where the sign-in of callers without a token is used: what one of
 * them did there, it did with somebody else's rights. */
static void owners_of_tokens_have_providers_of_their_own(void **state)
{
    struct stage s;
    struct fake f;
    struct client c;
    struct principal *const principals[] = {NULL, principal_new_tokenless("operator"),
                                            principal_new("ann")};
    static const char *const told[] = {"f open 1 read\nc done 1 {}\n",
                                       "f open 2 read\nc done 2 {}\n", "c done 3 unavailable\n"};

    (void)state;
    stage_init(&s);
    struct view *v = view_new("test", NULL);
    fake_init(&f, &s, "f");
    view_add(v, &f.core, NULL);
    fake_ready(&f, "read");
    f.core.tokenless_only = true;
    s.account.n = 0;
    for (size_t i = 0; i < COUNT_OF(principals); i++) {
        client_init(&c, &s, "c", v);
        c.peer.principal = principals[i];
        struct call *call = client_open(&c, "read");
        if (call)
            finish_call(call, "{}");
        assert_account(&s, told[i]);
        principal_release(principals[i]);
    }
    fake_fini(&f);
    view_free(v);
    stage_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_is_any_minute),
        cmocka_unit_test(what_is_open_counts_until_it_ends),
        cmocka_unit_test(owners_of_tokens_have_providers_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
