/* Where connections for agents may go: hosts checked by name, and addresses by whatever name they
 * were found. */
#include "http_reply.h"

#include "io/http_server.h"
#include "io/reach.h"

#include <dlfcn.h>
#include <netdb.h>

/* Replaces the system's function: a name that looks public resolves to this machine. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*system)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;

    *(void **)&system = dlsym(RTLD_NEXT, "getaddrinfo");
    return system(strcmp(host, "tools.example.com") ? host : "127.0.0.1", service, hints, found);
}

static const char *const hosts[] = {"tools.example.com", "*.Example.org:443", "10.1.2.3:8080",
                                    "[fd00::5]", "localhost:9000"};
static const struct reach reach = {hosts, COUNT_OF(hosts)};
static const struct reach nothing = {NULL, 0};

static void test_names(void **state)
{
    static const struct {
        const char *url;
        bool has;
    } rows[] = {
        {"http://tools.example.com/mcp", true},
        {"https://TOOLS.example.com:8443", true},
        {"wss://tools.example.com/ws", true},
        {"http://example.com/", false},
        {"http://xtools.example.com/", false},
        {"http://tools.example.com.evil.net/", false},
        {"http://tools.example.com@evil.net/", false},
        {"http://evil.net#@tools.example.com/", false},
        {"https://a.example.org/", true},
        {"https://a.b.EXAMPLE.org/", true},
        {"https://example.org/", false},
        {"https://evilexample.org/", false},
        {"http://a.example.org/", false}, /* port 80 */
        {"wss://a.example.org/", true},
        {"http://10.1.2.3:8080/", true},
        {"http://10.1.2.3/", false},
        {"http://[fd00::5]:1234/", true},
        {"http://[fd00::6]/", false},
        {"http://localhost:9000/", true},
        {"http://127.0.0.1:9000/", false},
        {"no url", false},
        {"", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (reach_has_url(&reach, rows[i].url) != rows[i].has)
            fail_msg("%s", rows[i].url);
        assert_false(reach_has_url(&nothing, rows[i].url));
    }
}

static void test_addresses(void **state)
{
    static const char *const open[] = {
        "8.8.8.8",         "1.0.0.1",         "11.0.0.1",        "100.63.255.255",
        "100.128.0.1",     "172.15.0.1",      "172.32.0.1",      "192.169.0.1",
        "223.255.255.255", "2606:4700::1111", "2002:808:808::1", "64:ff9b::808:808",
        "::ffff:8.8.8.8",
    };
    static const char *const closed[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "2002:7f00:1::1",
        "2002:a00:1::",
        "not an address",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(open); i++)
        if (!reach_has_ip(&nothing, open[i], 80))
            fail_msg("%s", open[i]);
    for (size_t i = 0; i < COUNT_OF(closed); i++)
        if (reach_has_ip(&nothing, closed[i], 80) || reach_has_ip(&reach, closed[i], 80))
            fail_msg("%s", closed[i]);
}

/* Only addresses that the operator has written, or `localhost`, and only at the written port. */
static void test_written_addresses(void **state)
{
    (void)state;
    assert_true(reach_has_ip(&reach, "10.1.2.3", 8080));
    assert_true(reach_has_ip(&reach, "::ffff:10.1.2.3", 8080));
    assert_false(reach_has_ip(&reach, "10.1.2.3", 80));
    assert_false(reach_has_ip(&reach, "10.1.2.4", 8080));
    assert_true(reach_has_ip(&reach, "fd00::5", 1));
    assert_true(reach_has_ip(&reach, "127.0.0.1", 9000));
    assert_true(reach_has_ip(&reach, "::1", 9000));
    assert_false(reach_has_ip(&reach, "127.0.0.1", 9001));
    assert_false(reach_has_ip(&reach, "192.168.0.1", 9000));
}

/* --- plain connections, as WebSockets use them --- */

struct attempt {
    int n_done, code;
};

static void on_done(void *owner, struct stream *s, int code)
{
    struct attempt *a = owner;

    assert_null(s);
    a->n_done++;
    a->code = code;
}

static void test_connecting(void **state)
{
    static const char *const away[] = {"127.0.0.1:9", "localhost:9", "[::1]:9", "unix:/nowhere",
                                       "tools.example.com:9"};
    static const char *const here[] = {"tools.example.com", "localhost:10"};
    const struct reach narrow = {here, COUNT_OF(here)};
    struct loop *l = loop_new();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(away); i++) {
        struct attempt a = {0};
        assert_non_null(stream_connect_within(l, &narrow, away[i], on_done, &a));
        WAIT(l, a.n_done == 1);
        assert_int_equal(a.code, ERR_REACH);
    }
    loop_free(l);
}

/* --- HTTP --- */

static void on_request(void *owner, struct http_exchange *x, const struct http_request *req)
{
    ++*(int *)owner;
    if (span_is(req->path, "/moved"))
        http_respond(x, 307, NULL, SPAN("Location: /there\r\n"), SPAN_EMPTY);
    else
        http_respond(x, 200, "text/plain", SPAN_EMPTY, SPAN("hello"));
}

static void on_closed(void *arg)
{
    ++*(int *)arg;
}

static int fetch(struct loop *l, struct http_client *c, const struct reach *to, const char *host,
                 int port)
{
    struct reply r = {0};
    char url[128];

    snprintf(url, sizeof url, "http://%s:%d/moved", host, port);
    r.fetch = http_fetch_start(
        c, &(struct http_fetch_spec){.method = "GET", .url = url, .reach = to}, &reply_events, &r);
    WAIT(l, r.dones == 1);
    assert_true(r.code || r.status == 200);
    reply_fini(&r);
    return r.code;
}

static void test_fetching(void **state)
{
    static const struct http_server_options options = {.max_body = 1024,
                                                       .head_timeout = 5000,
                                                       .body_timeout = 5000,
                                                       .idle_timeout = 5000,
                                                       .max_connections = 100};
    static const char *const names[] = {"tools.example.com"}, *const numbers[] = {"127.0.0.1"};
    const struct reach by_name = {names, 1}, by_number = {numbers, 1};
    struct loop *l = loop_new();
    int requests = 0, closed = 0;
    struct err err;

    (void)state;
    struct http_server *s = http_server_new(l, &options, on_request, &requests);
    assert_int_equal(http_server_listen(s, "127.0.0.1:0", &err), 0);
    int port = atoi(strrchr(http_server_address(s, 0), ':') + 1);
    struct http_client *c = http_client_new(l);

    assert_int_equal(fetch(l, c, &by_number, "127.0.0.1", port), 0);
    assert_int_equal(fetch(l, c, NULL, "127.0.0.1", port), 0);
    requests = 0;
    assert_int_equal(fetch(l, c, &by_name, "127.0.0.1", port), ERR_REACH);
    assert_int_equal(fetch(l, c, &by_name, "localhost", port), ERR_REACH);
    assert_int_equal(fetch(l, c, &by_number, "tools.example.com", port), ERR_REACH);
    assert_int_equal(fetch(l, c, &by_name, "tools.example.com", port), ERR_REACH);
    assert_int_equal(requests, 0);
    /* An open connection of another fetch, which may go there, is not reused either. */
    assert_int_equal(fetch(l, c, NULL, "tools.example.com", port), 0);
    requests = 0;
    assert_int_equal(fetch(l, c, &by_name, "tools.example.com", port), ERR_REACH);
    assert_int_equal(requests, 0);
    assert_int_equal(fetch(l, c, NULL, "tools.example.com", port), 0);

    http_client_free(c);
    http_server_close(s, on_closed, &closed);
    WAIT(l, closed);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_written_addresses),
        cmocka_unit_test(test_connecting),
        cmocka_unit_test(test_fetching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
