#include "replay_lines.h"
#include "replay_unit.h"

static void test_lines_are_cut_at_newlines(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN("one\ntwo\nthree\n"), 100,
                  "line 3:one\nline 3:two\nline 5:three\n");
    assert_replay(replay_lines, SPAN_EMPTY, 100, "");
}

static void test_one_trailing_cr_goes(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN("one\r\ntwo\r\r\na\rb\n"), 100,
                  "line 3:one\nline 4:two\r\nline 3:a\rb\n");
}

static void test_blank_lines_are_skipped(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN("\n\r\n  \t\none\n\n\n \r\ntwo\n\n"), 100,
                  "line 3:one\nline 3:two\n");
}

static void test_blanks_inside_a_line_stay(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN(" one \n\ttwo\n"), 100, "line 5: one \nline 4:\ttwo\n");
}

static void test_bytes_are_not_looked_at(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN("\xff\xfe\x01\n"), 100, "line 3:\xff\xfe\x01\n");
}

static void test_last_line_needs_no_newline(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN("one\ntwo"), 100, "line 3:one\nline 3:two\n");
    assert_replay(replay_lines, SPAN("one\ntwo\r"), 100, "line 3:one\nline 3:two\n");
    assert_replay(replay_lines, SPAN("one\n  "), 100, "line 3:one\n");
}

static void test_cap_is_the_longest_line(void **state)
{
    (void)state;
    assert_replay(replay_lines, SPAN("12345678\n123456789\nnext\n"), 8,
                  "line 8:12345678\ntoo long 8:12345678\nline 4:next\n");
    assert_replay(replay_lines, SPAN("12345678"), 8, "line 8:12345678\n");
}

static void test_over_long_line_is_reported_once(void **state)
{
    (void)state;
    struct buf in = {0};
    for (int i = 0; i < 5000; i++)
        buf_char(&in, (char)('a' + i % 26));
    buf_str(&in, "\nnext\n");

    struct buf expected = {0};
    replay_put(&expected, "too long", span_cut(buf_view(&in), 0, 256));
    buf_str(&expected, "line 4:next\n");
    assert_replay(replay_lines, buf_view(&in), 1000, buf_cstr(&expected));

    /* The stream ends inside the line that is too long: it was reported, and nothing follows. */
    expected.n -= strlen("line 4:next\n");
    assert_replay(replay_lines, span_cut(buf_view(&in), 0, 4000), 1000, buf_cstr(&expected));
    buf_fini(&in);
    buf_fini(&expected);
}

static void remember_line(void *last, struct span line)
{
    *(struct span *)last = line;
}

static void test_line_within_a_chunk_is_not_copied(void **state)
{
    (void)state;
    static const struct lines_events events = {.line = remember_line};
    struct span chunk = SPAN("first\nsecond\n"), seen = SPAN_EMPTY;
    struct lines l;

    lines_init(&l, 100);
    lines_feed(&l, chunk, &events, &seen);
    assert_ptr_equal(seen.p, chunk.p + 6);
    assert_int_equal(l.tail.cap, 0);
    lines_fini(&l);
}

static void test_memory_of_a_large_line_goes_back(void **state)
{
    (void)state;
    static const struct lines_events events = {.line = remember_line};
    static char large[100000];
    struct span seen = SPAN_EMPTY;
    struct lines l;

    memset(large, 'x', sizeof large);
    lines_init(&l, sizeof large);
    lines_feed(&l, span_of(large, sizeof large), &events, &seen);
    assert_true(l.tail.cap >= sizeof large);
    lines_feed(&l, SPAN("\n"), &events, &seen);
    assert_int_equal(seen.n, sizeof large);
    assert_true(l.tail.cap <= 4096);
    lines_fini(&l);
}

struct stopper {
    struct lines lines;
    int lines_seen, too_long_seen;
};

static void stop_at_line(void *owner, struct span line)
{
    struct stopper *s = owner;
    (void)line;
    s->lines_seen++;
    lines_stop(&s->lines);
}

static void stop_at_too_long(void *owner, struct span head)
{
    struct stopper *s = owner;
    (void)head;
    s->too_long_seen++;
    lines_stop(&s->lines);
}

static void test_stop_ends_the_lines(void **state)
{
    (void)state;
    static const struct lines_events events = {stop_at_line, stop_at_too_long};
    struct stopper s = {.lines_seen = 0};

    lines_init(&s.lines, 8);
    lines_feed(&s.lines, SPAN("one\ntwo\nthree"), &events, &s);
    lines_feed(&s.lines, SPAN("four\n"), &events, &s);
    lines_end(&s.lines, &events, &s);
    assert_int_equal(s.lines_seen, 1);
    lines_fini(&s.lines);

    lines_init(&s.lines, 8);
    lines_feed(&s.lines, SPAN("123456789\ntwo\n"), &events, &s);
    lines_end(&s.lines, &events, &s);
    assert_int_equal(s.too_long_seen, 1);
    assert_int_equal(s.lines_seen, 1);
    lines_fini(&s.lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_cut_at_newlines),
        cmocka_unit_test(test_one_trailing_cr_goes),
        cmocka_unit_test(test_blank_lines_are_skipped),
        cmocka_unit_test(test_blanks_inside_a_line_stay),
        cmocka_unit_test(test_bytes_are_not_looked_at),
        cmocka_unit_test(test_last_line_needs_no_newline),
        cmocka_unit_test(test_cap_is_the_longest_line),
        cmocka_unit_test(test_over_long_line_is_reported_once),
        cmocka_unit_test(test_line_within_a_chunk_is_not_copied),
        cmocka_unit_test(test_memory_of_a_large_line_goes_back),
        cmocka_unit_test(test_stop_ends_the_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
