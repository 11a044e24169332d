#include "replay_sse.h"
#include "replay_unit.h"

static void test_one_event(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("data: hello\n\n"), 100, "event 7:message\ndata 5:hello\n");
    assert_replay(replay_sse, SPAN("event: x\ndata: hello\nid: 9\nretry: 50\n\n"), 100,
                  "event 1:x\ndata 5:hello\nid 1:9\nretry 50\n");
}

static void test_every_kind_of_line_end(void **state)
{
    (void)state;
    const char *expected = "event 7:message\ndata 3:a\nb\nevent 7:message\ndata 1:c\n";

    assert_replay(replay_sse, SPAN("data: a\ndata: b\n\ndata: c\n\n"), 100, expected);
    assert_replay(replay_sse, SPAN("data: a\rdata: b\r\rdata: c\r\r"), 100, expected);
    assert_replay(replay_sse, SPAN("data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"), 100, expected);
    assert_replay(replay_sse, SPAN("data: a\r\ndata: b\n\rdata: c\r\r\n"), 100, expected);
}

/* An event that ends in CR must not wait for the byte that may or may not be its LF. */
static void test_cr_ends_an_event_at_once(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("data: a\r\r"), 100, "event 7:message\ndata 1:a\n");
}

static void test_byte_order_mark_only_at_the_start(void **state)
{
    (void)state;
    assert_replay(replay_sse,
                  SPAN("\xef\xbb\xbf"
                       "data: a\n\n"),
                  100, "event 7:message\ndata 1:a\n");
    assert_replay(replay_sse, SPAN("\xef\xbb\xbf\ndata: a\n\n"), 100,
                  "event 7:message\ndata 1:a\n");
    assert_replay(replay_sse,
                  SPAN("data: a\n\n\xef\xbb\xbf"
                       "data: b\n\n"),
                  100, "event 7:message\ndata 1:a\n");
}

static void test_only_one_blank_is_removed(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("data:  a \n\ndata:b\n\ndata\n\ndata:\n\n"), 100,
                  "event 7:message\ndata 3: a \nevent 7:message\ndata 1:b\n"
                  "event 7:message\ndata 0:\nevent 7:message\ndata 0:\n");
}

static void test_empty_data_lines_count(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("data\ndata\n\n"), 100, "event 7:message\ndata 1:\n\n");
    assert_replay(replay_sse, SPAN("data: a\ndata:\ndata: b\n\n"), 100,
                  "event 7:message\ndata 4:a\n\nb\n");
}

static void test_comments_and_unknown_fields_are_ignored(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN(": hi\n\n:\n\nfoo: bar\nDATA: x\ndata : y\n data: z\n\n"), 100,
                  "");
    assert_replay(replay_sse, SPAN("data: a\n: in between\ndata: b:c\n\n"), 100,
                  "event 7:message\ndata 5:a\nb:c\n");
}

static void test_id_stays_for_later_events(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"), 100,
                  "event 7:message\ndata 1:a\nid 1:1\nevent 7:message\ndata 1:b\nid 1:1\n"
                  "event 7:message\ndata 1:c\n");
    assert_replay(replay_sse, SPAN("id: 1\ndata: a\n\nid: x\0y\ndata: b\n\n"), 100,
                  "event 7:message\ndata 1:a\nid 1:1\nevent 7:message\ndata 1:b\nid 1:1\n");
}

static void test_events_without_data(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("id: 1\n\n"), 100, "event 7:message\nid 1:1\n");
    assert_replay(replay_sse, SPAN("retry: 3000\n\n"), 100, "event 7:message\nretry 3000\n");
    /* An event name without data is no event, and the next event does not get the name. */
    assert_replay(replay_sse, SPAN("event: lost\n\ndata: a\n\n"), 100,
                  "event 7:message\ndata 1:a\n");
}

static void test_retry_takes_digits_only(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("retry: 1s\n\nretry: -1\n\nretry:\n\nretry: 1 \n\n"), 100, "");
    assert_replay(replay_sse, SPAN("retry: 99999999999999999999999\n\n"), 100,
                  "event 7:message\nretry 9223372036854775807\n");
    assert_replay(replay_sse, SPAN("retry: 5\n\ndata: a\n\n"), 100,
                  "event 7:message\nretry 5\nevent 7:message\ndata 1:a\n");
}

static void test_unfinished_event_is_not_given(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("data: a\n\ndata: b\n"), 100, "event 7:message\ndata 1:a\n");
    assert_replay(replay_sse, SPAN("data: a\n\ndata: b"), 100, "event 7:message\ndata 1:a\n");
}

static void test_cap_bounds_line_and_event(void **state)
{
    (void)state;
    assert_replay(replay_sse, SPAN("data: 4567890\n\n"), 13, "event 7:message\ndata 7:4567890\n");
    assert_replay(replay_sse, SPAN("data: a\n\ndata: 45678901\n\n"), 13,
                  "event 7:message\ndata 1:a\ntoo large\n");
    assert_replay(replay_sse, SPAN("data: a\n\n: a comment as long as this"), 13,
                  "event 7:message\ndata 1:a\ntoo large\n");
    assert_replay(replay_sse, SPAN("data: 456\ndata: 456\ndata: 456\ndata: 456\n\n"), 13,
                  "too large\n");
    /* Comments do not count towards the size of an event. */
    assert_replay(replay_sse, SPAN("data: a\n: beat\n: beat\n: beat\n: beat\ndata: b\n\n"), 13,
                  "event 7:message\ndata 3:a\nb\n");
}

static void note_event(void *seen, const struct sse_event *event)
{
    buf_printf(seen, "%s " SPAN_FMT "\n", event->cut ? "cut" : "whole",
               SPAN_ARG(span_cut(event->data, 0, 4)));
}

/* With `skips`, the stream continues after an event that is too long, however the input is cut. */
static void test_a_decoder_that_skips(void **state)
{
    const struct span text = SPAN("data: 1\n\ndata: 2345678901234567890\nid: 7\n\ndata: 3\n\n"
                                  "data: 44\ndata: 567890123\ndata: 6\n\ndata: 7\n\n");

    (void)state;
    for (size_t step = 1; step <= text.n; step++) {
        struct sse_decoder d;
        struct buf seen = {0};
        sse_decoder_init(&d, 13);
        d.skips = true;
        for (size_t at = 0; at < text.n; at += step)
            assert_int_equal(sse_feed(&d, span_cut(text, at, step), note_event, &seen), 0);
        assert_string_equal(buf_cstr(&seen), "whole 1\ncut 2345\nwhole 3\ncut 44\nwhole 7\n");
        sse_decoder_fini(&d);
        buf_fini(&seen);
    }
}

static void stop_at_event(void *decoder, const struct sse_event *event)
{
    assert_true(span_is(event->data, "a"));
    sse_decoder_stop(decoder);
}

static void test_stop_ends_the_events(void **state)
{
    (void)state;
    struct sse_decoder d;

    sse_decoder_init(&d, 100);
    assert_int_equal(sse_feed(&d, SPAN("data: a\n\ndata: b\n\n"), stop_at_event, &d), 0);
    assert_int_equal(sse_feed(&d, SPAN("data: c\n\n"), stop_at_event, &d), 0);
    sse_decoder_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_event),
        cmocka_unit_test(test_every_kind_of_line_end),
        cmocka_unit_test(test_cr_ends_an_event_at_once),
        cmocka_unit_test(test_byte_order_mark_only_at_the_start),
        cmocka_unit_test(test_only_one_blank_is_removed),
        cmocka_unit_test(test_empty_data_lines_count),
        cmocka_unit_test(test_comments_and_unknown_fields_are_ignored),
        cmocka_unit_test(test_id_stays_for_later_events),
        cmocka_unit_test(test_events_without_data),
        cmocka_unit_test(test_retry_takes_digits_only),
        cmocka_unit_test(test_unfinished_event_is_not_given),
        cmocka_unit_test(test_cap_bounds_line_and_event),
        cmocka_unit_test(test_a_decoder_that_skips),
        cmocka_unit_test(test_stop_ends_the_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
