/* Component command lines: shell words, variables, JSON, and a dialect in front. */
#include "../unit.h"
#include "acp/command_line.h"

/* `expected` is argv joined by "|", then env joined by ";". */
static void expect(const char *line, const char *expected)
{
    struct command_line c;
    struct err err = {0};
    struct buf out = {0};

    int code = command_line_parse(&c, span_str(line), &err);
    if (code) {
        buf_printf(&out, "error: %s", err.text);
    } else {
        for (size_t i = 0; i < c.n_argv; i++)
            buf_printf(&out, "%s%s", i ? "|" : "", c.argv[i]);
        assert_null(c.argv[c.n_argv]);
        for (size_t i = 0; i < c.n_env; i++)
            buf_printf(&out, ";%s", c.env[i]);
        assert_null(c.env[c.n_env]);
        if (c.dialect != P_UNKNOWN)
            buf_printf(&out, " as %s", proxy_rows[c.dialect].name);
        command_line_fini(&c);
    }
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void test_words(void **state)
{
    (void)state;
    expect("python agent.py", "python|agent.py");
    expect("  a\tb\n c  ", "a|b|c");
    expect("a 'b c' \"d e\" f\\ g", "a|b c|d e|f g");
    expect("a '' \"\"", "a||");
    expect("a 'it'\\''s' \"q\\\"q\\x\"", "a|it's|q\"q\\x");
    expect("a $HOME *", "a|$HOME|*");
    expect("a --x=\"1 2\"", "a|--x=1 2");
}

static void test_variables(void **state)
{
    (void)state;
    expect("K=V _x1='a b' prog X=Y", "prog|X=Y;K=V;_x1=a b");
    expect("1K=V", "1K=V");
    expect("=V", "=V");
    expect("K=V", "error: sets variables, but names no program");
}

static void test_json(void **state)
{
    (void)state;
    expect("{\"command\":\"x\",\"args\":[\"a b\",\"\\u00e9\"],\"env\":{\"K\":\"V\"}}",
           "x|a b|\xc3\xa9;K=V");
    expect(" {\"command\":\"x\"}", "x");
    expect("{\"command\":\"\"}", "error: has no \"command\"");
    expect("{\"args\":[]}", "error: has no \"command\"");
    expect("{\"command\":\"x\",\"args\":[1]}",
           "error: \"args\" has something that is not a plain string");
    expect("{\"command\":\"x\",\"args\":[\"a\\u0000\"]}",
           "error: \"args\" has something that is not a plain string");
    expect("{\"command\":\"x\",\"env\":{\"A=B\":\"c\"}}", "error: \"env\" maps names to strings");
    expect(
        "{\"name\":\"n\",\"command\":\"x\",\"args\":[],\"env\":[]}",
        "error: has the member \"name\": \"command\", \"args\" and \"env\" are known, each once");
    expect("{\"command\":\"x\"", "error: starts like a JSON object, but is none");
}

static void test_dialect(void **state)
{
    (void)state;
    expect("p2:prog a", "prog|a as P2");
    expect("P0: prog", "prog as P0");
    expect("p1:{\"command\":\"x\"}", "x as P1");
    expect("p9:prog", "p9:prog");
    expect("p2:", "p2:");
}

static void test_wrong(void **state)
{
    (void)state;
    expect("", "error: is empty");
    expect("   ", "error: is empty");
    expect("a 'b", "error: a quote is not closed");
    expect("a \"b", "error: a quote is not closed");
    expect("a \\", "error: ends with a backslash");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words), cmocka_unit_test(test_variables),
        cmocka_unit_test(test_json),  cmocka_unit_test(test_dialect),
        cmocka_unit_test(test_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
