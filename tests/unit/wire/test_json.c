/* The reader: what is valid JSON, where an error is, and where the members of a shape are. */
#include "../unit.h"

#include "base/buf.h"
#include "wire/json.h"

static int skim(struct span text, enum json_type *type, size_t *at)
{
    struct span copy = unit_exact(text);
    int r = json_skim(copy, NULL, NULL, type, at);
    unit_free(copy);
    return r;
}

static void test_accepts(void **state)
{
    static const struct {
        const char *text;
        enum json_type type;
    } good[] = {
        {"null", JSON_NULL},
        {"true", JSON_TRUE},
        {"false", JSON_FALSE},
        {"0", JSON_NUMBER},
        {"-0", JSON_NUMBER},
        {"10", JSON_NUMBER},
        {"-1.5", JSON_NUMBER},
        {"0.0e0", JSON_NUMBER},
        {"1E+9", JSON_NUMBER},
        {"1e-9", JSON_NUMBER},
        {"123456789012345678901234567890.123456789", JSON_NUMBER},
        {"\"\"", JSON_STRING},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uAbCd\"", JSON_STRING},
        {"\"\\ud800 alone is grammar\"", JSON_STRING},
        {"\"\x7f\"", JSON_STRING},
        {"[]", JSON_ARRAY},
        {"{}", JSON_OBJECT},
        {" [ ] ", JSON_ARRAY},
        {"\t{\r\n} ", JSON_OBJECT},
        {"[1,2,[3,{\"a\":[]}],{}]", JSON_ARRAY},
        {"[ 1 , null , true , false , \"x\" ]", JSON_ARRAY},
        {"{\"a\":1,\"a\":2}", JSON_OBJECT},
        {"{ \"a\" : { \"b\" : [ ] } , \"c\" : \"d\" }", JSON_OBJECT},
        {"{\"\":0}", JSON_OBJECT},
        {"\n\n          [\n                    1\n        ]\n\n", JSON_ARRAY},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        enum json_type type = JSON_NONE;
        assert_int_equal(skim(span_str(good[i].text), &type, NULL), 0);
        assert_int_equal(type, good[i].type);
    }
}

static void test_refuses(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } bad[] = {
        {"", 0},
        {"  ", 2},
        {"\xef\xbb\xbf{}", 0},
        {"nul", 0},
        {"nulll", 4},
        {"True", 0},
        {"NaN", 0},
        {"Infinity", 0},
        {"-", 1},
        {"-a", 1},
        {"+1", 0},
        {"01", 1},
        {"-01", 2},
        {"1.", 2},
        {".5", 0},
        {"1.e5", 2},
        {"1e", 2},
        {"1e+", 3},
        {"0x10", 1},
        {"1 2", 2},
        {"'a'", 0},
        {"\"", 1},
        {"\"abc", 4},
        {"\"a\nb\"", 2},
        {"\"a\tb\"", 2},
        {"\"\x1f\"", 1},
        {"\"\\", 2},
        {"\"\\\"", 3},
        {"\"\\x\"", 2},
        {"\"\\U0041\"", 2},
        {"\"\\u12\"", 5},
        {"\"\\u12g4\"", 5},
        {"\"\\u123\"", 6},
        {"\"\\u123", 6},
        {"[", 1},
        {"]", 0},
        {"[1", 2},
        {"[1,", 3},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"[1}", 2},
        {"[]]", 2},
        {"[1]x", 3},
        {"{", 1},
        {"}", 0},
        {"{]", 1},
        {"{\"a\"}", 4},
        {"{\"a\":}", 5},
        {"{\"a\":1", 6},
        {"{\"a\":1,}", 7},
        {"{\"a\":1]", 6},
        {"{,}", 1},
        {"{a:1}", 1},
        {"{1:1}", 1},
        {"{\"a\":1 \"b\":2}", 7},
        {"{\"a\"::1}", 5},
        {"{\"a\",1}", 4},
        {"[1]/*c*/", 3},
        {"\v1", 0},
        {"\f1", 0},
        {"\xc2\xa0"
         "1",
         0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        size_t at = 999;
        assert_int_equal(skim(span_str(bad[i].text), NULL, &at), ERR_SYNTAX);
        if (at != bad[i].at)
            fail_msg("%s: trouble reported at %zu, not %zu", bad[i].text, at, bad[i].at);
    }
    assert_int_equal(skim(SPAN_EMPTY, NULL, NULL), ERR_SYNTAX);
    assert_int_equal(skim(SPAN("1\0"), NULL, NULL), ERR_SYNTAX);
    assert_int_equal(skim(SPAN("\"a\0b\""), NULL, NULL), ERR_SYNTAX);
    assert_int_equal(skim(SPAN("[1\0,2]"), NULL, NULL), ERR_SYNTAX);
}

/* Every truncated text must be refused, and nothing may be read past its end. */
static void test_refuses_every_prefix(void **state)
{
    struct span whole = SPAN("{\"jsonrpc\":\"2.0\",\"id\":\"a-long-identifier-\\u00e4-\xc3\xa4\","
                             "\"params\":{\"list\":[1,-2.5e+10,true,false,null,[],{}],"
                             "\"text\":\"sixteen bytes and more \xf0\x9f\x98\x80\\n\"}}");

    (void)state;
    assert_int_equal(skim(whole, NULL, NULL), 0);
    for (size_t n = 0; n < whole.n; n++)
        assert_int_not_equal(skim(span_cut(whole, 0, n), NULL, NULL), 0);
}

static struct span nested(struct buf *b, size_t depth, const char *opener, const char *closer)
{
    b->n = 0;
    for (size_t i = 0; i < depth; i++)
        buf_str(b, opener);
    buf_str(b, "0");
    for (size_t i = 0; i < depth; i++)
        buf_str(b, closer);
    return buf_view(b);
}

static void test_depth(void **state)
{
    static const struct json_shape_row rows[] = {{"a", 0, NULL}};
    static struct json_shape_row loop_rows[] = {{"a", 0, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows), loop = JSON_SHAPE(loop_rows);
    struct json_slot slot = {0};
    struct buf b = {0};
    size_t at = 0;

    (void)state;
    assert_int_equal(skim(nested(&b, JSON_MAX_DEPTH, "[", "]"), NULL, NULL), 0);
    assert_int_equal(skim(nested(&b, JSON_MAX_DEPTH + 1, "[", "]"), NULL, &at), ERR_DEPTH);
    assert_int_equal(at, JSON_MAX_DEPTH);
    assert_int_equal(skim(nested(&b, JSON_MAX_DEPTH, "{\"a\":", "}"), NULL, NULL), 0);
    assert_int_equal(skim(nested(&b, JSON_MAX_DEPTH + 1, "{\"a\":", "}"), NULL, NULL), ERR_DEPTH);
    assert_int_equal(skim(nested(&b, JSON_MAX_DEPTH / 2, "[{\"a\":", "}]"), NULL, NULL), 0);
    assert_int_equal(skim(nested(&b, JSON_MAX_DEPTH / 2 + 1, "[{\"a\":", "}]"), NULL, NULL),
                     ERR_DEPTH);
    assert_int_equal(skim(nested(&b, 1000000, "[", "]"), NULL, NULL), ERR_DEPTH);
    assert_int_equal(json_depth(nested(&b, JSON_MAX_DEPTH, "[", "]")), JSON_MAX_DEPTH);
    assert_int_equal(json_depth(SPAN("{\"a\":[],\"}{\\\"{\":[{}]}")), 3);
    assert_int_equal(json_depth(SPAN("\"[\"")), 0);

    /* Objects that a shape looks into count as well, also when the shape is recursive. */
    loop_rows[0].inside = &loop;
    const struct json_shape *shapes[] = {&shape, &loop};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct span text = nested(&b, JSON_MAX_DEPTH, "{\"a\":", "}");
        assert_int_equal(json_skim(text, shapes[i], &slot, NULL, NULL), 0);
        text = nested(&b, JSON_MAX_DEPTH + 1, "{\"a\":", "}");
        assert_int_equal(json_skim(text, shapes[i], &slot, NULL, NULL), ERR_DEPTH);
    }
    buf_fini(&b);
}

/* The slow, obvious definition of UTF-8: decode, then check the code point. */
static bool naive_utf8(const unsigned char *p, size_t n)
{
    static const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};

    for (size_t i = 0; i < n;) {
        size_t len = 1;
        if (p[i] >= 0x80)
            len = p[i] >> 5 == 6 ? 2 : p[i] >> 4 == 14 ? 3 : p[i] >> 3 == 30 ? 4 : 0;
        if (!len || len > n - i)
            return false;
        unsigned code = len == 1 ? p[i] : p[i] & (0xffu >> (len + 1));
        for (size_t j = 1; j < len; j++) {
            if (p[i + j] >> 6 != 2)
                return false;
            code = code << 6 | (p[i + j] & 0x3f);
        }
        if (code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return false;
        i += len;
    }
    return true;
}

static void check_utf8(const unsigned char *bytes, size_t n, size_t before, size_t after)
{
    char text[64];
    size_t at = 0;

    memset(text, 'x', sizeof text);
    text[0] = '"';
    memcpy(text + 1 + before, bytes, n);
    text[1 + before + n + after] = '"';
    int r = skim(span_of(text, before + n + after + 2), NULL, &at);
    if (naive_utf8(bytes, n)) {
        assert_int_equal(r, 0);
    } else {
        assert_int_equal(r, ERR_UTF8);
        assert_in_range(at, 1 + before, before + n);
    }
}

static void test_utf8(void **state)
{
    static const unsigned char edges[] = {0x20, 0x7e, 0x80, 0x8f, 0x90,
                                          0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    unsigned char b[4];

    (void)state;
    for (unsigned i = 0; i < 0x8000; i++) { /* every lead with every second byte */
        b[0] = (unsigned char)(0x80 | i >> 8);
        b[1] = (unsigned char)i;
        if (b[1] < ' ' || b[1] == '"' || b[1] == '\\')
            continue;
        check_utf8(b, 1, i % 3, 20);
        check_utf8(b, 2, 0, 0);
        check_utf8(b, 2, 14 + i % 3, 20);
        for (size_t j = 0; j < COUNT_OF(edges); j++) {
            b[2] = edges[j];
            check_utf8(b, 3, 0, i % 2 ? 20 : 0);
            if (b[0] < 0xf0)
                continue;
            for (size_t k = 0; k < COUNT_OF(edges); k++) {
                b[3] = edges[k];
                check_utf8(b, 4, 12, i % 2 ? 20 : 0);
            }
        }
    }
    /* Outside strings a byte that is not ASCII is a syntax error. */
    assert_int_equal(skim(SPAN("[\xc3\xa4]"), NULL, NULL), ERR_SYNTAX);
}

/* One special byte at every place of strings of many lengths: blocks of 16 have edges. */
static void test_block_edges(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        for (size_t at = 0; at < n; at++) {
            char text[80];
            size_t where = 0;
            memset(text, 'a', sizeof text);
            text[0] = text[n + 1] = '"';
            assert_int_equal(skim(span_of(text, n + 2), NULL, NULL), 0);
            text[1 + at] = 0x1f;
            assert_int_equal(skim(span_of(text, n + 2), NULL, &where), ERR_SYNTAX);
            assert_int_equal(where, 1 + at);
            text[1 + at] = '"';
            assert_int_equal(skim(span_of(text, n + 2), NULL, &where), ERR_SYNTAX);
            assert_int_equal(where, 2 + at);
            text[1 + at] = '\\';
            text[2 + at] = 'n';
            assert_int_equal(skim(span_of(text, n + 2), NULL, &where), at + 1 < n ? 0 : ERR_SYNTAX);
            text[1 + at] = (char)0x80;
            assert_int_equal(skim(span_of(text, n + 2), NULL, &where), ERR_UTF8);
            assert_int_equal(where, 1 + at);
        }
    }
}

enum { S_NAME, S_META, S_TOKEN, S_LIST, S_COUNT };

static const struct json_shape_row meta_rows[] = {{"progressToken", S_TOKEN, NULL}};
static const struct json_shape meta_shape = JSON_SHAPE(meta_rows);
static const struct json_shape_row params_rows[] = {
    {"name", S_NAME, NULL}, {"_meta", S_META, &meta_shape}, {"list", S_LIST, &meta_shape}};
static const struct json_shape params_shape = JSON_SHAPE(params_rows);

static int skim_params(const char *text, struct json_slot slots[S_COUNT])
{
    memset(slots, 0, S_COUNT * sizeof slots[0]);
    return json_skim(span_str(text), &params_shape, slots, NULL, NULL);
}

static void test_shape(void **state)
{
    struct json_slot s[S_COUNT];

    (void)state;
    assert_int_equal(
        skim_params("{\"x\":{\"name\":1}, \"name\" : \"a\\\"b\" ,\"_meta\":"
                    "{\"progressToken\":17,\"y\":[]},\"list\":[{\"progressToken\":1}]}",
                    s),
        0);
    assert_int_equal(s[S_NAME].type, JSON_STRING);
    assert_span(s[S_NAME].value, "\"a\\\"b\"");
    assert_span(s[S_NAME].member, "\"name\" : \"a\\\"b\"");
    assert_int_equal(s[S_META].type, JSON_OBJECT);
    assert_span(s[S_META].value, "{\"progressToken\":17,\"y\":[]}");
    assert_int_equal(s[S_TOKEN].type, JSON_NUMBER);
    assert_span(s[S_TOKEN].value, "17");
    assert_int_equal(s[S_LIST].type, JSON_ARRAY);
    assert_span(s[S_LIST].member, "\"list\":[{\"progressToken\":1}]");

    assert_int_equal(skim_params("{}", s), 0);
    assert_int_equal(skim_params("[{\"name\":1}]", s), 0);
    assert_int_equal(
        skim_params("{\"_meta\":\"progressToken\",\"nam\":1,\"names\":2,\"Name\":3}", s), 0);
    assert_int_equal(s[S_NAME].type, JSON_NONE);
    assert_int_equal(s[S_TOKEN].type, JSON_NONE);
    assert_int_equal(s[S_META].type, JSON_STRING);
    assert_int_equal(skim_params("{\"name\":null}", s), 0);
    assert_int_equal(s[S_NAME].type, JSON_NULL);
}

static void test_shape_keys_are_unescaped(void **state)
{
    struct json_slot s[S_COUNT];

    (void)state;
    assert_int_equal(
        skim_params("{\"\\u006eame\":1,\"\\u005Fmet\\u0061\":{\"progress\\u0054oken\":2}}", s), 0);
    assert_span(s[S_NAME].value, "1");
    assert_span(s[S_TOKEN].value, "2");
    assert_int_equal(
        skim_params("{\"\\u006eam\":1,\"name\\u0000\":2,\"nam\\\\u0065\":3,\"\\name\":4,"
                    "\"\\\\name\":5}",
                    s),
        0);
    assert_int_equal(s[S_NAME].type, JSON_NONE);
}

/*
 * If "name" may occur twice, a filter that looks at the first and a server that looks at the last
 * see two different tools. So the second is refused, however it is spelled.
 */
static void test_shape_refuses_duplicates(void **state)
{
    struct json_slot s[S_COUNT];
    size_t at = 0;

    (void)state;
    assert_int_equal(skim_params("{\"name\":1,\"name\":1}", s), ERR_DUPLICATE);
    assert_int_equal(skim_params("{\"name\":1,\"x\":2,\"n\\u0061me\":1}", s), ERR_DUPLICATE);
    assert_int_equal(skim_params("{\"_meta\":{\"progressToken\":1,\"progressToken\":2}}", s),
                     ERR_DUPLICATE);
    assert_int_equal(skim_params("{\"_meta\":1,\"_meta\":{}}", s), ERR_DUPLICATE);
    assert_int_equal(json_skim(SPAN("{\"name\":1,\"name\":1}"), &params_shape, s, NULL, &at),
                     ERR_DUPLICATE);
    assert_int_equal(at, 10);
    /* Not duplicates: members that the shape does not name, and a slot reached by two paths. */
    assert_int_equal(skim_params("{\"x\":1,\"x\":{\"name\":1,\"name\":2}}", s), 0);
    assert_int_equal(
        skim_params("{\"_meta\":{\"progressToken\":1},\"list\":{\"progressToken\":2}}", s), 0);
    assert_span(s[S_TOKEN].value, "2");
}

/* With a shape the grammar is just as strict. */
static void test_shape_refuses_syntax(void **state)
{
    static const char *const bad[] = {
        "{\"name\"}",      "{\"name\":}",
        "{\"name\":1,}",   "{\"name\":1",
        "{name:1}",        "{\"name\":1]",
        "{\"_meta\":{]}",  "{\"_meta\":{}",
        "{\"name\" 1}",    "{,}",
        "{\"_meta\":{,}}", "{\"name\":1 \"x\":2}",
        "{\"name\":1}}",   "{\"_meta\":{\"a\":1,}}",
    };
    struct json_slot s[S_COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(skim_params(bad[i], s), ERR_SYNTAX);
    assert_int_equal(skim_params("{\"name\":\"\xff\"}", s), ERR_UTF8);
    assert_int_equal(skim_params("{\"name\xff\":1}", s), ERR_UTF8);
}

static void test_envelope_has_its_own_slots(void **state)
{
    static const struct json_shape_row rows[] = {{"id", 0, NULL}, {"params", 1, &params_shape}};
    static const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot outer[2] = {0}, inner[S_COUNT] = {0};
    enum json_type type;
    bool one_line = false;

    (void)state;
    assert_int_equal(json_skim_envelope(SPAN(" {\"params\":{\"name\":\"n\",\"_meta\":"
                                             "{\"progressToken\":5}},\"id\":9} "),
                                        &shape, outer, inner, &type, &one_line),
                     0);
    assert_int_equal(type, JSON_OBJECT);
    assert_true(one_line);
    assert_span(outer[0].value, "9");
    assert_int_equal(outer[1].type, JSON_OBJECT);
    assert_span(inner[S_NAME].value, "\"n\"");
    assert_span(inner[S_TOKEN].value, "5");
}

/* `one_line` saves writers on line-framed links a second scan. Line ends are found wherever white
 * space is allowed; an escaped line end does not count. */
static void test_one_line(void **state)
{
    static const struct {
        const char *text;
        bool one_line;
    } rows[] = {
        {"{\"a\":[1, 2,{}],\t\"b\":\"x\\ny\\r\"}", true},
        {"", true},
        {"\n{}", false},
        {"{}\r", false},
        {"{\n}", false},
        {"{\"a\"\r:1}", false},
        {"{\"a\": \n1}", false},
        {"{\"a\":1\n}", false},
        {"{\"a\":1,\n\"b\":2}", false},
        {"{\"a\":[\n]}", false},
        {"{\"a\":[1  \n,2]}", false},
        {"{\"a\":{\"b\" \r: 1}}", false},
    };
    static const struct json_shape_row named[] = {{"b", 0, NULL}};
    static const struct json_shape shape = JSON_SHAPE(named);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int shaped = 0; shaped < 2; shaped++) {
            struct json_slot slots[1] = {0};
            enum json_type type;
            bool one_line;
            int code = json_skim_envelope(span_str(rows[i].text), shaped ? &shape : NULL, slots,
                                          slots, &type, &one_line);
            assert_int_equal(code, *rows[i].text ? 0 : ERR_SYNTAX);
            assert_int_equal(one_line, rows[i].one_line);
        }
    }
}

/* Long strings are read in large steps: an end or an error is found at every position. */
static void test_every_place_in_a_long_string(void **state)
{
    static const struct {
        const char *bytes;
        int error;
    } rows[] = {{"", 0}, {"\\n", 0}, {"\xc3\xa4", 0}, {"\n", ERR_SYNTAX}, {"\xff", ERR_UTF8}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t n = 0; n < 400; n++) {
            BUF_SCOPED text = {0};
            size_t at = 0;
            buf_char(&text, '"');
            for (size_t k = 0; k < 400; k++)
                k == n ? buf_str(&text, rows[i].bytes) : buf_char(&text, 'x');
            buf_char(&text, '"');
            /* No room after the text: the sanitizer catches a read past the end. */
            char *copy = mem_span(buf_view(&text));
            assert_int_equal(json_skim(span_of(copy, text.n), NULL, NULL, NULL, &at),
                             rows[i].error);
            assert_int_equal(at, rows[i].error ? n + 1 : 0);
            assert_int_equal(json_skim(span_of(copy, text.n - 1), NULL, NULL, NULL, NULL),
                             rows[i].error ? rows[i].error : ERR_SYNTAX);
            mem_free(copy);
        }
    }
}

/* A guarded shape reports members that another JSON reader could take for one that we decide by. */
static void test_guarded_shape(void **state)
{
    enum { NAME, INNER, TOKEN, ODD, SLOTS };
    static const struct json_shape_row inner_rows[] = {{"token", TOKEN, NULL}};
    static const struct json_shape inner = JSON_SHAPE_GUARDED(inner_rows, ODD);
    static const struct json_shape_row rows[] = {{"name", NAME, NULL}, {"_in", INNER, &inner}};
    static const struct json_shape shape = JSON_SHAPE_GUARDED(rows, ODD);
    static const struct {
        const char *text, *odd; /* NULL: nothing odd is found */
    } cases[] = {
        {"{\"name\":1,\"other\":2,\"_in\":{\"x\":1}}", NULL},
        {"{\"name\":1,\"other\":{\"Name\":2}}", NULL},
        {"{\"name\":1,\"Name\":2}", "\"Name\":2"},
        {"{\"Name\" : [2] ,\"name\":1}", "\"Name\" : [2]"},
        {"{\"_in\":{\"TOKEN\":3}}", "\"TOKEN\":3"},
        {"{\"_IN\":{\"token\":3}}", "\"_IN\":{\"token\":3}"},
        {"{\"name\\u0000\":{\"a\":\"}\"}}", "\"name\\u0000\":{\"a\":\"}\"}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json_slot s[SLOTS] = {0};
        assert_int_equal(json_skim(span_str(cases[i].text), &shape, s, NULL, NULL), 0);
        assert_int_equal(s[ODD].type != JSON_NONE, cases[i].odd != NULL);
        if (cases[i].odd)
            assert_span(s[ODD].member, cases[i].odd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_every_place_in_a_long_string),
        cmocka_unit_test(test_guarded_shape),
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_refuses_every_prefix),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_block_edges),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_shape_keys_are_unescaped),
        cmocka_unit_test(test_shape_refuses_duplicates),
        cmocka_unit_test(test_shape_refuses_syntax),
        cmocka_unit_test(test_envelope_has_its_own_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
