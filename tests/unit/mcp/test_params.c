/* The params sent to a server: name and _meta are replaced, all else is the same byte for byte. */
#include "../unit.h"
#include "mcp/server/overrides.h"
#include "mcp/server/upstream.h"

static struct cut cut_at(const char *text, const char *piece)
{
    const char *at = piece ? strstr(text, piece) : NULL;

    return at ? (struct cut){(size_t)(at - text), strlen(piece)} : (struct cut){0, 0};
}

static void expect(const char *params, const char *name_raw, const char *own, const char *meta_raw,
                   const char *keep, const char *meta, const char *extra, const char *expected)
{
    struct buf out = {0};
    struct request r = {.op = OP_CALL_TOOL,
                        .name = span_str(own),
                        .params = span_str(params),
                        .name_at = cut_at(params, name_raw),
                        .meta_at = cut_at(params, meta_raw),
                        .meta_keep = span_str(keep)};

    params_put(&out, &r, span_str(meta), span_str(extra));
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void test_splices(void **state)
{
    (void)state;
    /* Nothing to replace: not a byte changes, odd spacing and lexemes included. */
    expect("{ \"name\" : \"t\",\"arguments\":{\"n\":1.50e+1},\"x\":null}", "\"t\"", "t", NULL, "",
           "", "", "{ \"name\" : \"t\",\"arguments\":{\"n\":1.50e+1},\"x\":null}");
    expect("{\"name\":\"s__t\",\"arguments\":{}}", "\"s__t\"", "t", NULL, "", "", "",
           "{\"name\":\"t\",\"arguments\":{}}");
    /* An escaped spelling of the same name is the same name. */
    expect("{\"name\":\"\\u0074\"}", "\"\\u0074\"", "t", NULL, "", "", "",
           "{\"name\":\"\\u0074\"}");
    /* _meta before and after the name. */
    expect("{\"_meta\":{\"progressToken\":1,\"k\":2},\"name\":\"a\"}", "\"a\"", "b",
           "{\"progressToken\":1,\"k\":2}", "\"k\":2", "\"progressToken\":9", "",
           "{\"_meta\":{\"progressToken\":9,\"k\":2},\"name\":\"b\"}");
    expect("{\"name\":\"a\",\"_meta\":{\"progressToken\":1}}", "\"a\"", "b",
           "{\"progressToken\":1}", "", "", "", "{\"name\":\"b\",\"_meta\":{}}");
    /* There is no _meta, but one is needed. */
    expect("{\"name\":\"a\"}", "\"a\"", "a", NULL, "", "\"progressToken\":9", "",
           "{\"_meta\":{\"progressToken\":9},\"name\":\"a\"}");
    expect("{ }", NULL, "a", NULL, "", "\"t\":1", "", "{\"_meta\":{\"t\":1} }");
    expect("", NULL, "a", NULL, "", "\"t\":1", "", "{\"_meta\":{\"t\":1}}");
    /* A retry adds its own members. */
    expect("{\"name\":\"a\",\"_meta\":{}}", "\"a\"", "a", "{}", "", "\"v\":1",
           "\"requestState\":\"s\"", "{\"requestState\":\"s\",\"name\":\"a\",\"_meta\":{\"v\":1}}");
    /* Line ends between tokens stay: what frames messages by lines takes them out. */
    expect("{\"name\":\"a\",\n \"arguments\":{\"t\":\"x\\ny\"}}", "\"a\"", "b", NULL, "", "", "",
           "{\"name\":\"b\",\n \"arguments\":{\"t\":\"x\\ny\"}}");
}

static void test_overrides(void **state)
{
    const struct mcp_override o = {
        .own = "t", .name = "u", .description = "New", .arguments = "{\"enc\":\"utf8\"}"};
    const char *raw =
        "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"enc\":"
        "{},\"path\":{\"type\":\"string\"}},\"required\":[\"enc\",\"path\"]},\"x\":1}";
    struct buf out = {0}, params = {0};

    (void)state;
    override_put_tool(&out, &o, span_str(raw));
    assert_string_equal(buf_cstr(&out),
                        "{\"name\":\"u\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
                        "\"path\":{\"type\":\"string\"}},\"required\":[\"path\"]},\"x\":1,"
                        "\"description\":\"New\"}");
    buf_fini(&out);

    struct request r = {
        .op = OP_CALL_TOOL,
        .name = SPAN("t"),
        .params = SPAN("{\"name\":\"t\",\"arguments\":{\"enc\":\"evil\",\"path\":\"/\"}}")};
    struct request pinned = override_request(&o, &r, &params);
    assert_true(
        span_is(pinned.params, "{\"name\":\"t\",\"arguments\":{\"path\":\"/\",\"enc\":\"utf8\"}}"));
    assert_true(span_is(span_cut(pinned.params, pinned.name_at.at, pinned.name_at.n), "\"t\""));
    params.n = 0;
    r.params = SPAN("{\"name\":\"t\"}");
    pinned = override_request(&o, &r, &params);
    assert_true(span_is(pinned.params, "{\"name\":\"t\",\"arguments\":{\"enc\":\"utf8\"}}"));
    buf_fini(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splices),
        cmocka_unit_test(test_overrides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
