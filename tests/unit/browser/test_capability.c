/* Names of capabilities: which are valid, and which others a granted one covers. */
#include "../unit.h"
#include "browser/capability.h"

#include "base/mem.h"

static bool covers(const char *granted, const char *wanted)
{
    return capability_covers(span_str(granted), span_str(wanted));
}

static void test_implications(void **state)
{
    (void)state;
    assert_true(covers("dom:write", "dom:write"));
    assert_true(covers("dom:write", "dom:read"));
    assert_false(covers("dom:read", "dom:write"));
    assert_true(covers("storage:indexed:write", "storage:indexed:read"));
    assert_false(covers("storage:local:write", "storage:session:read"));
    assert_false(covers("storage:cookie:write", "storage:cookie:read"));
    assert_true(covers("network:fetch:cross-origin", "network:fetch:same-origin"));
    assert_false(covers("network:fetch:same-origin", "network:fetch:cross-origin"));
}

static void test_wildcards(void **state)
{
    (void)state;
    assert_true(covers("dom:*", "dom:write"));
    assert_true(covers("storage:*", "storage:local:read"));
    assert_true(covers("*", "geolocation"));
    assert_false(covers("dom:*", "domain:write"));
    assert_false(covers("dom:*", "dom"));
    /* A star counts only after a colon, and only in a granted name, not in a requested one. */
    assert_false(covers("d*", "dom:read"));
    assert_false(covers("dom:read", "dom:*"));
}

static void test_names(void **state)
{
    static const char *const good[] = {"dom:read", "geolocation", "network:fetch:same-origin",
                                       "dom:*", "x.y_z"};
    static const char *const bad[] = {"", "dom read", "dom\n", "d\"om", "\xc3\xa4"};
    char longest[CAPABILITY_MAX + 2];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(capability_is_valid(span_str(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(capability_is_valid(span_str(bad[i])));
    memset(longest, 'a', sizeof longest);
    assert_true(capability_is_valid(span_of(longest, CAPABILITY_MAX)));
    assert_false(capability_is_valid(span_of(longest, CAPABILITY_MAX + 1)));
    assert_false(capability_is_valid(span_of("a\0b", 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_implications),
        cmocka_unit_test(test_wildcards),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
