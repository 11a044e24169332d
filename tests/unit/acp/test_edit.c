/* One member is changed, every other byte stays the same. */
#include "../unit.h"
#include "acp/json_edit.h"

static void expect_set(const char *object, const char *const *path, const char *expected)
{
    struct buf out = {0};

    json_edit_set(&out, span_str(object), path, SPAN("true"));
    assert_string_equal(buf_cstr(&out), expected);
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    buf_fini(&out);
}

static void test_set(void **state)
{
    (void)state;
    expect_set("{}", EDIT_PATH("a"), "{\"a\":true}");
    expect_set("{ \"z\" : 1.50 }", EDIT_PATH("a", "b"), "{\"a\":{\"b\":true}, \"z\" : 1.50 }");
    expect_set("{\"a\":{\"b\":[1, 2],\"c\":1e3}}", EDIT_PATH("a", "b"),
               "{\"a\":{\"b\":true,\"c\":1e3}}");
    expect_set("{\"a\":null}", EDIT_PATH("a", "b", "c"), "{\"a\":{\"b\":{\"c\":true}}}");
    expect_set("{\"\\u0061\":1}", EDIT_PATH("a"), "{\"\\u0061\":true}");
}

static void expect_removed(const char *object, const char *const *path, const char *expected)
{
    struct buf out = {0};

    json_edit_remove(&out, span_str(object), path);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void test_remove(void **state)
{
    (void)state;
    expect_removed("{\"a\":1,\"b\":2,\"c\":3}", EDIT_PATH("b"), "{\"a\":1,\"c\":3}");
    expect_removed("{\"a\":1}", EDIT_PATH("a"), "{}");
    expect_removed("{\"a\" : 1}", EDIT_PATH("x"), "{\"a\" : 1}");
    expect_removed("{\"a\":{\"b\":1,\"c\":2.0}}", EDIT_PATH("a", "b"), "{\"a\":{\"c\":2.0}}");
    expect_removed("{\"a\":7}", EDIT_PATH("a", "b"), "{\"a\":7}");
}

static void test_truthy(void **state)
{
    (void)state;
    assert_true(json_edit_truthy(SPAN("{\"a\":{\"b\":{}}}"), EDIT_PATH("a", "b")));
    assert_true(json_edit_truthy(SPAN("{\"a\":true}"), EDIT_PATH("a")));
    assert_false(json_edit_truthy(SPAN("{\"a\":false}"), EDIT_PATH("a")));
    assert_false(json_edit_truthy(SPAN("{\"a\":null}"), EDIT_PATH("a")));
    assert_false(json_edit_truthy(SPAN("{\"a\":1}"), EDIT_PATH("a", "b")));
    assert_false(json_edit_truthy(SPAN("{}"), EDIT_PATH("a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_truthy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
