/* What pages return, as MCP results: every shape of a page's answer. */
#include "../unit.h"
#include "browser/result.h"

#include "base/mem.h"

static void expect_result(const char *given, const char *wanted, bool failed)
{
    struct buf out = {0};

    assert_int_equal(result_put(&out, span_str(given), false), failed);
    assert_string_equal(buf_cstr(&out), wanted);
    buf_fini(&out);
}

static void test_content_passes_through(void **state)
{
    static const char *const same[] = {
        "{\"content\":[],\"isError\":false}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}],\"isError\":false}",
        "{\"x\":1.50,\"content\":[{\"type\":\"audio\",\"data\":\"AA==\"}],\"_meta\":{\"a\":null}}",
        "{\"content\":[{\"type\":\"image\",\"data\":\"iVBORw0KGgo=\",\"mimeType\":\"image/png\"}]}",
        "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":\"t\"}}]}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(same); i++)
        expect_result(same[i], same[i], false);
    expect_result("{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"isError\":true}",
                  "{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"isError\":true}", true);
}

static void test_anything_else_is_wrapped(void **state)
{
    (void)state;
    expect_result("{\"content\":\"Article text here...\",\"wordCount\":523}",
                  "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"content\\\":\\\"Article text "
                  "here...\\\",\\\"wordCount\\\":523}\"}]}",
                  false);
    expect_result("\"a\"", "{\"content\":[{\"type\":\"text\",\"text\":\"\\\"a\\\"\"}]}", false);
    expect_result("null", "{\"content\":[{\"type\":\"text\",\"text\":\"null\"}]}", false);
    /* JSON is written without white space between tokens; strings keep their spaces. */
    expect_result("{ \"a b\" :\t[ 1 ,\r\n2 ], \"c\\\" d\": \"e  f\" }",
                  "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a b\\\":[1,2],"
                  "\\\"c\\\\\\\" d\\\":\\\"e  f\\\"}\"}]}",
                  false);
    expect_result("{\"content\":[1]}",
                  "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"content\\\":[1]}\"}]}", false);
}

static void test_structured(void **state)
{
    struct buf out = {0};

    (void)state;
    assert_false(result_put(&out, SPAN("{\"a\":1}"), true));
    assert_string_equal(buf_cstr(&out), "{\"content\":[{\"type\":\"text\",\"text\":\"{"
                                        "\\\"a\\\":1}\"}],\"structuredContent\":{\"a\":1}}");
    out.n = 0;
    assert_false(result_put(&out, SPAN("[1]"), true));
    assert_string_equal(buf_cstr(&out), "{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"}]}");
    out.n = 0;
    assert_false(result_put(&out, SPAN("{\"content\":[]}"), true));
    assert_string_equal(buf_cstr(&out), "{\"content\":[]}");
    buf_fini(&out);
}

static void test_items_are_mended(void **state)
{
    (void)state;
    expect_result("{\"content\":[{\"type\":\"json\",\"data\":[1]},{\"type\":\"json\"}]}",
                  "{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"},"
                  "{\"type\":\"text\",\"text\":\"null\"}]}",
                  false);
    expect_result(
        "{\"content\":[{\"type\":\"image\",\"data\":\"data:image/jpeg;base64,/9j/4AA\"}]}",
        "{\"content\":[{\"type\":\"image\",\"data\":\"/9j/4AA\",\"mimeType\":"
        "\"image/jpeg\"}]}",
        false);
    expect_result(
        "{\"content\":[{\"type\":\"image\",\"data\":\"hello\",\"mimeType\":\"image/png\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}", false);
    expect_result("{\"content\":[{\"type\":\"resource\",\"uri\":\"a:b\",\"blob\":\"AA==\"}]}",
                  "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":"
                  "\"AA==\"}}]}",
                  false);
    expect_result("{\"content\":[{\"type\":\"resource\",\"uri\":\"a:b\"}]}",
                  "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"a:b\"}]}",
                  false);
}

static void expect_error(const char *given, const char *wanted)
{
    struct buf out = {0};

    result_put_error(&out, span_str(given));
    assert_string_equal(buf_cstr(&out), wanted);
    buf_fini(&out);
}

static void test_errors(void **state)
{
    (void)state;
    expect_error("{\"code\":\"TOOL_NOT_FOUND\",\"message\":\"m\"}",
                 "{\"code\":-32601,\"message\":\"m\",\"data\":{\"btcpCode\":\"TOOL_NOT_FOUND\"}}");
    expect_error("{\"code\":\"INVALID_PARAMS\",\"message\":\"m\"}",
                 "{\"code\":-32602,\"message\":\"m\",\"data\":{\"btcpCode\":\"INVALID_PARAMS\"}}");
    expect_error("{\"code\":\"NEW\",\"message\":\"m\"}",
                 "{\"code\":-32603,\"message\":\"m\",\"data\":{\"btcpCode\":\"NEW\"}}");
    expect_error("{\"code\":-32601,\"message\":\"m\"}",
                 "{\"code\":-32601,\"message\":\"m\",\"data\":{\"btcpCode\":-32601}}");
    expect_error("{\"code\":-32000,\"message\":\"m\"}",
                 "{\"code\":-32603,\"message\":\"m\",\"data\":{\"btcpCode\":-32000}}");
    expect_error("{}", "{\"code\":-32603,\"message\":\"the page reported an error\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_passes_through),
        cmocka_unit_test(test_anything_else_is_wrapped),
        cmocka_unit_test(test_structured),
        cmocka_unit_test(test_items_are_mended),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
