/* Passes: found by their token, expired at their time; an owner ends with its last pass. */
#include "../io/io_test.h"
#include "../unit.h"

#include "hub/auth/pass.h"

static void note(void *arg)
{
    ++*(int *)arg;
}

static bool is_seven(void *arg, uint64_t mark)
{
    (void)arg;
    return mark == 7;
}

static struct pass_facts facts(const char *subject, const char *view, int64_t expires)
{
    return (struct pass_facts){.issuer = SPAN("https://i"),
                               .subject = span_str(subject),
                               .view = view,
                               .expires = expires};
}

static void test_owners(void **state)
{
    struct loop *l = loop_new();
    int ended = 0;
    struct passes *t = passes_new(l, note, &ended);
    int64_t later = pass_clock() + 60000;
    struct pass_facts f = facts("ann", NULL, later);

    (void)state;
    assert_null(passes_find(t, SPAN("one")));
    const struct pass *one = pass_hold(passes_add(t, SPAN("one"), &f));
    f.mark = 7;
    const struct pass *two = pass_hold(passes_add(t, SPAN("two"), &f));
    assert_ptr_equal(passes_find(t, SPAN("one")), one);
    assert_ptr_equal(one->who, two->who);
    assert_string_equal(one->who->name, "ann (https://i)");
    struct pass_facts narrow = facts("ann", "small", later), ben = facts("ben", NULL, later);
    assert_ptr_not_equal(passes_add(t, SPAN("three"), &narrow)->who, one->who);
    assert_ptr_not_equal(passes_add(t, SPAN("four"), &ben)->who, one->who);
    assert_true(pass_is_of(two, SPAN("two")) && !pass_is_of(two, SPAN("one")));
    assert_false(pass_is_in_use(one));
    struct principal *session = principal_hold(one->who);
    assert_true(pass_is_in_use(one));
    principal_release(session);

    passes_end(t, NULL, is_seven, NULL);
    assert_false(pass_is_of(two, SPAN("two")));
    assert_false(one->who->ended);
    passes_end(t, NULL, NULL, NULL);
    loop_step(l, 0);
    assert_true(one->who->ended);
    assert_int_equal(ended, 1);
    assert_null(passes_find(t, SPAN("one")));
    pass_release(one);
    pass_release(two);
    passes_free(t);
    loop_free(l);
}

static void test_time_and_room(void **state)
{
    struct loop *l = loop_new();
    int ended = 0;
    struct passes *t = passes_new(l, note, &ended);
    struct pass_facts f = facts("ann", NULL, pass_clock() + 50);
    struct principal *who = principal_hold(passes_add(t, SPAN("brief"), &f)->who);

    (void)state;
    for (int i = 0; i < 200 && !ended; i++)
        loop_step(l, 20);
    assert_true(who->ended);
    assert_null(passes_find(t, SPAN("brief")));
    principal_release(who);
    /* The number of passes is bounded: the oldest are dropped. */
    f = facts("ben", NULL, pass_clock() + 600000);
    for (int i = 0; i < 10100; i++) {
        BUF_SCOPED token = {0};
        buf_printf(&token, "token %d", i);
        passes_add(t, buf_view(&token), &f);
    }
    assert_null(passes_find(t, SPAN("token 0")));
    assert_non_null(passes_find(t, SPAN("token 10099")));
    assert_non_null(passes_find(t, SPAN("token 200")));
    passes_free(t);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_time_and_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
