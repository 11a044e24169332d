#include "../unit.h"

#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

static void check_redact(const char *text, const char *expected)
{
    struct span copy = unit_exact(span_str(text));
    struct buf b = {0};

    log_redact(&b, copy);
    assert_string_equal(buf_cstr(&b), expected);
    buf_fini(&b);
    unit_free(copy);
}

static int forget(void **state)
{
    (void)state;
    log_forget_secrets();
    log_set_level(LOG_INFO);
    log_set_json(false);
    return 0;
}

static void test_known_secrets(void **state)
{
    (void)state;
    check_redact("token hunter22 here", "token hunter22 here");
    log_add_secret(SPAN("hunter22"));
    log_add_secret(SPAN("hunter22-long"));
    log_add_secret(SPAN("abc")); /* too short: it would blank out half of every line */
    check_redact("token hunter22 here", "token *** here");
    check_redact("hunter22hunter22", "******");
    check_redact("hunter22-long and hunter22-lon.", "*** and ***-lon.");
    check_redact("hunter2", "hunter2");
    check_redact("abc", "abc");
    check_redact("", "");
    log_forget_secrets();
    check_redact("hunter22", "hunter22");
}

static void test_bearer(void **state)
{
    (void)state;
    check_redact("Authorization: Bearer abc.DEF-123_~+/==\r\nX: y",
                 "Authorization: Bearer ***\r\nX: y");
    check_redact("{\"authorization\":\"bearer xyz\"}", "{\"authorization\":\"bearer ***\"}");
    check_redact("BEARER t", "BEARER ***");
    check_redact("Bearer ", "Bearer ");
    check_redact("Bearer \"", "Bearer \"");
    check_redact("Bearer a Bearer b", "Bearer *** Bearer ***");
}

static void test_urls(void **state)
{
    (void)state;
    check_redact("http://user:pw@host/path", "http://user:***@host/path");
    check_redact("amqp://:pw@h", "amqp://:***@h");
    check_redact("http://host:80/a@b", "http://host:80/a@b");
    check_redact("http://user@host:80/", "http://user@host:80/");
    check_redact("http://host/x:y@z", "http://host/x:y@z");
    check_redact("see http://a:b@c and http://d:e@f", "see http://a:***@c and http://d:***@f");
    check_redact("http://user:@host", "http://user:@host");
    check_redact("://", "://");
}

/* Only the part up to the first @ was hidden, and the rest of the password was printed. */
static void test_url_password_with_at(void **state)
{
    (void)state;
    check_redact("http://user:p@ss@host/", "http://user:***@host/");
}

/* A token used as the user name was copied to the output unredacted, together with "://". */
static void test_secret_as_url_user(void **state)
{
    (void)state;
    log_add_secret(SPAN("ghp_secret"));
    check_redact("https://ghp_secret:x-oauth@host/", "https://***:***@host/");
    check_redact("https://ghp_secret@host/", "https://***@host/");
}

/* In a token with characters that bearer tokens usually do not have, only the part before the first
 * such character was redacted. Two overlapping secrets had the same problem. */
static void test_secret_beyond_its_shape(void **state)
{
    (void)state;
    log_add_secret(SPAN("abc$def!ghi"));
    log_add_secret(SPAN("x@y/z"));
    check_redact("Authorization: Bearer abc$def!ghi, 401", "Authorization: Bearer ***, 401");
    check_redact("Bearer 1abc$def!ghi", "Bearer ***");
    check_redact("amqp://user:x@y/z@host", "amqp://user:***@host");
    log_add_secret(SPAN("first-second"));
    log_add_secret(SPAN("second-third"));
    check_redact("first-second-third.", "***.");
}

/* Each reload of the configuration added the same secrets again, and each line of the log was
 * compared with all of them: this test never finished. */
static void test_a_secret_is_kept_once(void **state)
{
    char text[4096];

    (void)state;
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 20000; i++)
        log_add_secret(SPAN("told again and again"));
    for (int i = 0; i < 200; i++) {
        struct buf b = {0};
        log_redact(&b, span_of(text, sizeof text));
        assert_int_equal(b.n, sizeof text);
        buf_fini(&b);
    }
}

/* Checks the end of what one log call writes to stderr. */
static void check_line(bool json, const char *who, const char *text, const char *tail)
{
    char got[512] = {0};
    int ends[2], before = dup(STDERR_FILENO);

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_set_json(json);
    log_error(who, "%s", text);
    log_debug(who, "not wanted");
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    ssize_t n = read(ends[0], got, sizeof got - 1);
    close(ends[0]);
    assert_true(n > (ssize_t)strlen(tail));
    assert_string_equal(got + n - strlen(tail), tail);
}

static void test_lines(void **state)
{
    (void)state;
    log_add_secret(SPAN("s3cret"));
    check_line(false, "alias", "it is s3cret\n\x1b[31m",
               "Z error alias: it is ***\\u000a\\u001b[31m\n");
    check_line(
        true, "alias", "say \"s3cret\" \\ \t",
        "\"level\":\"error\",\"who\":\"alias\",\"message\":\"say \\\"***\\\" \\\\ \\u0009\"}\n");
}

/* Programs print any bytes on their standard error. A line that is not UTF-8 made the JSON invalid,
 * so log collectors dropped it. */
static void test_lines_are_text(void **state)
{
    (void)state;
    check_line(true, "alias", "caf\xe9 \xc3\xa9 \xed\xa0\x80",
               "\"message\":\"caf\xef\xbf\xbd \xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n");
    check_line(false, "alias", "caf\xe9 \xc3\xa9", "alias: caf\\xe9 \xc3\xa9\n");
    /* Some terminals treat U+009B like ESC [. */
    check_line(false, "alias",
               "\xc2\x9b"
               "31m",
               "alias: \\u009b31m\n");
    /* U+202E reverses the direction of the text after it. */
    check_line(false, "alias",
               "\xe2\x80\xae"
               "gnp.exe",
               "alias: \\u202egnp.exe\n");
    check_line(true, "alias", "\xe2\x80\xae", "\"message\":\"\\u202e\"}\n");
}

struct listener {
    unsigned heard;
    struct buf text;
    bool answers;
};

static void on_line(void *arg, const struct log_record *line)
{
    struct listener *l = arg;

    l->heard++;
    buf_printf(&l->text, "%s %s: " SPAN_FMT "|", log_level_name(line->level), line->who,
               SPAN_ARG(line->text));
    assert_true(line->at > 1700000000000); /* Unix time, in ms */
    if (l->answers && l->heard < 10)
        log_error("listener", "heard that");
}

/* The listener gets each line that is written, redacted, but not the lines it logs itself. */
static void test_listener(void **state)
{
    struct listener l = {.answers = true};

    (void)state;
    log_add_secret(SPAN("s3cret"));
    log_set_listener(on_line, &l);
    check_line(false, "alias", "it is s3cret\n", "Z error listener: heard that\n");
    check_line(true, "alias", "again", "\"message\":\"heard that\"}\n");
    log_set_listener(NULL, NULL);
    check_line(false, "alias", "unheard", "Z error alias: unheard\n");
    assert_int_equal(l.heard, 2);
    assert_string_equal(buf_cstr(&l.text), "error alias: it is ***\n|error alias: again|");
    buf_fini(&l.text);
}

/* What is in the pipe now. */
static void drain(int fd, struct buf *got)
{
    char block[4096];

    for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;)
        buf_bytes(got, block, (size_t)n);
}

/* A host that did not read our stderr stopped us for ever, in the middle of a line of one server,
 * and with it all the others. The alarm ends this test if it does. */
static void test_nobody_reads(void **state)
{
    struct buf got = {0}, wanted = {0};
    int ends[2], before = dup(STDERR_FILENO);

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 8192) >= 0);
    dup2(ends[1], STDERR_FILENO);
    log_set_json(false);
    alarm(30);
    buf_str(&wanted, "alias: ");
    for (int i = 0; i < 20000; i++)
        buf_char(&wanted, 'x');
    log_info("alias", "%s", buf_cstr(&wanted) + strlen("alias: "));
    for (int i = 0; i < 1000; i++)
        log_info("alias", "lost");
    drain(ends[0], &got);
    for (int i = 0; i < 5; i++) {
        log_info("alias", "line %d", i);
        drain(ends[0], &got);
    }
    alarm(0);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[0]);
    close(ends[1]);
    /* The line that was begun is whole, and those that did not get through are counted. */
    buf_char(&wanted, '\n');
    assert_non_null(strstr(buf_cstr(&got), buf_cstr(&wanted)));
    assert_non_null(strstr(got.p, "Z warn  log: 1001 lines were lost: nobody read them in time\n"));
    assert_non_null(strstr(got.p, "alias: line 4\n"));
    assert_null(strstr(got.p, "alias: lost"));
    buf_fini(&got);
    buf_fini(&wanted);
}

/* Muting is for commands that show log lines in their own way: only the listener gets them. */
static void test_muted(void **state)
{
    struct listener l = {0};
    int ends[2], before = dup(STDERR_FILENO);
    char got;

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    log_set_listener(on_line, &l);
    log_set_muted(true);
    log_error("alias", "not for stderr");
    log_set_muted(false);
    log_set_listener(NULL, NULL);
    dup2(before, STDERR_FILENO);
    close(before);
    assert_int_equal(read(ends[0], &got, 1), -1);
    close(ends[0]);
    close(ends[1]);
    assert_string_equal(buf_cstr(&l.text), "error alias: not for stderr|");
    buf_fini(&l.text);
    check_line(false, "alias", "heard again", "Z error alias: heard again\n");
}

static void test_levels(void **state)
{
    enum log_level level = LOG_ERROR;

    (void)state;
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_false(log_level_parse("loud", &level));
    assert_false(log_level_parse("", &level));
    log_set_level(LOG_WARN);
    assert_true(log_enabled(LOG_ERROR));
    assert_true(log_enabled(LOG_WARN));
    assert_false(log_enabled(LOG_INFO));
}

static void test_seldom(void **state)
{
    (void)state;
    uint64_t last = 0;

    assert_int_equal(log_seldom(&last, 5), LOG_WARN);
    assert_int_equal(log_seldom(&last, 5), LOG_DEBUG);
    assert_int_equal(log_seldom(&last, 1004), LOG_DEBUG);
    assert_int_equal(log_seldom(&last, 1005), LOG_WARN);
    assert_int_equal(log_seldom(&last, 2004), LOG_DEBUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_known_secrets, forget),
        cmocka_unit_test_teardown(test_bearer, forget),
        cmocka_unit_test_teardown(test_urls, forget),
        cmocka_unit_test_teardown(test_url_password_with_at, forget),
        cmocka_unit_test_teardown(test_secret_as_url_user, forget),
        cmocka_unit_test_teardown(test_secret_beyond_its_shape, forget),
        cmocka_unit_test_teardown(test_a_secret_is_kept_once, forget),
        cmocka_unit_test_teardown(test_lines, forget),
        cmocka_unit_test_teardown(test_lines_are_text, forget),
        cmocka_unit_test_teardown(test_listener, forget),
        cmocka_unit_test_teardown(test_nobody_reads, forget),
        cmocka_unit_test_teardown(test_muted, forget),
        cmocka_unit_test_teardown(test_levels, forget),
        cmocka_unit_test(test_seldom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
