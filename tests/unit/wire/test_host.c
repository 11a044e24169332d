#include "wire/host.h"

#include "../unit.h"
#include "base/mem.h"

static void test_names(void **state)
{
    static const struct {
        const char *authority, *name;
        bool loopback;
    } rows[] = {
        {"localhost:8765", "localhost", true},
        {"LocalHost", "LocalHost", true},
        {"127.0.0.1:80", "127.0.0.1", true},
        {"127.9.9.9", "127.9.9.9", true},
        {"[::1]:80", "[::1]", true},
        {"127.0.0.1.evil.example", "127.0.0.1.evil.example", false},
        {"127.evil.example:80", "127.evil.example", false},
        {"localhost.evil.example", "localhost.evil.example", false},
        {"128.0.0.1", "128.0.0.1", false},
        {"0.0.0.0", "0.0.0.0", false},
        {"[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]", false},
        {"[::1", "[::1", false},
        {"", "", false},
        {":80", "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct span name = host_name(span_str(rows[i].authority));
        assert_true(span_is(name, rows[i].name));
        assert_int_equal(host_is_loopback(name), rows[i].loopback);
    }
}

static void test_allowed(void **state)
{
    static const struct {
        const char *authority, *allowed;
        bool fits;
    } rows[] = {
        {"a.example", "A.example", true},
        {"a.example:1", "a.example", true},
        {"a.example:1", "a.example:1", true},
        {"a.example:1", "a.example:11", false},
        {"a.example", "a.example:443", true}, /* the default port */
        {"a.example:", "a.example:443", true},
        {"a.example", "a.example:80", false},
        {"b.a.example", "a.example", false},
        {"a.example.evil", "a.example", false},
        {"[2001:db8::7]:80", "[2001:DB8::7]", true},
        {"[2001:db8::7]:80", "[2001:db8::7]:81", false},
        {"", "a.example", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(
            host_matches(span_str(rows[i].authority), span_str(rows[i].allowed), SPAN("443")),
            rows[i].fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
