/* What single pieces of text cost; tests/e2e/tokens_cost.test.mjs compares whole estimates with a
 * real tokenizer. */
#include "../unit.h"

#include "base/buf.h"
#include "wire/tokens.h"

/* How much more a tool with this schema costs than one whose schema is 0. */
static size_t of(const char *json)
{
    BUF_SCOPED tool = {0};

    buf_printf(&tool, "{\"inputSchema\":%s}", json);
    return tokens_of_tool(buf_view(&tool)) - tokens_of_tool(SPAN("{\"inputSchema\":0}")) + 1;
}

static void test_pieces(void **state)
{
    (void)state;
    assert_int_equal(of("12"), 1);
    assert_int_equal(of("123456"), 2);
    assert_int_equal(of("[1,2]") - of("[1]"), 2);
    assert_int_equal(of("\"the cat sat\"") - of("\"the\""), 2); /* a blank belongs to its word */
    assert_int_equal(of("\"getUserName\"") - of("\"get\""), 2); /* cut at the capitals */
    assert_true(of("\"incomprehensibilities\"") > of("\"cat\""));
}

static void test_blanks_between_tokens_cost_nothing(void **state)
{
    (void)state;
    assert_int_equal(of("{ \"a\" : [ 1 ,\n\t2 ] }"), of("{\"a\":[1,2]}"));
    assert_true(of("\"a  b\"") > of("\"a b\""));
}

static void test_escapes(void **state)
{
    (void)state;
    assert_int_equal(of("\"\\u0434\\u043e\\u043c\""), of("\"\xd0\xb4\xd0\xbe\xd0\xbc\""));
    assert_int_equal(of("\"a\\\"b\""), of("\"a\\\\b\"")); /* an escaped quote ends no string */
}

static void test_tools(void **state)
{
    static const char tool[] = "{\"title\":\"not counted\",\"name\":\"echo\",\"inputSchema\":{},"
                               "\"annotations\":{\"readOnlyHint\":true}}";
    static const char plain[] = "{\"name\":\"echo\",\"inputSchema\":{}}";

    (void)state;
    assert_int_equal(tokens_of_tool(span_str(tool)), tokens_of_tool(span_str(plain)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_blanks_between_tokens_cost_nothing),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_tools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
