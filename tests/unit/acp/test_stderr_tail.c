/* The end of a component's stderr: how much is kept, where it is cut, and that secrets are hidden.
 */
#include "../unit.h"
#include "acp/stderr_tail.h"
#include "base/log.h"
#include "base/utf8.h"

#define MARK "[... what it wrote before this is left out]\n"

static struct span end_of(const struct stderr_tail *w, size_t max, struct buf *out)
{
    out->n = 0;
    stderr_tail_put(out, w, max);
    return buf_view(out);
}

static void test_short(void **state)
{
    struct stderr_tail w = {0};
    struct buf out = {0};

    (void)state;
    assert_int_equal(end_of(&w, STDERR_TAIL_WHOLE, &out).n, 0);
    stderr_tail_add(&w, SPAN("one\ntw"));
    stderr_tail_add(&w, SPAN_EMPTY);
    stderr_tail_add(&w, SPAN("o\n"));
    assert_true(span_is(end_of(&w, STDERR_TAIL_WHOLE, &out), "one\ntwo\n"));
    assert_true(span_is(end_of(&w, 8, &out), "one\ntwo\n"));
    stderr_tail_reset(&w);
    assert_int_equal(end_of(&w, STDERR_TAIL_WHOLE, &out).n, 0);
    buf_fini(&out);
}

static void test_cut_at_a_line(void **state)
{
    struct stderr_tail w = {0};
    struct buf out = {0};

    (void)state;
    stderr_tail_add(&w, SPAN("aaaa\nbbbb\ncccc\n"));
    assert_true(span_is(end_of(&w, 14, &out), MARK "bbbb\ncccc\n"));
    assert_true(span_is(end_of(&w, 10, &out), MARK "bbbb\ncccc\n"));
    assert_true(span_is(end_of(&w, 9, &out), MARK "cccc\n"));
    /* Not cut at a line when that would leave almost nothing. */
    assert_true(span_is(end_of(&w, 4, &out), MARK "ccc\n"));
    stderr_tail_add(&w, SPAN("dddd\n"));
    assert_true(span_is(end_of(&w, 15, &out), MARK "bbbb\ncccc\ndddd\n"));
    stderr_tail_reset(&w);
    stderr_tail_add(&w, SPAN("aaaaaaaaaaaa\nb\n"));
    assert_true(span_is(end_of(&w, 10, &out), MARK "aaaaaaa\nb\n"));
    stderr_tail_reset(&w);
    buf_fini(&out);
}

static void test_cut_at_a_character(void **state)
{
    struct stderr_tail w = {0};
    struct buf out = {0};

    (void)state;
    stderr_tail_add(&w, SPAN("x\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9"));
    static const size_t left[] = {0, 0, 2, 2, 2, 2, 6, 6, 6, 9};
    for (size_t max = 0; max < COUNT_OF(left); max++) {
        struct span shown = span_from(end_of(&w, max, &out), sizeof MARK - 1);
        assert_int_equal(shown.n, left[max]);
        assert_true(utf8_valid(shown));
    }
    /* Bytes that are not UTF-8 are not all skipped in search of a character. */
    stderr_tail_reset(&w);
    stderr_tail_add(&w, SPAN("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"));
    assert_int_equal(end_of(&w, 8, &out).n, sizeof MARK - 1 + 5);
    stderr_tail_reset(&w);
    buf_fini(&out);
}

/* Megabytes in pieces of every size: the kept part is bounded and is the end of the output. */
static void test_flood(void **state)
{
    struct stderr_tail w = {0};
    struct buf all = {0}, out = {0};
    size_t given = 0;

    (void)state;
    for (unsigned i = 0; all.n < 3 * 1024 * 1024; i++)
        buf_printf(&all, "line %u of the flood\n", i);
    for (size_t piece = 1; given<all.n; piece = piece> 200000 ? 1 : piece * 3) {
        struct span bytes = span_cut(buf_view(&all), given, piece);
        stderr_tail_add(&w, bytes);
        given += bytes.n;
        assert_true(w.kept.n <= 2 * (size_t)STDERR_TAIL_WHOLE);
    }
    assert_true(w.kept.cap <= 4 * (size_t)STDERR_TAIL_WHOLE);
    struct span shown = end_of(&w, STDERR_TAIL_WHOLE, &out);
    assert_true(span_starts(shown, SPAN(MARK)));
    shown = span_from(shown, sizeof MARK - 1);
    assert_true(shown.n <= STDERR_TAIL_WHOLE && shown.n > STDERR_TAIL_WHOLE - 40);
    assert_memory_equal(shown.p, all.p + all.n - shown.n, shown.n);
    assert_true(span_starts(shown, SPAN("line ")));
    assert_int_equal(all.p[all.n - shown.n - 1], '\n');
    stderr_tail_reset(&w);
    buf_fini(&all);
    buf_fini(&out);
}

/* The second half of a secret that is cut in two must not be shown. */
static void test_secret_on_the_edge(void **state)
{
    static const char secret[] = "correct-horse-battery-staple";
    struct stderr_tail w = {0};
    struct buf out = {0};

    (void)state;
    log_add_secret(span_str(secret));
    for (unsigned i = 0; i < 6000; i++)
        stderr_tail_add(&w, span_str(secret));
    for (size_t max = 1; max < 100; max++) {
        struct span shown = span_from(end_of(&w, max, &out), sizeof MARK - 1);
        for (size_t k = 0; k < shown.n; k++)
            assert_int_equal(shown.p[k], '*');
    }
    struct span whole = end_of(&w, STDERR_TAIL_WHOLE, &out);
    assert_true(span_starts(whole, SPAN(MARK)));
    whole = span_from(whole, sizeof MARK - 1);
    assert_true(whole.n > 1000);
    for (size_t k = 0; k < whole.n; k++)
        assert_int_equal(whole.p[k], '*');
    log_forget_secrets();
    stderr_tail_reset(&w);
    buf_fini(&out);
}

static void test_lines(void **state)
{
    struct span text = SPAN("one\r\n\n \t\ntwo"), line;

    (void)state;
    assert_true(stderr_tail_line(&text, &line));
    assert_true(span_is(line, "one"));
    assert_true(stderr_tail_line(&text, &line));
    assert_true(span_is(line, "two"));
    assert_false(stderr_tail_line(&text, &line));
    assert_false(stderr_tail_line(&(struct span){0}, &line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_cut_at_a_line),
        cmocka_unit_test(test_cut_at_a_character),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_secret_on_the_edge),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
