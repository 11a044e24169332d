/* The last hour, minute by minute: what is counted where, and what is forgotten. */
#include "../unit.h"

#include "admin/numbers.h"
#include "wire/json.h"

#include <string.h>

/* The n-th element of a column, as text; negative: from the end. */
static struct span cell(const struct buf *json, const char *name, int n)
{
    struct json_slot column = json_get(buf_view(json), name);
    struct json_iter it = json_iter(column.value);

    for (int i = n < 0 ? NUMBERS_MINUTES + n : n; i >= 0; i--)
        assert_true(json_next(&it));
    return it.value;
}

static void show(struct buf *out, const struct numbers *n, uint64_t now)
{
    out->n = 0;
    buf_char(out, '{');
    numbers_put(out, n, now);
    buf_char(out, '}');
    assert_int_equal(json_skim(buf_view(out), NULL, NULL, NULL, NULL), 0);
}

static void test_minutes(void **state)
{
    static struct numbers n;
    BUF_SCOPED out = {0};
    uint64_t now = 5 * NUMBERS_MINUTE_MS;

    (void)state;
    memset(&n, 0, sizeof n);
    numbers_count(&n, now, 3, false);
    numbers_count(&n, now + 1, 3, true);
    show(&out, &n, now + 2);
    assert_true(span_is(cell(&out, "calls", -1), "2"));
    assert_true(span_is(cell(&out, "errors", -1), "1"));
    assert_true(span_is(cell(&out, "p50", -1), "4"));
    assert_true(span_is(cell(&out, "calls", 0), "0"));
    assert_true(span_is(cell(&out, "p99", 0), "null"));
    show(&out, &n, now + NUMBERS_MINUTE_MS);
    assert_true(span_is(cell(&out, "calls", -2), "2"));
    show(&out, &n, now + (NUMBERS_MINUTES - 1) * NUMBERS_MINUTE_MS);
    assert_true(span_is(cell(&out, "calls", 0), "2"));
    show(&out, &n, now + NUMBERS_MINUTES * NUMBERS_MINUTE_MS);
    assert_true(span_is(cell(&out, "calls", -1), "0")); /* the same slot of the ring */
    assert_true(span_is(cell(&out, "calls", 0), "0"));
}

static void test_percentiles(void **state)
{
    static struct numbers n;
    BUF_SCOPED out = {0};

    (void)state;
    memset(&n, 0, sizeof n);
    for (int i = 0; i < 98; i++)
        numbers_count(&n, 0, 0, false);
    numbers_count(&n, 0, 1000, false);
    numbers_count(&n, 0, UINT64_MAX, false);
    show(&out, &n, 0);
    assert_true(span_is(cell(&out, "p50", -1), "1"));
    assert_true(span_is(cell(&out, "p99", -1), "1024"));
    for (int i = 0; i < 100000; i++) /* does not wrap round */
        numbers_count(&n, 0, 7, false);
    show(&out, &n, 0);
    assert_true(span_is(cell(&out, "calls", -1), "100100"));
    assert_true(span_is(cell(&out, "p50", -1), "8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_minutes),
                                       cmocka_unit_test(test_percentiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
