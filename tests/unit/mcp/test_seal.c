#include "../unit.h"
#include "mcp/agent/seal.h"

static const struct seal sample = {.call = 7, .principal = 8, .request = 9, .expires = 10};

static void test_round_trip(void **state)
{
    struct buf text = {0};
    struct seal back;

    (void)state;
    seal_put(&text, &sample);
    assert_true(seal_open(buf_view(&text), &back));
    assert_memory_equal(&back, &sample, sizeof sample);
    buf_fini(&text);
}

/* Changing any single character makes a seal invalid. */
static void test_any_change_voids_it(void **state)
{
    struct buf text = {0};
    struct seal back;

    (void)state;
    seal_put(&text, &sample);
    for (size_t i = 0; i < text.n; i++) {
        char before = text.p[i];
        text.p[i] = before == 'A' ? 'B' : 'A';
        assert_false(seal_open(buf_view(&text), &back));
        text.p[i] = before;
    }
    assert_false(seal_open(span_cut(buf_view(&text), 0, text.n - 1), &back));
    assert_false(seal_open(SPAN("rialto1."), &back));
    assert_false(seal_open(SPAN(""), &back));
    buf_fini(&text);
}

/* Two seals of the same content differ, so comparing them reveals nothing. */
static void test_fresh_each_time(void **state)
{
    struct buf a = {0}, b = {0};

    (void)state;
    seal_put(&a, &sample);
    seal_put(&b, &sample);
    assert_string_not_equal(buf_cstr(&a), buf_cstr(&b));
    buf_fini(&a);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_any_change_voids_it),
        cmocka_unit_test(test_fresh_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
