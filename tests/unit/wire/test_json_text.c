/* Iterating over checked text, reading strings and numbers from it, and writing. */
#include "../unit.h"

#include "base/buf.h"
#include "wire/json.h"

#include <math.h>

/* "key=value key=value" (raw) of what json_next gives; elements of arrays have no key. */
static void check_walk(const char *text, const char *expected)
{
    struct span copy = unit_exact(span_str(text));
    struct json_iter it = json_iter(copy);
    struct buf b = {0};

    while (json_next(&it)) {
        if (b.n)
            buf_char(&b, ' ');
        if (it.key.n) {
            buf_span(&b, it.key);
            buf_char(&b, '=');
            assert_ptr_equal(it.member.p, it.key.p);
        } else {
            assert_ptr_equal(it.member.p, it.value.p);
        }
        assert_ptr_equal(it.member.p + it.member.n, it.value.p + it.value.n);
        assert_int_equal(it.type, json_type_of(it.value));
        buf_span(&b, it.value);
    }
    assert_false(json_next(&it));
    assert_string_equal(buf_cstr(&b), expected);
    buf_fini(&b);
    unit_free(copy);
}

static void test_walk(void **state)
{
    (void)state;
    check_walk("[]", "");
    check_walk("{}", "");
    check_walk(" [ \n] ", "");
    check_walk("7", "");
    check_walk("\"[1]\"", "");
    check_walk("null", "");
    check_walk("[1,-2.5,true , null,\"a,]\",[],{}, [ 1,[2] ] ,{\"a\":[]}]",
               "1 -2.5 true null \"a,]\" [] {} [ 1,[2] ] {\"a\":[]}");
    check_walk("{\"a\":1,\"b\" : \"}\" ,\n\"\\\"\":{\"]\":[\"[\"]}}",
               "\"a\"=1 \"b\"=\"}\" \"\\\"\"={\"]\":[\"[\"]}");
    /* Backslashes before a quote: an even number ends the string, an odd one does not. */
    check_walk("{\"a\\\\\":\"\\\\\",\"\\\\\\\"\":\"\\\"\\\\\\\"\\\\\",\"\":\"\"}",
               "\"a\\\\\"=\"\\\\\" \"\\\\\\\"\"=\"\\\"\\\\\\\"\\\\\" \"\"=\"\"");
    check_walk("  [1]  ", "1");
    assert_false(json_next(&(struct json_iter){.rest = SPAN_EMPTY}));
}

/*
 * Skipping looks at 16 bytes at once: put a string full of brackets, quotes and backslashes, and
 * the container's end, at every distance from a block's edge.
 */
static void test_walk_block_edges(void **state)
{
    static const char *const tricky[] = {"\"]}\"",         "\"\\\"]\"",
                                         "\"\\\\\"",       "\"\\\\\\\"}\"",
                                         "\"[{\\\\\\\\\"", "\"\\u005d\\\\\\\"\\\\\""};
    struct buf b = {0};

    (void)state;
    for (size_t t = 0; t < COUNT_OF(tricky); t++) {
        for (size_t before = 0; before < 40; before++) {
            for (size_t between = 0; between < 20; between++) {
                b.n = 0;
                buf_str(&b, "[[\"");
                for (size_t i = 0; i < before; i++)
                    buf_char(&b, 'x');
                buf_printf(&b, "\",%s,{%*s},%s],7]", tricky[t], (int)between, "", tricky[t]);
                struct span copy = unit_exact(buf_view(&b));
                assert_int_equal(json_skim(copy, NULL, NULL, NULL, NULL), 0);
                struct json_iter it = json_iter(copy);
                assert_true(json_next(&it));
                assert_int_equal(it.value.n, copy.n - 4);
                assert_true(json_next(&it));
                assert_span(it.value, "7");
                assert_false(json_next(&it));
                unit_free(copy);
            }
        }
    }
    buf_fini(&b);
}

/* Iterating over unchecked text gives nonsense, but ends and reads nothing outside the span. */
static void test_walk_survives_unchecked_text(void **state)
{
    static const char pieces[] = "[]{}\",:\\ a1\n";
    uint64_t seed = 11;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[48];
        size_t n = 1 + unit_below(&seed, sizeof text - 1), steps = 0;
        for (size_t i = 0; i < n; i++)
            text[i] = pieces[unit_below(&seed, sizeof pieces - 1)];
        text[0] = round % 2 ? '{' : '[';
        struct span copy = unit_exact(span_of(text, n));
        struct buf b = {0};
        for (struct json_iter it = json_iter(copy); json_next(&it);) {
            json_unescape(&b, it.value);
            json_string_is(it.key, SPAN("a"));
            assert_true(++steps <= 2 * n);
        }
        json_get(copy, "a");
        json_insert(&b, copy, SPAN("\"x\":1"));
        json_one_line(&b, copy);
        buf_fini(&b);
        unit_free(copy);
    }
}

static void test_get(void **state)
{
    struct span object = SPAN("{\"a\":1,\"b\":{\"c\":2},\"\\u0063\":[3],\"a\":4}");

    (void)state;
    assert_span(json_get(object, "a").value, "1");
    assert_span(json_get(object, "b").member, "\"b\":{\"c\":2}");
    assert_span(json_get(object, "c").value, "[3]");
    assert_int_equal(json_get(object, "c").type, JSON_ARRAY);
    assert_int_equal(json_get(object, "d").type, JSON_NONE);
    assert_int_equal(json_get(SPAN("[\"a\",1]"), "a").type, JSON_NONE);
    assert_int_equal(json_get(SPAN("\"a\""), "a").type, JSON_NONE);
    assert_int_equal(json_get(SPAN_EMPTY, "a").type, JSON_NONE);
}

static void test_strings(void **state)
{
    static const struct {
        const char *raw, *text;
    } cases[] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e4\\u20AC\"", "A\xc3\xa4\xe2\x82\xac"},
        {"\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
        {"\"\\ud800\"", "\xef\xbf\xbd"},
        {"\"\\udc00x\"", "\xef\xbf\xbdx"},
        {"\"\\ud800\\u0041\"", "\xef\xbf\xbd"
                               "A"},
        {"\"\\ud800\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"\"\\ud800\\uffff\"", "\xef\xbf\xbd\xef\xbf\xbf"},
        {"\"\\ud800\\n\"", "\xef\xbf\xbd\n"},
        {"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
        {"\"a long run of text, then \\u0061 and more text\"",
         "a long run of text, then a and more text"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct span raw = unit_exact(span_str(cases[i].raw));
        struct buf b = {0};
        buf_str(&b, "kept ");
        json_unescape(&b, raw);
        assert_span(span_from(buf_view(&b), 5), cases[i].text);
        assert_span(json_text(raw, &b), cases[i].text);
        assert_true(json_string_is(raw, span_str(cases[i].text)));
        assert_false(json_string_is(raw, SPAN("something else")));
        struct buf longer = {0};
        buf_printf(&longer, "%s.", cases[i].text);
        assert_false(json_string_is(raw, buf_view(&longer)));
        buf_fini(&longer);
        buf_fini(&b);
        unit_free(raw);
    }
    assert_false(json_string_is(SPAN("1"), SPAN("1")));
    assert_false(json_string_is(SPAN("null"), SPAN_EMPTY));
    assert_false(json_string_is(SPAN_EMPTY, SPAN_EMPTY));
    assert_true(json_string_is(SPAN("\"a\\u0000b\""), SPAN("a\0b")));
    assert_false(json_string_is(SPAN("\"a\\u0000b\""), SPAN("a")));
}

static void test_text_copies_only_escapes(void **state)
{
    struct span plain = SPAN("\"plain\""), escaped = SPAN("\"\\n\"");
    struct buf b = {0};

    (void)state;
    assert_ptr_equal(json_text(plain, &b).p, plain.p + 1);
    assert_int_equal(b.n, 0);
    struct span text = json_text(escaped, &b);
    assert_ptr_equal(text.p, b.p);
    assert_span(text, "\n");
    buf_fini(&b);
}

static void test_integers(void **state)
{
    static const struct {
        const char *raw;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"-32700", true, -32700},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999", false, 0},
        {"1.0", false, 0},
        {"1e2", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
        {"-", false, 0},
        {"", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct span raw = unit_exact(span_str(cases[i].raw));
        int64_t v = 77;
        assert_int_equal(json_int(raw, &v), cases[i].ok);
        assert_true(v == (cases[i].ok ? cases[i].value : 77));
        unit_free(raw);
    }
}

static void test_doubles(void **state)
{
    struct buf many = {0};
    double v = 0;

    (void)state;
    assert_true(json_double(SPAN("-1.5e3"), &v));
    assert_true(v == -1500.0);
    assert_true(json_double(SPAN("0"), &v));
    assert_true(v == 0);
    assert_false(json_double(SPAN("1e400"), &v));
    assert_false(json_double(SPAN("\"1\""), &v));
    assert_false(json_double(SPAN("null"), &v));
    assert_false(json_double(SPAN_EMPTY, &v));
    /* Only the span counts: the digit after its end must not be read. */
    assert_true(json_double(span_of("123", 2), &v));
    assert_true(v == 12);
    buf_str(&many, "0.");
    for (int i = 0; i < 5000; i++)
        buf_char(&many, '3');
    assert_true(json_double(buf_view(&many), &v));
    assert_true(fabs(v - 1.0 / 3) < 1e-15);
    buf_fini(&many);
}

static void check_quote(struct span in, const char *expected)
{
    struct span copy = unit_exact(in);
    struct buf b = {0};

    json_quote(&b, copy);
    assert_string_equal(buf_cstr(&b), expected);
    assert_int_equal(json_skim(buf_view(&b), NULL, NULL, NULL, NULL), 0);
    buf_fini(&b);
    unit_free(copy);
}

static void test_quote(void **state)
{
    (void)state;
    check_quote(SPAN_EMPTY, "\"\"");
    check_quote(SPAN("plain, and longer than one block"), "\"plain, and longer than one block\"");
    check_quote(SPAN("\"\\/\b\f\n\r\t\x01\x1f\x7f"),
                "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    check_quote(SPAN("a\0b"), "\"a\\u0000b\"");
    check_quote(SPAN("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
                "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_quote(SPAN("a\xff"
                     "b\xc3"),
                "\"a\xef\xbf\xbd"
                "b\xef\xbf\xbd\"");
    check_quote(SPAN("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_one_line(void **state)
{
    struct buf b = {0};

    (void)state;
    json_one_line(&b, SPAN("{\r\n  \"a\\n\" :\n\t1\r}"));
    assert_string_equal(buf_cstr(&b), "{  \"a\\n\" :\t1}");
    b.n = 0;
    json_one_line(&b, SPAN("[1, 2]"));
    json_one_line(&b, SPAN("\r[3]\r"));
    json_one_line(&b, SPAN_EMPTY);
    assert_string_equal(buf_cstr(&b), "[1, 2][3]");
    buf_fini(&b);
}

/* Searching the next LF again after each CR took quadratic time: seconds for this text. */
static void test_one_line_is_linear(void **state)
{
    enum { N = 4000000 };
    char *text = mem_alloc(N);
    struct buf b = {0};

    (void)state;
    memset(text, '\r', N);
    text[0] = '[';
    text[N - 1] = ']';
    json_one_line(&b, span_of(text, N));
    assert_span(buf_view(&b), "[]");
    buf_fini(&b);
    mem_free(text);
}

static void test_insert(void **state)
{
    static const struct {
        const char *object, *members, *expected;
    } cases[] = {
        {"{}", "\"a\":1", "{\"a\":1}"},
        {"{ \n}", "\"a\":1", "{\"a\":1 \n}"},
        {"{\"b\":2}", "\"a\":1", "{\"a\":1,\"b\":2}"},
        {"{ \"b\":2}", "\"a\":1,\"c\":3", "{\"a\":1,\"c\":3, \"b\":2}"},
        {"{\"b\":2}", "", "{\"b\":2}"},
        {"{}", "", "{}"},
        {"[1]", "\"a\":1", "[1]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf b = {0};
        json_insert(&b, span_str(cases[i].object), span_str(cases[i].members));
        assert_string_equal(buf_cstr(&b), cases[i].expected);
        buf_fini(&b);
    }
}

/* Keys that JSON readers of other languages may take for a given name. */
static void test_resembles(void **state)
{
    static const struct {
        const char *raw, *name;
        bool alike;
    } cases[] = {
        {"\"name\"", "name", true},
        {"\"Name\"", "name", true},
        {"\"NAME\"", "name", true},
        {"\"progresstoken\"", "progressToken", true},
        {"\"n\\u0041me\"", "name", true},
        {"\"argument\u017f\"", "arguments", true},
        {"\"argument\\u017F\"", "arguments", true},
        {"\"progressTo\u212aen\"", "progressToken", true},
        {"\"progre\u00dfToken\"", "progressToken", true},
        {"\"reque\ufb06State\"", "requestState", true},
        {"\"ur\u0131\"", "uri", true},
        {"\"name\\u0000\"", "name", true},
        {"\"name\\u0000\\u0000\"", "name", true},
        {"\"NAME\\u0000and more\"", "name", true},
        {"\"\u00c4rger\"", "\u00e4rger", true}, /* outside ASCII, in doubt they are alike */
        {"\"GR\u00d6SSE\"", "gr\u00f6\u00dfe", true},
        {"\"names\"", "name", false},
        {"\"nam\"", "name", false},
        {"\"\"", "name", false},
        {"\"\\u0000name\"", "name", false},
        {"\"n\u00e4me\"", "name", false},
        {"\"na_me\"", "name", false},
        {"\"@ame\"", "`ame", false}, /* differ in the case bit, but are not letters */
        {"1", "1", false},
        {"", "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct span raw = unit_exact(span_str(cases[i].raw));
        if (json_string_resembles(raw, span_str(cases[i].name)) != cases[i].alike)
            fail_msg("%s and %s", cases[i].raw, cases[i].name);
        unit_free(raw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resembles),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_walk_block_edges),
        cmocka_unit_test(test_walk_survives_unchecked_text),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_text_copies_only_escapes),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_one_line_is_linear),
        cmocka_unit_test(test_insert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
