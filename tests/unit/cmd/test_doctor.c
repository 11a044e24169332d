#include "../unit.h"

#include "cmd/doctor/doctor.h"
#include "cmd/doctor/heard.h"

#include <stdio.h>

/* --- arguments --- */

static void test_files_by_their_looks(void **state)
{
    static const char *const files[] = {"./x", "../x/y", "server.js", "a/b.py", "~/x", "/x/y.mjs"};
    static const char *const others[] = {
        "-y",           "--root=./x", "@scope/server.js", "x",       "http://127.0.0.1/x.js",
        "${HOME}/x.py", "/data",      "./data:/data",     "sh x.sh", ""};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++)
        assert_true(doctor_names_file(span_str(files[i])));
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(doctor_names_file(span_str(others[i])));
}

static void test_hosts_in_lists(void **state)
{
    struct span list = SPAN("localhost, 127.0.0.1,.example.com,example.org");

    (void)state;
    assert_true(doctor_list_has(list, SPAN("127.0.0.1")));
    assert_true(doctor_list_has(list, SPAN("LocalHost")));
    assert_true(doctor_list_has(list, SPAN("a.example.com")));
    assert_true(doctor_list_has(list, SPAN("example.com")));
    assert_true(doctor_list_has(list, SPAN("a.b.example.org")));
    assert_false(doctor_list_has(list, SPAN("badexample.org")));
    assert_false(doctor_list_has(list, SPAN("27.0.0.1")));
    assert_false(doctor_list_has(SPAN_EMPTY, SPAN("x")));
    assert_false(doctor_list_has(SPAN(","), SPAN("x")));
    assert_true(doctor_list_has(SPAN("*"), SPAN("x")));
}

/* --- what to do --- */

static void check_advice(const char *why, const char *part)
{
    const char *advice = doctor_advice(span_str(why));

    assert_non_null(advice);
    assert_true(span_has_nocase(span_str(advice), span_str(part)));
}

static void test_advice(void **state)
{
    (void)state;
    check_advice("h:1: there is no host of that name", "getent");
    check_advice("h:1: Connection refused", "nothing listens");
    check_advice("h:1: SSL certificate problem: certificate has expired", "`ca` does not help");
    check_advice("h:1: SSL certificate problem: unable to get local issuer certificate", "`ca`");
    check_advice("h:1: SSL certificate problem: self-signed certificate", "`ca`");
    check_advice("SSL: no alternative certificate subject name matches target host name 'x'",
                 "another host");
    check_advice("needs authorization, to be given in 'headers' (HTTP 401)", "Bearer");
    check_advice("refuses us (HTTP 403)", "token");
    check_advice("HTTP 404 Not Found", "/mcp");
    check_advice("HTTP 500 Internal Server Error", "its own log");
    check_advice("exited with 1; its last words: Error: Cannot find module 'x'", "npm install");
    check_advice("exited with 1; its last words: ModuleNotFoundError: No module named 'x'",
                 "Python");
    check_advice("exited with 5", "by hand");
    check_advice("was not ready within 1000 ms", "start_timeout");
    assert_null(doctor_advice(SPAN("all is well")));
    assert_null(doctor_advice(SPAN_EMPTY));
    assert_string_equal(doctor_package(SPAN("npx")), "apt install npm");
    assert_null(doctor_package(SPAN("np")));
    assert_null(doctor_package(SPAN("my-server")));
}

/* --- which process listens --- */

static const char tcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:223D 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 "
    "111 1 0000000000000000 20 4 30 10 -1\n"
    "   1: 0100007F:223D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "222 1 0000000000000000 100 0 0 10 0\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "333 1 0000000000000000 100 0 0 10 0\n";
static const char tcp6[] =
    "  sl  local_address                         remote_address                        st tx_queue "
    "rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 444 1 0000000000000000 100 0 0 10 0\n";

static void test_tcp_table(void **state)
{
    uint64_t inode = 0;

    (void)state;
    assert_true(doctor_tcp_inode(SPAN(tcp), 8765, &inode));
    assert_int_equal(inode, 222); /* not the connection, which has the same port */
    assert_true(doctor_tcp_inode(SPAN(tcp), 22, &inode));
    assert_int_equal(inode, 333);
    assert_true(doctor_tcp_inode(SPAN(tcp6), 8080, &inode));
    assert_int_equal(inode, 444);
    assert_false(doctor_tcp_inode(SPAN(tcp), 8766, &inode));
    assert_false(doctor_tcp_inode(SPAN_EMPTY, 22, &inode));
    for (size_t n = 0; n < sizeof tcp; n += 7) { /* a truncated text is not read past its end */
        struct span cut = unit_exact(span_cut(SPAN(tcp), 0, n));
        (void)doctor_tcp_inode(cut, 1, &inode);
        (void)doctor_unix_inode(cut, "/x", &inode);
        unit_free(cut);
    }
}

static void test_unix_table(void **state)
{
    static const char table[] =
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000000000000000: 00000003 00000000 00000000 0001 03 500 /run/x.sock\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 501 /run/x.sock\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01   502 /run/with blanks/x\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 503\n";
    uint64_t inode = 0;

    (void)state;
    assert_true(doctor_unix_inode(SPAN(table), "/run/x.sock", &inode));
    assert_int_equal(inode, 501);
    assert_true(doctor_unix_inode(SPAN(table), "/run/with blanks/x", &inode));
    assert_int_equal(inode, 502);
    assert_false(doctor_unix_inode(SPAN(table), "/run/x", &inode));
    assert_false(doctor_unix_inode(SPAN(table), "", &inode));
}

/* --- what the log says --- */

static void hear(struct heard *h, enum log_level level, const char *text)
{
    heard_line(h, &(struct log_record){.level = level, .who = "files", .text = span_str(text)});
}

static void test_heard(void **state)
{
    struct heard *h = heard_new();
    char line[32];

    (void)state;
    assert_null(heard_said(h, "files", 0));
    assert_null(heard_error(h, "files"));
    for (int i = 0; i < 23; i++) {
        snprintf(line, sizeof line, "line %d", i);
        hear(h, LOG_INFO, line);
    }
    hear(h, LOG_INFO, "line 22"); /* the same line again after a restart counts once */
    hear(h, LOG_INFO, " ");
    assert_string_equal(heard_said(h, "files", 0), "line 3");
    assert_string_equal(heard_said(h, "files", 19), "line 22");
    assert_null(heard_said(h, "files", 20));
    hear(h, LOG_INFO, "tool 'x' can only be run as a task: not offered");
    hear(h, LOG_WARN, "said something that is not JSON (syntax error): hello");
    hear(h, LOG_WARN, "could not be started: exited with 1");
    assert_string_equal(heard_complaint(h, "files", 0),
                        "tool 'x' can only be run as a task: not offered");
    assert_non_null(heard_complaint(h, "files", 1));
    assert_null(heard_complaint(h, "files", 2));
    hear(h, LOG_ERROR, "is left out");
    assert_string_equal(heard_error(h, "files"), "is left out");
    assert_null(heard_error(h, "others"));
    heard_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_by_their_looks),
        cmocka_unit_test(test_hosts_in_lists),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_tcp_table),
        cmocka_unit_test(test_unix_table),
        cmocka_unit_test(test_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
