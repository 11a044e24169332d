#include "../unit.h"

#include "base/log.h"

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
    check_redact("hunter22-long and hunter22-lon", "*** and ***-lon");
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

/* A token used as the user's name was copied out unread together with "://". */
static void test_secret_as_url_user(void **state)
{
    (void)state;
    log_add_secret(SPAN("ghp_secret"));
    check_redact("https://ghp_secret:x-oauth@host/", "https://***:***@host/");
    check_redact("https://ghp_secret@host/", "https://***@host/");
}

/* What one call writes to stderr. */
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
               "Z error alias: it is ***\\x0a\\x1b[31m\n");
    check_line(
        true, "alias", "say \"s3cret\" \\ \t",
        "\"level\":\"error\",\"who\":\"alias\",\"message\":\"say \\\"***\\\" \\\\ \\u0009\"}\n");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_known_secrets, forget),
        cmocka_unit_test_teardown(test_bearer, forget),
        cmocka_unit_test_teardown(test_urls, forget),
        cmocka_unit_test_teardown(test_url_password_with_at, forget),
        cmocka_unit_test_teardown(test_secret_as_url_user, forget),
        cmocka_unit_test_teardown(test_lines, forget),
        cmocka_unit_test_teardown(test_levels, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
