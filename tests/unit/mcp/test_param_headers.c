#include "../unit.h"
#include "mcp/param_headers.h"

#define TOOL(properties)                                                                           \
    "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" properties "}}}"

static void test_valid_annotations(void **state)
{
    static const struct {
        const char *tool;
        bool valid;
    } rows[] = {
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}"), true},
        {TOOL("\"r\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"}"), true},
        {TOOL("\"o\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"boolean\",\"x-mcp-"
              "header\":\"B\"}}}"),
         true},
        {TOOL(""), true},
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"\"}"), false},
        {TOOL("\"r\":{\"type\":\"number\",\"x-mcp-header\":\"N\"}"), false},
        {TOOL("\"r\":{\"type\":\"object\",\"x-mcp-header\":\"N\"}"), false},
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}"), false},
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"a:b\"}"), false},
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"\\u00e9\"}"), false},
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":7}"), false},
        {TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"s\":{\"type\":\"string\",\"x-"
              "mcp-header\":\"a\"}"),
         false},
        {TOOL("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}"),
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(param_headers_valid(span_str(rows[i].tool)), rows[i].valid);
    assert_true(param_headers_possible(span_str(rows[0].tool)));
    assert_false(param_headers_possible(SPAN("{\"name\":\"t\"}")));
}

static const char *const tool = TOOL("\"r\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
                                     "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"Count\"},"
                                     "\"plain\":{\"type\":\"string\"},"
                                     "\"o\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":"
                                     "\"boolean\",\"x-mcp-header\":\"B\"}}}");

static void test_headers_are_sent(void **state)
{
    struct buf out = {0};

    (void)state;
    param_headers_put(&out, span_str(tool),
                      SPAN("{\"r\":\"\\u00e9\",\"n\":42,\"plain\":\"x\",\"o\":{\"b\":true}}"));
    assert_string_equal(buf_cstr(&out), "Mcp-Param-Region: =?base64?w6k=?=\r\n"
                                        "Mcp-Param-Count: 42\r\n"
                                        "Mcp-Param-B: true\r\n");
    out.n = 0;
    param_headers_put(&out, span_str(tool), SPAN("{\"r\":null,\"plain\":\"x\"}"));
    assert_int_equal(out.n, 0);
    param_headers_put(&out, span_str(tool), SPAN("{\"r\":\"\"}"));
    assert_string_equal(buf_cstr(&out), "Mcp-Param-Region: \r\n");
    buf_fini(&out);
}

/* Finds a header in a list of names and values that ends with NULL. */
static struct span header_of(void *arg, struct span name)
{
    const char *const *rows = arg;

    for (; *rows; rows += 2)
        if (span_eq_nocase(span_str(rows[0]), name))
            return span_str(rows[1]);
    return SPAN_EMPTY;
}

static bool matches(const char *arguments, const char *const *headers)
{
    return param_headers_match(span_str(tool), span_str(arguments), header_of, (void *)headers);
}

static void test_headers_are_checked(void **state)
{
    static const char *const both[] = {"mcp-param-region", "eu", "mcp-param-count", "042", NULL};
    static const char *const region[] = {"mcp-param-region", "eu", NULL};
    static const char *const none[] = {NULL};

    (void)state;
    assert_false(matches("{\"r\":\"eu\",\"n\":42}", both)); /* 042 is no JSON integer */
    assert_true(matches("{\"r\":\"eu\"}", region));
    assert_false(matches("{\"r\":\"us\"}", region));
    assert_false(matches("{\"r\":\"eu\"}", none));
    assert_false(matches("{}", region)); /* a header for an argument that is missing */
    assert_true(matches("{\"plain\":\"x\"}", none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_annotations),
        cmocka_unit_test(test_headers_are_sent),
        cmocka_unit_test(test_headers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
