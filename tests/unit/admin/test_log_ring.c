/* The last lines of the log: which are kept, and what readers get that ask again. */
#include "../unit.h"

#include "admin/log_ring.h"
#include "wire/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { KEEP = 64 * 1024 };

static struct log_ring ring;

/* Log lines also go to stderr, which is sent to /dev/null here. */
static int begin(void **state)
{
    static int before;
    int nowhere = open("/dev/null", O_WRONLY);

    before = dup(STDERR_FILENO);
    *state = &before;
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    log_ring_begin(&ring, KEEP);
    return 0;
}

static int end(void **state)
{
    int *before = *state;

    log_ring_end(&ring);
    log_forget_secrets();
    log_set_level(LOG_INFO);
    dup2(*before, STDERR_FILENO);
    close(*before);
    return 0;
}

/* Everything, from the beginning. */
static struct log_question all(void)
{
    return (struct log_question){.has_after = true, .limit = 10000, .level = LOG_DEBUG};
}

/* Checks the answer: the texts, each with a bar after it, then `next` and `lost`. */
static void expect(struct log_question q, const char *wanted)
{
    struct buf answer = {0}, got = {0}, scratch = {0};

    log_ring_put(&answer, &ring, &q);
    struct span json = buf_view(&answer);
    assert_int_equal(json_skim(json, NULL, NULL, NULL, NULL), 0);
    for (struct json_iter it = json_iter(json_get(json, "lines").value); json_next(&it);) {
        buf_span(&got, json_text(json_get(it.value, "text").value, &scratch));
        buf_char(&got, '|');
    }
    buf_printf(&got, " next " SPAN_FMT " lost " SPAN_FMT, SPAN_ARG(json_get(json, "next").value),
               SPAN_ARG(json_get(json, "lost").value));
    assert_string_equal(buf_cstr(&got), wanted);
    buf_fini(&answer);
    buf_fini(&got);
    buf_fini(&scratch);
}

static void test_a_line(void **state)
{
    struct buf answer = {0};
    struct log_question q = all();

    (void)state;
    log_warn("files/2", "say \"%s\"\n", "hi");
    log_ring_put(&answer, &ring, &q);
    char *text = buf_take(&answer), *at = strstr(text, "\"at\":\"2");
    assert_non_null(at);
    memset(at + 6, '9', strlen("2026-11-15T18:40:00.123"));
    char wanted[512];
    snprintf(wanted, sizeof wanted,
             "{\"lines\":[{\"seq\":1,\"at\":\"99999999999999999999999Z\",\"level\":\"warn\","
             "\"who\":\"files/2\",\"text\":\"say \\\"hi\\\"\\n\"}],\"next\":2,\"lost\":0,"
             "\"run\":\"%s\"}",
             ring.run);
    assert_string_equal(text, wanted);
    mem_free(text);
}

static void test_coming_back(void **state)
{
    struct log_question q = all();

    (void)state;
    expect(q, " next 1 lost 0");
    log_info("a", "one");
    log_info("a", "two");
    expect(q, "one|two| next 3 lost 0");
    q.after = 3;
    expect(q, " next 3 lost 0");
    log_info("a", "three");
    expect(q, "three| next 4 lost 0");
    /* In portions. */
    q.after = 1;
    q.limit = 2;
    expect(q, "one|two| next 3 lost 0");
    q.limit = 0;
    expect(q, " next 1 lost 0");
}

static void test_the_last_ones(void **state)
{
    struct log_question q = {.limit = 2, .level = LOG_DEBUG};

    (void)state;
    for (int i = 1; i <= 5; i++)
        log_info(i % 2 ? "odd" : "even", "%d", i);
    expect(q, "4|5| next 6 lost 0");
    q.who = SPAN("odd");
    expect(q, "3|5| next 6 lost 0");
    q.limit = 0;
    expect(q, " next 6 lost 0");
}

static void test_whose_and_how_bad(void **state)
{
    struct log_question q = all();

    (void)state;
    log_set_level(LOG_DEBUG);
    log_debug("files", "d");
    log_info("files/3", "i");
    log_warn("files2", "w");
    log_error("files", "e");
    q.who = SPAN("files");
    expect(q, "d|i|e| next 5 lost 0");
    q.level = LOG_WARN;
    expect(q, "e| next 5 lost 0");
    q.who = SPAN_EMPTY;
    expect(q, "w|e| next 5 lost 0");
    /* `next` skips lines that the filter left out, but not lines beyond the limit. */
    q.limit = 1;
    expect(q, "w| next 4 lost 0");
}

static void test_numbers_of_another_run(void **state)
{
    struct log_question q = all();

    (void)state;
    log_info("a", "one");
    q.after = 500;
    expect(q, "one| next 2 lost 0");
}

static void test_bounded_by_bytes(void **state)
{
    char text[2000];
    struct log_question q = all();
    struct buf answer = {0};

    (void)state;
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 1000; i++) {
        log_info("a", "%.*s", 1 + (i * 37) % (int)sizeof text, text);
        assert_true(ring.used <= KEEP);
    }
    assert_true(ring.used > KEEP - 3000); /* the ring is nearly full */
    log_ring_put(&answer, &ring, &q);
    int64_t n = 0, lost = 0, next = 0;
    for (struct json_iter it = json_iter(json_get(buf_view(&answer), "lines").value);
         json_next(&it);)
        n++;
    assert_true(json_int(json_get(buf_view(&answer), "lost").value, &lost));
    assert_true(json_int(json_get(buf_view(&answer), "next").value, &next));
    assert_int_equal(next, 1001);
    assert_true(n > 30 && lost > 0);
    assert_int_equal(lost + n, 1000);
    /* Nothing is lost for a reader that asks only for lines that are still kept. */
    q.after = (uint64_t)lost + 1;
    buf_reset(&answer, 0);
    log_ring_put(&answer, &ring, &q);
    assert_true(span_is(json_get(buf_view(&answer), "lost").value, "0"));
    buf_fini(&answer);
}

/* The longest lines are cut, between characters. */
static void test_long_lines(void **state)
{
    enum { SIZE = 30 * 1000 };
    struct buf text = {0};
    struct log_question q = all();
    struct buf answer = {0};

    (void)state;
    while (text.n < SIZE)
        buf_str(&text, "\xe2\x82\xac");
    log_info("a", "x%s", buf_cstr(&text));
    log_ring_put(&answer, &ring, &q);
    struct json_iter it = json_iter(json_get(buf_view(&answer), "lines").value);
    assert_true(json_next(&it));
    struct span shown = json_get(it.value, "text").value;
    assert_true(shown.n > 10000 && shown.n < 13000);
    assert_int_equal((shown.n - 3) % 3, 0);
    assert_null(strstr(buf_cstr(&answer), "\xef\xbf\xbd"));
    buf_fini(&answer);
    buf_fini(&text);
}

/* A secret that was added after the line was logged is hidden too. */
static void test_secrets(void **state)
{
    struct log_question q = all();

    (void)state;
    log_add_secret(SPAN("hunter22"));
    log_info("a", "first hunter22, then swordfish");
    log_add_secret(SPAN("swordfish"));
    expect(q, "first ***, then ***| next 2 lost 0");
}

static void test_off(void **state)
{
    (void)state;
    log_ring_end(&ring);
    log_ring_begin(&ring, 0);
    log_info("a", "one");
    expect(all(), " next 1 lost 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_line, begin, end),
        cmocka_unit_test_setup_teardown(test_coming_back, begin, end),
        cmocka_unit_test_setup_teardown(test_the_last_ones, begin, end),
        cmocka_unit_test_setup_teardown(test_whose_and_how_bad, begin, end),
        cmocka_unit_test_setup_teardown(test_numbers_of_another_run, begin, end),
        cmocka_unit_test_setup_teardown(test_bounded_by_bytes, begin, end),
        cmocka_unit_test_setup_teardown(test_long_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_secrets, begin, end),
        cmocka_unit_test_setup_teardown(test_off, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
