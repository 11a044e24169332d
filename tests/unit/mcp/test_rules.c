/* Rules on arguments (docs/decisions/015-rules.md). Each row has the arguments of a call and the
 * expected outcome. */
#include "../unit.h"
#include "base/decimal.h"
#include "core/provider.h"
#include "mcp/judged.h"

static const char *pinned_text;

static const char *pinned(const struct provider *p, struct span tool)
{
    (void)p;
    return span_is(tool, "pin") ? pinned_text : NULL;
}

static const struct provider_ops ops = {.pinned = pinned};

static struct argument text(const char *s)
{
    return (struct argument){ARGUMENT_TEXT, span_str(s)};
}

static struct argument number(const char *s)
{
    return (struct argument){ARGUMENT_NUMBER, span_str(s)};
}

/* "yes" when the rule matches, "no" when it does not, "misleads" when the call is refused. */
static const char *judge(const struct rule *rule, const char *tool, const char *arguments)
{
    struct provider p = {.ops = &ops, .alias = "files"};
    const struct rules rules = {rule, 1, judged_find};
    BUF_SCOPED params = {0};
    BUF_SCOPED scratch = {0};

    buf_printf(&params, "{\"name\":\"%s\"%s%s}", tool, arguments ? ",\"arguments\":" : "",
               arguments ? arguments : "");
    const struct request r = {
        .op = OP_CALL_TOOL, .name = span_str(tool), .params = buf_view(&params)};
    struct ruling ruling = rules_decide(&rules, &p, &r, &scratch);
    return ruling.misleads.n ? "misleads" : ruling.by ? "yes" : "no";
}

struct row {
    const char *arguments, *outcome;
};

static void walk(const struct rule *rule, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(judge(rule, "read", rows[i].arguments), rows[i].outcome) != 0)
            fail_msg("%s: %s, not %s", rows[i].arguments, judge(rule, "read", rows[i].arguments),
                     rows[i].outcome);
}

static void test_matches(void **state)
{
    const struct argument values[] = {text("/etc/*")};
    const struct rule rule = {
        .pointer = SPAN("/path"), .test = RULE_MATCHES, .values = values, .n_values = 1};
    static const struct row rows[] = {
        {"{\"path\":\"/etc/passwd\"}", "yes"},
        {"{\"path\":\"/etc/a/b/c\"}", "yes"},
        {"{\"path\":\"/etc/\"}", "yes"},
        {"{\"path\":\"/Etc/passwd\"}", "no"},
        {"{\"path\":\"/home\"}", "no"},
        {"{\"p\\u0061th\":\"\\u002fetc\\/passwd\"}", "yes"},
        {"{ \"x\" : 1 , \"path\" : \"/etc/x\" }", "yes"},
        {"{\"path\":7}", "no"},
        {"{\"path\":null}", "no"},
        {"{\"path\":[\"/etc/passwd\"]}", "no"},
        {"{}", "no"},
        {"null", "no"},
        {NULL, "no"},
        {"{\"inner\":{\"path\":\"/etc/x\"}}", "no"},
        /* JSON readers of other languages may find another member. */
        {"{\"Path\":\"/etc/passwd\"}", "misleads"},
        {"{\"path\":\"/home\",\"PATH\":\"/etc/x\"}", "misleads"},
        {"{\"path\":\"/home\",\"path\":\"/etc/x\"}", "misleads"},
        {"{\"path\":\"/home\",\"p\\u0061th\":\"/etc/x\"}", "misleads"},
        {"{\"path\\u0000\":\"/etc/x\"}", "misleads"},
        {"{\"path\\u0000x\":\"/etc/x\"}", "misleads"},
        {"{\"path\":\"/etc/passwd\\u0000.txt\"}", "misleads"},
        {"\"{\\\"path\\\":\\\"/etc/passwd\\\"}\"", "misleads"},
        {"[\"/etc/passwd\"]", "misleads"},
    };

    (void)state;
    walk(&rule, rows, COUNT_OF(rows));
}

static void test_pointers(void **state)
{
    const struct rule rule = {.pointer = SPAN("/a~1b/1/m~0n"), .test = RULE_THERE};
    static const struct row rows[] = {
        {"{\"a/b\":[0,{\"m~n\":null}]}", "yes"},
        {"{\"a/b\":[0,{\"m\":1}]}", "no"},
        {"{\"a/b\":[{\"m~n\":1}]}", "no"},
        {"{\"a/b\":{\"1\":{\"m~n\":1}}}", "yes"},
        {"{\"a/b\":{\"01\":{\"m~n\":1}}}", "no"},
        {"{\"a/b\":true}", "no"},
        {"{\"a/b\":\"plain text\"}", "no"},
        {"{\"a/b\":\" [0,{}]\"}", "misleads"},
        {"{\"A/B\":[]}", "misleads"},
        {"{\"a/b\":[0,{\"m~n\":1,\"M~n\":2}]}", "misleads"},
        {"{\"a/b\":[0,{\"x\":1,\"x\":2,\"m~n\":1}]}", "yes"},
    };

    (void)state;
    walk(&rule, rows, COUNT_OF(rows));
    const struct rule absent = {.pointer = SPAN("/path"), .test = RULE_ABSENT};
    assert_string_equal(judge(&absent, "read", "{}"), "yes");
    assert_string_equal(judge(&absent, "read", "{\"path\":null}"), "no");
    assert_string_equal(judge(&absent, "read", "{\"Path\":1}"), "misleads");
}

static void test_numbers(void **state)
{
    const struct argument bounds[] = {number("-1.5"), number("9007199254740992")};
    const struct rule range = {
        .pointer = SPAN("/n"), .test = RULE_RANGE, .values = bounds, .n_values = 2};
    static const struct row ranged[] = {
        {"{\"n\":9007199254740992}", "yes"},
        {"{\"n\":9007199254740993}", "no"},
        {"{\"n\":9007199254740992.0000000000000000001}", "no"},
        {"{\"n\":9.007199254740992e15}", "yes"},
        {"{\"n\":9.007199254740993e15}", "no"},
        {"{\"n\":-1.5}", "yes"},
        {"{\"n\":-150e-2}", "yes"},
        {"{\"n\":-1.50000000000000000001}", "no"},
        {"{\"n\":-0}", "yes"},
        {"{\"n\":0e99999999999999999999}", "yes"},
        {"{\"n\":1e999999999999999}", "no"},
        {"{\"n\":1e-999999999999999}", "yes"},
        {"{\"n\":1e9999999999999999}", "misleads"},
        {"{\"n\":\"5\"}", "no"},
        {"{\"n\":true}", "no"},
        {"{}", "no"},
    };
    const struct argument some[] = {
        number("1000"), text("1001"), text("\xc3\xa9"), {ARGUMENT_OTHER, SPAN("true")}};
    const struct rule in = {.pointer = SPAN("/n"), .test = RULE_IN, .values = some, .n_values = 4};
    static const struct row listed[] = {
        {"{\"n\":1e3}", "yes"},         {"{\"n\":1000.000}", "yes"}, {"{\"n\":0.1E+4}", "yes"},
        {"{\"n\":1001}", "no"},         {"{\"n\":\"1001\"}", "yes"}, {"{\"n\":\"1000\"}", "no"},
        {"{\"n\":\"\\u00e9\"}", "yes"}, {"{\"n\":true}", "yes"},     {"{\"n\":\"true\"}", "no"},
        {"{\"n\":false}", "no"},        {"{\"n\":10000}", "no"},     {"{\"n\":100}", "no"},
    };

    (void)state;
    walk(&range, ranged, COUNT_OF(ranged));
    walk(&in, listed, COUNT_OF(listed));
}

static void test_order_of_numbers(void **state)
{
    /* In ascending order; numbers of one group are equal. */
    static const char *const ascending[][3] = {
        {"-1e3", "-1000", "-1000.0"},
        {"-999.9", "-9999e-1", "-999.90"},
        {"-1e-20", "-1e-20", "-0.1e-19"},
        {"0", "-0.0", "0e5"},
        {"1e-20", "0.1e-19", "10e-21"},
        {"0.5", "5e-1", "0.50"},
        {"1", "1.0", "10e-1"},
        {"1.01", "101e-2", "1.010"},
        {"10", "1e1", "1E+1"},
        {"12345678901234567890", "1234567890123456789e1", "12345678901234567890.0"},
        {"12345678901234567891", "12345678901234567891", "1.2345678901234567891e19"},
    };
    int order;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ascending) * 3; i++)
        for (size_t j = 0; j < COUNT_OF(ascending) * 3; j++) {
            const char *a = ascending[i / 3][i % 3], *b = ascending[j / 3][j % 3];
            assert_true(decimal_compare(span_str(a), span_str(b), &order));
            int want = i / 3 < j / 3 ? -1 : i / 3 > j / 3;
            if ((order > 0) - (order < 0) != want)
                fail_msg("%s and %s: %d", a, b, order);
        }
}

static void test_outside(void **state)
{
    const struct argument folders[] = {text("/rockbot/shared/"), text("/data")};
    const struct rule rule = {
        .pointer = SPAN("/to"), .test = RULE_OUTSIDE, .values = folders, .n_values = 2};
    static const struct row rows[] = {
        {"{\"to\":\"/rockbot/shared\"}", "no"},
        {"{\"to\":\"/rockbot/shared/a/../b//./c/\"}", "no"},
        {"{\"to\":\"/data/x\"}", "no"},
        {"{\"to\":\"/x/../data\"}", "no"},
        {"{}", "no"},
        {"{\"to\":\"/rockbot/shared-evil\"}", "yes"},
        {"{\"to\":\"/rockbot/shared/../x\"}", "yes"},
        {"{\"to\":\"/Rockbot/shared\"}", "yes"},
        {"{\"to\":\"/\"}", "yes"},
        {"{\"to\":\"/../data\"}", "yes"},
        {"{\"to\":\"data/x\"}", "yes"},
        {"{\"to\":\"\"}", "yes"},
        {"{\"to\":\"/data\\\\..\\\\..\\\\etc\"}", "yes"},
        {"{\"to\":\"\\\\data\\\\x\"}", "yes"},
        {"{\"to\":[\"/data\"]}", "yes"},
        {"{\"to\":null}", "yes"},
        {"{\"TO\":\"/etc\"}", "misleads"},
        {"{\"to\":\"/data\\u0000/../etc\"}", "misleads"},
    };

    (void)state;
    walk(&rule, rows, COUNT_OF(rows));
    const struct argument root[] = {text("/")};
    const struct rule anywhere = {
        .pointer = SPAN("/to"), .test = RULE_OUTSIDE, .values = root, .n_values = 1};
    assert_string_equal(judge(&anywhere, "read", "{\"to\":\"/etc\"}"), "no");
    assert_string_equal(judge(&anywhere, "read", "{\"to\":\"etc\"}"), "yes");
}

/* The value that the server gets is judged: the configured one, whatever the agent sends. */
static void test_pinned_arguments(void **state)
{
    const struct argument values[] = {text("/etc/*")};
    const struct rule rule = {
        .pointer = SPAN("/to/path"), .test = RULE_MATCHES, .values = values, .n_values = 1};

    (void)state;
    pinned_text = "{\"to\":{\"path\":\"/etc/x\"}}";
    assert_string_equal(judge(&rule, "pin", "{\"to\":{\"path\":\"/home\"}}"), "yes");
    assert_string_equal(judge(&rule, "pin", NULL), "yes");
    assert_string_equal(judge(&rule, "read", "{\"to\":{\"path\":\"/home\"}}"), "no");
    pinned_text = "{\"to\":{\"path\":\"/home\"}}";
    assert_string_equal(judge(&rule, "pin", "{\"to\":{\"path\":\"/etc/x\"}}"), "no");
    pinned_text = "{\"other\":1}";
    assert_string_equal(judge(&rule, "pin", "{\"to\":{\"path\":\"/etc/x\"}}"), "yes");
}

static void test_names_and_order(void **state)
{
    const struct rule rows[] = {
        {.name = SPAN("1"), .server = SPAN("Fil*"), .tool = SPAN("delete_*"), .test = RULE_ALWAYS},
        {.name = SPAN("2"), .server = SPAN("mail"), .test = RULE_ALWAYS},
        {.name = SPAN("3"), .tool = SPAN("read"), .pointer = SPAN("/path"), .test = RULE_THERE},
        {.name = SPAN("4"), .tool = SPAN("read"), .test = RULE_ALWAYS},
    };
    static const struct {
        const char *alias, *told_as, *tool, *params, *by;
    } calls[] = {
        {"files", NULL, "delete_it", "{}", "1"},
        {"files", NULL, "DELETE_it", "{}", "1"},
        {"files", NULL, "undelete_it", "{}", NULL},
        {"mail", NULL, "delete_it", "{}", "2"},
        {"page-7", "mail", "x", "{}", "2"},
        {"other", NULL, "read", "{\"arguments\":{\"path\":1}}", "3"},
        {"other", NULL, "read", "{\"arguments\":{}}", "4"},
        {"other", NULL, "write", "{\"arguments\":{\"Path\":1}}", NULL},
    };
    const struct rules rules = {rows, COUNT_OF(rows), judged_find};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct provider p = {.ops = &ops, .alias = calls[i].alias, .told_as = calls[i].told_as};
        const struct request r = {.op = OP_CALL_TOOL,
                                  .name = span_str(calls[i].tool),
                                  .params = span_str(calls[i].params)};
        BUF_SCOPED scratch = {0};
        struct ruling ruling = rules_decide(&rules, &p, &r, &scratch);
        if (!calls[i].by)
            assert_null(ruling.by);
        else
            assert_true(ruling.by && span_is(ruling.by->name, calls[i].by));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),         cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_order_of_numbers),
        cmocka_unit_test(test_outside),         cmocka_unit_test(test_pinned_arguments),
        cmocka_unit_test(test_names_and_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
