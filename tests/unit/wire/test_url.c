#include "wire/url.h"

#include "../unit.h"
#include "base/mem.h"

static void test_parts(void **state)
{
    static const struct {
        const char *text, *origin, *host;
        int port;
        const char *path, *query;
        bool safe;
    } rows[] = {
        {"https://a.example", "https://a.example", "a.example", 443, "", "", true},
        {"HTTPS://A.example:8443/a/b?c=d", "HTTPS://A.example:8443", "A.example", 8443, "/a/b",
         "?c=d", true},
        {"http://a.example:/", "http://a.example:", "a.example", 80, "/", "", false},
        {"http://127.0.0.1:80?q", "http://127.0.0.1:80", "127.0.0.1", 80, "", "?q", true},
        {"http://[::1]:9/x", "http://[::1]:9", "[::1]", 9, "/x", "", true},
        {"http://localhost/@x", "http://localhost", "localhost", 80, "/@x", "", true},
        {"http://127.0.0.1.evil.example/", "http://127.0.0.1.evil.example",
         "127.0.0.1.evil.example", 80, "/", "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct url_parts u;
        assert_true(url_read(&u, span_str(rows[i].text)));
        assert_true(span_is(u.origin, rows[i].origin));
        assert_true(span_is(u.host, rows[i].host));
        assert_int_equal(u.port, rows[i].port);
        assert_true(span_is(u.path, rows[i].path));
        assert_true(span_is(u.query, rows[i].query));
        assert_int_equal(url_is_safe(&u), rows[i].safe);
    }
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "a.example",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ftp://a.example/",
        "https:/a.example",
        "https:a.example",
        "https://",
        "https:///path",
        "https://user@a.example/",
        "https://user:pw@a.example/",
        "https://a.example\\@evil.example/",
        "https://a.example/#fragment",
        "https://a.example/a b",
        "https://a.example/\"",
        "https://a.example/`id`",
        "https://a.example/\n",
        "https://a.example:0/",
        "https://a.example:65536/",
        "https://a.example:80x/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[a.example]/",
        "https://a%2eexample/",
        "https://\xc3\xa4.example/",
    };
    struct buf longest = {0};
    struct url_parts u;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_false(url_read(&u, span_str(rows[i])));
    buf_str(&longest, "https://a.example/");
    while (longest.n < URL_MAX)
        buf_char(&longest, 'a');
    assert_true(url_read(&u, buf_view(&longest)));
    buf_char(&longest, 'a');
    assert_false(url_read(&u, buf_view(&longest)));
    buf_fini(&longest);
}

static void test_resource(void **state)
{
    static const struct {
        const char *url, *resource;
    } rows[] = {
        {"HTTPS://A.Example/Mcp?X=Y", "https://a.example/Mcp?X=Y"},
        {"https://a.example/", "https://a.example"},
        {"https://a.example:8443/mcp/", "https://a.example:8443/mcp/"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf out = {0};
        struct url_parts u;
        assert_true(url_read(&u, span_str(rows[i].url)));
        url_put_resource(&out, &u);
        assert_string_equal(buf_cstr(&out), rows[i].resource);
        buf_fini(&out);
    }
}

static void test_origins(void **state)
{
    static const struct {
        const char *one, *two;
        bool same;
    } rows[] = {
        {"https://a.example", "https://A.EXAMPLE:443/x", true},
        {"http://a.example", "http://a.example:80", true},
        {"http://a.example", "https://a.example", false},
        {"https://a.example", "https://a.example:444", false},
        {"https://a.example", "https://b.a.example", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct url_parts a, b;
        assert_true(url_read(&a, span_str(rows[i].one)) && url_read(&b, span_str(rows[i].two)));
        assert_int_equal(url_same_origin(&a, &b), rows[i].same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_resource),
        cmocka_unit_test(test_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
