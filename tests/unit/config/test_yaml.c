/* The YAML reader: types of values, aliases and merges, and everything it must refuse. */
#include "config_test.h"

/* Reads YAML, expects no problem, and compares the tree written as JSON. */
static void check_yaml(const char *text, const char *json)
{
    struct arena a = {0};
    struct problems ps = {0};
    struct buf out = {0};
    struct span exact = unit_exact(span_str(text));
    struct value *v = yaml_read(&a, exact, &ps);

    unit_free(exact);
    assert_problems(&ps, "");
    assert_non_null(v);
    value_put_json(&out, v, false);
    assert_span(buf_view(&out), json);
    buf_fini(&out);
    problems_fini(&ps);
    arena_fini(&a);
}

static void expect_yaml_problem(const char *text, const char *expected)
{
    struct arena a = {0};
    struct problems ps = {0};
    struct span exact = unit_exact(span_str(text));

    problems_set_file(&ps, "f");
    yaml_read(&a, exact, &ps);
    unit_free(exact);
    assert_problems(&ps, expected);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_types(void **state)
{
    (void)state;
    check_yaml("[true, True, FALSE, null, ~, Null, 1, -2.5e3]",
               "[true,true,false,null,null,null,1,-2.5e3]");
    /* Words and numbers of older YAML stay text: a country code NO must not become false. */
    check_yaml("[yes, on, NO, off, y, 0x1f, 0o17, 017, 1_000, .5, +1, .inf, 12:30:45]",
               "[\"yes\",\"on\",\"NO\",\"off\",\"y\",\"0x1f\",\"0o17\",\"017\",\"1_000\",\".5\","
               "\"+1\",\".inf\",\"12:30:45\"]");
    check_yaml("['true', \"null\", '1', !!str 5, ! '6']", "[\"true\",\"null\",\"1\",\"5\",\"6\"]");
    check_yaml("a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\"}");
    check_yaml("a:\n", "{\"a\":null}");
    check_yaml("", "null");
    check_yaml("# only a comment\n", "null");
    check_yaml("---\na: 1\n...\n", "{\"a\":1}");
}

static void test_keys(void **state)
{
    (void)state;
    check_yaml("1: a\ntrue: b\n'': c\nz: d\n",
               "{\"1\":\"a\",\"true\":\"b\",\"\":\"c\",\"z\":\"d\"}");
    check_yaml("- &k name\n- {*k : 1}\n", "[\"name\",{\"name\":1}]");
}

static void test_json_is_yaml(void **state)
{
    (void)state;
    check_yaml("{\"a\":[1,\t2],\n\t\"b\":{\"c\":\"\\u00e9\"}}",
               "{\"a\":[1,2],\"b\":{\"c\":\"\xc3\xa9\"}}");
}

static void test_places(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    struct value *v = yaml_read(&a, SPAN("\na:\n  - \xc3\xa9: x\n"), &ps);
    struct value *inner = value_get(value_get(v, "a")->first, "\xc3\xa9");

    assert_int_equal(v->first->key_at.line, 2);
    assert_int_equal(v->first->key_at.column, 1);
    assert_int_equal(inner->key_at.line, 3);
    assert_int_equal(inner->key_at.column, 5);
    assert_int_equal(inner->at.column, 8);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_aliases(void **state)
{
    (void)state;
    check_yaml("a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]\n",
               "{\"a\":[1,{\"b\":2}],\"c\":[1,{\"b\":2}],\"d\":[[1,{\"b\":2}],[1,{\"b\":2}]]}");
    /* An anchor may be defined again; the latest counts. */
    check_yaml("- &x 1\n- *x\n- &x 2\n- *x\n", "[1,1,2,2]");
    expect_yaml_problem("a: *x\nb: &x 1\n", "f:1:4: there is no '&x' before this '*x'\n");
    expect_yaml_problem("a: &x [1, *x]\n",
                        "f:1:11: an alias cannot be inside the value it names\n");
    expect_yaml_problem("- &x [1]\n- {*x : 1}\n",
                        "f:2:4: a key must be plain text, not a list or map\n");
}

static void test_merge(void **state)
{
    (void)state;
    check_yaml("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3, z: 4}\n",
               "{\"base\":{\"x\":1,\"y\":2},\"use\":{\"y\":3,\"z\":4,\"x\":1}}");
    /* Of several merged maps the earlier wins; the map's own keys win over all. */
    check_yaml("- &a {x: 1, y: 1}\n- &b {y: 2, z: 2}\n- {<<: [*a, *b], z: 3}\n",
               "[{\"x\":1,\"y\":1},{\"y\":2,\"z\":2},{\"z\":3,\"x\":1,\"y\":1}]");
    /* A merged map can be merged again, and later aliases to it still get all of it. */
    check_yaml(
        "- &a {x: 1}\n- &b {<<: *a, y: 2}\n- {<<: *b, z: 3}\n- *b\n- {<<: &c {q: 1}}\n- *c\n",
        "[{\"x\":1},{\"y\":2,\"x\":1},{\"z\":3,\"y\":2,\"x\":1},{\"y\":2,\"x\":1},{\"q\":1},"
        "{\"q\":1}]");
    check_yaml("a: {'<<': {x: 1}}", "{\"a\":{\"<<\":{\"x\":1}}}");
    expect_yaml_problem("a: {<<: 5}\n", "f:1:9: '<<' wants a map or a list of maps\n");
    expect_yaml_problem("a: {<<: [{b: 1}, c]}\n", "f:1:18: '<<' wants a map or a list of maps\n");
}

static void test_duplicates(void **state)
{
    (void)state;
    expect_yaml_problem("a: 1\nb: {c: 1, c: 2}\na: 2\n",
                        "f:2:11: c: this key occurs twice, first on line 2; keep one\n"
                        "f:3:1: a: this key occurs twice, first on line 1; keep one\n");
    expect_yaml_problem("x: &x {a: 1}\ny: {<<: *x, <<: *x}\n",
                        "f:2:13: <<: this key occurs twice, first on line 2; keep one\n");
}

/* Nine levels of nine aliases each would be 387 million values. */
static void test_alias_bomb(void **state)
{
    (void)state;
    struct buf text = {0};
    struct arena a = {0};
    struct problems ps = {0};

    buf_str(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 9; i++) {
        buf_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            buf_printf(&text, "%s*a%d", k ? ", " : "", i - 1);
        buf_str(&text, "]\n");
    }
    assert_null(yaml_read(&a, buf_view(&text), &ps));
    assert_int_equal(ps.errors, 1);
    assert_non_null(strstr(ps.items[0].text, "too large"));
    buf_fini(&text);
    problems_fini(&ps);
    arena_fini(&a);
}

/* Merges copy values without an alias for each copy: the copies must be counted too. */
static void test_merge_bomb(void **state)
{
    (void)state;
    struct buf text = {0};
    struct arena a = {0};
    struct problems ps = {0};

    buf_str(&text, "a0: &a0 {k: [x, x, x, x, x, x, x, x]}\n");
    for (int i = 1; i < 20; i++)
        buf_printf(&text, "a%d: &a%d {<<: [{l%d: *a%d}, {m%d: *a%d}]}\n", i, i, i, i - 1, i, i - 1);
    assert_null(yaml_read(&a, buf_view(&text), &ps));
    assert_int_equal(ps.errors, 1);
    assert_non_null(strstr(ps.items[0].text, "too large"));
    buf_fini(&text);
    problems_fini(&ps);
    arena_fini(&a);
}

/* Depth counts after aliases are expanded: each line below is two levels deeper than the last. */
static void test_depth(void **state)
{
    (void)state;
    struct buf text = {0};
    struct arena a = {0};
    struct problems ps = {0};

    for (int extra = 0; extra < 2; extra++) {
        text.n = 0;
        for (int i = 0; i < VALUE_MAX_DEPTH + extra; i++)
            buf_char(&text, '[');
        for (int i = 0; i < VALUE_MAX_DEPTH + extra; i++)
            buf_char(&text, ']');
        assert_int_equal(yaml_read(&a, buf_view(&text), &ps) == NULL, extra);
    }
    text.n = 0;
    buf_str(&text, "- &a0 x\n");
    for (int i = 1; i < VALUE_MAX_DEPTH; i++)
        buf_printf(&text, "- &a%d [[*a%d]]\n", i, i - 1);
    assert_null(yaml_read(&a, buf_view(&text), &ps));
    assert_int_equal(ps.errors, 2);
    assert_string_equal(ps.items[1].text, "nested too deeply");
    buf_fini(&text);
    problems_fini(&ps);
    arena_fini(&a);
}

static void test_refused(void **state)
{
    (void)state;
    expect_yaml_problem("a: 1\n---\nb: 2\n", "f:2:1: there is a second document; keep one\n");
    expect_yaml_problem("? [a]\n: b\n", "f:1:3: a key must be plain text, not a list or map\n");
    expect_yaml_problem("a: !!int 5\n",
                        "f:1:4: the tag 'tag:yaml.org,2002:int' is not supported; remove it\n");
    expect_yaml_problem("a: !!set {b}\n",
                        "f:1:4: the tag 'tag:yaml.org,2002:set' is not supported; remove it\n");
    expect_yaml_problem("x\n", "");
    expect_yaml_problem("a: \"\n", "f:2:1: not valid YAML: found unexpected end of stream while "
                                   "scanning a quoted scalar\n");
    expect_yaml_problem("ok: 1\nb: \"\xff\"\n",
                        "f:2:5: not valid YAML: invalid leading UTF-8 octet\n");
}

static void test_tab_advice(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};

    assert_null(yaml_read(&a, SPAN("a:\n\t- b\n"), &ps));
    assert_int_equal(ps.items[0].at.line, 2);
    assert_non_null(strstr(ps.items[0].text, "indentation wants spaces"));
    problems_fini(&ps);
    arena_fini(&a);
}

/* Found by the fuzzer: YAML readers give up on a key that has no colon within 1024 characters. */
static void test_long_key(void **state)
{
    (void)state;
    struct arena a = {0};
    struct problems ps = {0};
    struct buf json = {0}, yaml = {0}, after = {0};

    buf_str(&json, "{\"a\":{\"");
    for (int i = 0; i < 2000; i++)
        buf_char(&json, 'k');
    buf_str(&json, "\":{\"b\":[1]}},\"c\":2}");
    value_put_yaml(&yaml, json_doc_read(&a, buf_view(&json), &ps));
    struct value *v = yaml_read(&a, buf_view(&yaml), &ps);
    assert_problems(&ps, "");
    value_put_json(&after, v, false);
    assert_span(buf_view(&after), buf_cstr(&json));
    buf_fini(&json);
    buf_fini(&yaml);
    buf_fini(&after);
    problems_fini(&ps);
    arena_fini(&a);
}

/* YAML that we write reads back as the same values. */
static void test_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\":{\"b\":[1,\"1\",true,\"true\",null,\"null\",\"\",\"~\"],\"c\":{},\"d\":[]},\"e\":[["
        "],[1,[2]]]}",
        "[\"yes\",\"0x1f\",\"30s\",\"16MiB\",\"0xAB\",\"- x\",\"a: b\",\"#c\",\"*a\",\"<<\",\" s "
        "\",\"a\\nb\"]",
        "{\"<<\":1,\"true\":2,\"a b\":3,\"{\":[{\"k\":{\"l\":\"m\"}},5]}",
        "\"x\"",
        "[]",
        "[\"\\u0000\\u001f\\u007f\xc3\xa9\xf0\x9f\x98\x80\"]",
        /* Line breaks and control characters for YAML, but not for JSON. */
        "[\"a\\u0080b\\u0085c\\u009fd\\u00a0e\\u2028f\\u2029g\\ufeffh\\ufffei\\uffffj\\ud7ffk\"]",
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct arena a = {0};
        struct problems ps = {0};
        struct buf yaml = {0}, before = {0}, after = {0};
        value_put_json(&before, json_doc_read(&a, span_str(texts[i]), &ps), false);
        value_put_yaml(&yaml, json_doc_read(&a, span_str(texts[i]), &ps));
        value_put_json(&after, yaml_read(&a, buf_view(&yaml), &ps), false);
        assert_problems(&ps, "");
        assert_span(buf_view(&after), buf_cstr(&before));
        buf_fini(&yaml);
        buf_fini(&before);
        buf_fini(&after);
        problems_fini(&ps);
        arena_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_json_is_yaml), cmocka_unit_test(test_places),
        cmocka_unit_test(test_aliases),      cmocka_unit_test(test_merge),
        cmocka_unit_test(test_duplicates),   cmocka_unit_test(test_alias_bomb),
        cmocka_unit_test(test_merge_bomb),   cmocka_unit_test(test_depth),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_tab_advice),
        cmocka_unit_test(test_long_key),     cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
