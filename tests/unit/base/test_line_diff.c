/* line_diff: what differs between two texts, line by line, with bounded work. */
#include "../unit.h"
#include "base/line_diff.h"

static void expect(const char *before, const char *after, const char *diff)
{
    struct buf out = {0};

    line_diff_put(&out, span_str(before), span_str(after));
    assert_string_equal(buf_cstr(&out), diff);
    buf_fini(&out);
}

static void test_lines_that_go_and_come(void **state)
{
    (void)state;
    expect("", "", "");
    expect("a\nb", "a\nb", "");
    expect("a\nb\nc", "a\nx\nc", " a\n-b\n+x\n c\n");
    expect("", "a", "+a\n");
    expect("a\nb", "", "-a\n-b\n");
    expect("x\na\ny\nb\nz", "p\na\nq\nb\nr", "-x\n+p\n a\n-y\n+q\n b\n-z\n+r\n");
    /* Lines that could be both common beginning and common end are counted once. */
    expect("a\na", "a\na\na", " a\n a\n+a\n");
}

static void test_only_the_lines_next_to_a_difference_are_shown(void **state)
{
    (void)state;
    expect("1\n2\n3\n4\n5\nold\n6\n7\n8\n9", "1\n2\n3\n4\n5\nnew\n6\n7\n8\n9",
           " 3\n 4\n 5\n-old\n+new\n 6\n 7\n 8\n");
}

/* Very long texts are not compared line by line: that would block the event loop. */
static void test_long_texts_go_and_come_as_a_whole(void **state)
{
    struct buf before = {0}, after = {0}, out = {0};

    (void)state;
    for (int i = 0; i < 5000; i++) {
        buf_printf(&before, "a%d\n", i);
        buf_printf(&after, "%s%d\n", i % 2 ? "a" : "b", i);
    }
    buf_str(&after, "end");
    line_diff_put(&out, buf_view(&before), buf_view(&after));
    assert_true(span_starts(buf_view(&out), SPAN("-a0\n-a1\n-a2\n")));
    assert_non_null(strstr(buf_cstr(&out), "+a4999\n+end\n"));
    buf_fini(&before);
    buf_fini(&after);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_that_go_and_come),
        cmocka_unit_test(test_only_the_lines_next_to_a_difference_are_shown),
        cmocka_unit_test(test_long_texts_go_and_come_as_a_whole),
    };
    return cmocka_run_group_tests_name("base/line_diff", tests, NULL, NULL);
}
