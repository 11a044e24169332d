/* The tree, its JSON reader and its writers; units, suggestions and the list of problems. */
#include "config_test.h"

#include "config/nearest.h"
#include "config/units.h"

static struct value *read_json(struct arena *a, const char *text, struct problems *ps)
{
    struct span exact = unit_exact(span_str(text));
    struct value *v = json_doc_read(a, exact, ps);
    unit_free(exact);
    return v;
}

static void expect_json_problem(const char *text, const char *expected)
{
    struct arena a = {0};
    struct problems ps = {0};

    problems_set_file(&ps, "f");
    read_json(&a, text, &ps);
    assert_problems(&ps, expected);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_json_tree(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    struct value *root = read_json(
        &a, " {\"b\": [1, -2.50e+3, true],\n  \"\\u0061\": \"x\\n\\u00e9\", \"n\": null}\n", &ps);

    assert_problems(&ps, "");
    assert_int_equal(root->type, VALUE_MAP);
    assert_int_equal(root->n, 3);
    struct value *b = value_get(root, "b");
    assert_int_equal(b->type, VALUE_LIST);
    assert_int_equal(b->n, 3);
    assert_int_equal(b->first->type, VALUE_NUMBER);
    assert_span(b->first->next->text, "-2.50e+3");
    assert_int_equal(b->last->type, VALUE_BOOL);
    assert_true(b->last->truth);
    /* Keys are unescaped, order is kept. */
    assert_span(b->next->key, "a");
    assert_span(b->next->text, "x\n\xc3\xa9");
    assert_int_equal(root->last->type, VALUE_NULL);
    assert_null(value_get(root, "c"));
    assert_null(value_get(b, "b"));
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_json_places(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    /* Columns count characters, not bytes: the first key has two bytes too many. */
    struct value *root = read_json(&a, "{\n  \"\xc3\xa9\xc3\xa9\": 1,\r\n\t\"b\": [\n5 ]}", &ps);
    struct value *b = value_get(root, "b");

    assert_int_equal(root->at.line, 1);
    assert_int_equal(root->at.column, 1);
    assert_int_equal(root->first->key_at.line, 2);
    assert_int_equal(root->first->key_at.column, 3);
    assert_int_equal(root->first->at.column, 9);
    assert_int_equal(b->key_at.line, 3);
    assert_int_equal(b->key_at.column, 2);
    assert_int_equal(b->first->at.line, 4);
    assert_int_equal(b->first->at.column, 1);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_json_advice(void **state)
{
    (void)state;
    expect_json_problem("{\"a\": 1,\n}",
                        "f:2:1: not valid JSON: there is a comma too much before the bracket\n");
    expect_json_problem("{ # hello\n}",
                        "f:1:3: not valid JSON: a comment in JSON begins with //\n");
    expect_json_problem("{'a': 1}", "f:1:2: not valid JSON: JSON wants double quotes\n");
    expect_json_problem("{\"a\": 1 \"b\": 2}",
                        "f:1:9: not valid JSON: this is not expected here\n");
    expect_json_problem("{\"a\": \"1\"\n \"b\": 2}",
                        "f:2:2: not valid JSON: is a comma missing before it?\n");
    expect_json_problem("{\"a\":", "f:1:6: not valid JSON: the text ends too early; is a bracket "
                                   "or quote not closed?\n");
    expect_json_problem("", "f:1:1: not valid JSON: the text ends too early; is a bracket or quote "
                            "not closed?\n");
    expect_json_problem("\"\xff\"", "f:1:2: not valid JSON: not valid UTF-8\n");
}

static void test_json_duplicates(void **state)
{
    (void)state;
    expect_json_problem("{\"a\": 1,\n \"b\": {\"c\": 1, \"\\u0063\": 2},\n \"a\": 2}",
                        "f:2:16: c: this key occurs twice, first on line 2; keep one\n"
                        "f:3:2: a: this key occurs twice, first on line 1; keep one\n");
}

static void test_json_bounds(void **state)
{
    (void)state;
    struct buf text = {0};

    for (int i = 0; i < VALUE_MAX_DEPTH + 1; i++)
        buf_char(&text, '[');
    for (int i = 0; i < VALUE_MAX_DEPTH + 1; i++)
        buf_char(&text, ']');
    struct arena a = {0};
    struct problems ps = {0};
    assert_null(read_json(&a, buf_cstr(&text), &ps));
    assert_int_equal(ps.errors, 1);

    /* One value more than allowed, the list itself counted; then as many as allowed. */
    for (int extra = 0; extra < 2; extra++) {
        text.n = 0;
        buf_char(&text, '[');
        for (int i = 0; i < VALUE_MAX_NODES - 1 - extra; i++)
            buf_str(&text, "1,");
        buf_str(&text, "1]");
        struct value *v = read_json(&a, buf_cstr(&text), &ps);
        assert_int_equal(v != NULL, extra);
    }
    assert_int_equal(ps.errors, 2);
    problems_fini(&ps);
    arena_fini(&a);
    buf_fini(&text);
}

static void test_put_json(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    struct buf out = {0};
    struct value *v = read_json(&a, "{\"a\": [1.0, {}, []], \"b\\\"\": {\"c\": null}}", &ps);

    value_put_json(&out, v, false);
    assert_span(buf_view(&out), "{\"a\":[1.0,{},[]],\"b\\\"\":{\"c\":null}}");
    out.n = 0;
    value_put_json(&out, v, true);
    assert_span(buf_view(&out), "{\n  \"a\": [\n    1.0,\n    {},\n    []\n  ],\n  \"b\\\"\": {\n"
                                "    \"c\": null\n  }\n}");
    buf_fini(&out);
    problems_fini(&ps);
    arena_fini(&a);
}

/* Only texts that every YAML reader reads as text, older ones included, are written unquoted. */
static void test_put_yaml(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    struct buf out = {0};
    struct value *v = read_json(&a,
                                "{\"a\": [\"x-y/z.c\", \"30s\", \"0xAB\", \"5\", \"no\", \"a: b\"],"
                                "\"on\": {\"b\": [], \"c\": {\"d\": true}}}",
                                &ps);

    value_put_yaml(&out, v);
    assert_span(buf_view(&out), "a:\n  - x-y/z.c\n  - 30s\n  - \"0xAB\"\n  - \"5\"\n  - \"no\"\n"
                                "  - \"a: b\"\n\"on\":\n  b: []\n  c:\n    d: true\n");
    buf_fini(&out);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_remove(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    struct buf out = {0};
    struct value *v = read_json(&a, "[1, 2, 3]", &ps);

    value_remove(v, v->first->next);
    value_remove(v, v->last);
    value_append(v, value_text(&a, VALUE_BOOL, SPAN("true")));
    value_remove(v, v->first);
    value_put_json(&out, v, false);
    assert_span(buf_view(&out), "[true]");
    value_remove(v, v->first);
    assert_null(v->first);
    assert_null(v->last);
    assert_int_equal(v->n, 0);
    buf_fini(&out);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const good[] = {"0", "-0", "10", "1.5", "-1e9", "1E+2", "0.0e-0"};
    static const char *const bad[] = {"",    "-",   "+1",  "01",   "1.",       ".5", "1e",
                                      "0x1", "1_0", "1e+", "1.e5", "Infinity", "1 ", " 1"};

    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(value_is_number(span_str(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(value_is_number(span_str(bad[i])));
}

static void check_duration(const char *text, uint64_t ms)
{
    struct buf out = {0};
    uint64_t read = 77;

    assert_null(units_read_duration(span_str(text), &read));
    assert_int_equal(read, ms);
    units_put_duration(&out, read);
    assert_span(buf_view(&out), text);
    buf_fini(&out);
}

static void test_durations(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "s", "1", "30 s", "-1s", "1.5s", "1S", "1d", "1h30m", "9999999999999999s", "0x1s"};
    uint64_t ms;

    check_duration("500ms", 500);
    check_duration("30s", 30000);
    check_duration("90s", 90000);
    check_duration("10m", 600000);
    check_duration("2h", 7200000);
    check_duration("0", 0);
    check_duration("1001ms", 1001);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_non_null(units_read_duration(span_str(bad[i]), &ms));
    assert_string_equal(units_read_duration(SPAN("30"), &ms),
                        "a duration needs a unit: ms, s, m or h, as in 30s");
    assert_non_null(units_read_duration(SPAN("999999999999999h"), &ms));
}

static void test_sizes(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "KiB", "10", "10KB", "10kib", "1.5MiB", "-1B", "10 B"};
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"512B", 512},        {"16KiB", 16384}, {"10MiB", 10485760},
                {"3GiB", 3221225472}, {"0", 0},         {"1025B", 1025}};
    uint64_t bytes;
    struct buf out = {0};

    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_null(units_read_size(span_str(good[i].text), &bytes));
        assert_int_equal(bytes, good[i].bytes);
        out.n = 0;
        units_put_size(&out, bytes);
        assert_span(buf_view(&out), good[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_non_null(units_read_size(span_str(bad[i]), &bytes));
    buf_fini(&out);
}

static const char *near_word(const char *word)
{
    static const char *const words[] = {"command", "concurrency", "cwd", "env", "allow"};
    struct nearest n = nearest_to(span_str(word));

    for (size_t i = 0; i < COUNT_OF(words); i++)
        nearest_offer(&n, span_str(words[i]));
    return n.best.n ? n.best.p : "";
}

static void test_nearest(void **state)
{
    (void)state;
    assert_string_equal(near_word("comand"), "command");
    assert_string_equal(near_word("Command"), "command");
    assert_string_equal(near_word("ocmmand"), "command");
    assert_string_equal(near_word("cocurency"), "concurrency");
    assert_string_equal(near_word("wcd"), "cwd");
    assert_string_equal(near_word("e"), "");
    assert_string_equal(near_word("totally different"), "");
    assert_string_equal(near_word(""), "");
    /* Longer than any key: not compared, however similar. */
    assert_string_equal(near_word("commandcommandcommandcommandcommandcommandcommand"), "");
}

static void test_problem_list(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct buf json = {0};

    problems_add(&ps, PROBLEM_WARNING, (struct place){0}, "", "no file");
    problems_set_file(&ps, "a.yaml");
    /* A key must not control the terminal. */
    problems_add(&ps, PROBLEM_ERROR, (struct place){3, 4}, "k\033[31m", "bad %d", 5);
    problems_add(&ps, PROBLEM_ERROR, (struct place){2, 9}, "early", "also");
    assert_problems(&ps, "warning: no file\na.yaml:3:4: k?[31m: bad 5\na.yaml:2:9: early: also\n");
    problems_sort(&ps, 1);
    assert_problems(&ps, "warning: no file\na.yaml:2:9: early: also\na.yaml:3:4: k?[31m: bad 5\n");
    problem_put_json(&json, &ps.items[1]);
    assert_span(buf_view(&json), "{\"level\":\"error\",\"file\":\"a.yaml\",\"line\":2,\"column\":9,"
                                 "\"key\":\"early\",\"message\":\"also\"}");
    for (int i = 0; i < 2 * PROBLEMS_MAX; i++)
        problems_add(&ps, PROBLEM_ERROR, (struct place){0}, "", "more %d", i);
    assert_int_equal(ps.n, PROBLEMS_MAX);
    assert_string_equal(ps.items[PROBLEMS_MAX - 1].text, "more 96"); /* the first are kept */
    assert_int_equal(ps.errors, 2 * PROBLEMS_MAX + 2);
    assert_int_equal(ps.warnings, 1);
    buf_fini(&json);
    problems_fini(&ps);
}

/* Found by fuzzing: some characters end a line for YAML readers, or are not allowed at all. */
static void test_comments(void **state)
{
    static const struct {
        const char *text, *comment;
    } rows[] = {
        {"plain: text # and more", "# plain: text # and more\n"},
        {"", "# \n"},
        {"a\nb\rc\td\x1b", "# a?b?c?d?\n"},
        {"\xc2\x85 \xe2\x80\xa8 \xe2\x80\xa9 \xef\xbf\xbf \xef\xbb\xbf", "# ? ? ? ? ?\n"},
        {"\xc3\xa9 \xff", "# \xc3\xa9 \xef\xbf\xbd\n"},
        {"\"quoted\" \\", "# \"quoted\" \\\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena a = {0};
        struct problems ps = {0};
        struct buf out = {0};
        value_put_comment(&out, span_str(rows[i].text));
        assert_string_equal(buf_cstr(&out), rows[i].comment);
        buf_str(&out, "a: 1\n");
        assert_int_equal(yaml_read(&a, buf_view(&out), &ps)->n, 1);
        buf_fini(&out);
        problems_fini(&ps);
        arena_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_tree),    cmocka_unit_test(test_json_places),
        cmocka_unit_test(test_json_advice),  cmocka_unit_test(test_json_duplicates),
        cmocka_unit_test(test_json_bounds),  cmocka_unit_test(test_put_json),
        cmocka_unit_test(test_put_yaml),     cmocka_unit_test(test_remove),
        cmocka_unit_test(test_numbers),      cmocka_unit_test(test_durations),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_problem_list), cmocka_unit_test(test_comments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
