/*
 * A page's tool in the lists of agents. A tool whose schema had another type, or a hint that was no
 * boolean, made the official client refuse the whole list, with the tools of all other servers.
 */
#include "../unit.h"
#include "browser/entry.h"

#include "base/mem.h"
#include "wire/json.h"

#define EMPTY_SCHEMA "{\"type\":\"object\",\"properties\":{}}"

static void check(const char *tool, const char *wanted)
{
    struct item item = {0};
    struct buf out = {0};
    struct span exact = unit_exact(span_str(tool));

    entry_put(&out, exact, SPAN("n"), SPAN_EMPTY, &item);
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    assert_string_equal(buf_cstr(&out), wanted);
    assert_span(span_cut(buf_view(&out), item.name_at.at, item.name_at.n), "\"n\"");
    unit_free(exact);
    buf_fini(&out);
}

static void test_schemas(void **state)
{
    static const struct {
        const char *given, *wanted;
    } cases[] = {
        {"{\"type\":\"object\"}", "{\"type\":\"object\"}"},
        {"{ \"type\" : \"object\",\"x\":[1.0], \"properties\":{\"a\":{}},\"required\":[\"a\"]}",
         "{ \"type\" : \"object\",\"x\":[1.0], \"properties\":{\"a\":{}},\"required\":[\"a\"]}"},
        {"{}", EMPTY_SCHEMA},
        {"{\"properties\":{\"a\":{}}}", "{\"type\":\"object\",\"properties\":{\"a\":{}}}"},
        {"{\"type\":\"string\"}", EMPTY_SCHEMA},
        {"{\"type\":[\"object\",\"null\"]}", EMPTY_SCHEMA},
        {"{\"type\":\"object\",\"type\":\"string\"}", EMPTY_SCHEMA},
        {"{\"type\":\"object\",\"properties\":[]}", EMPTY_SCHEMA},
        {"{\"type\":\"object\",\"properties\":{\"a\":true}}", EMPTY_SCHEMA},
        {"{\"type\":\"object\",\"required\":true}", EMPTY_SCHEMA},
        {"{\"type\":\"object\",\"required\":[1]}", EMPTY_SCHEMA},
        {"null", EMPTY_SCHEMA},
        {"\"{}\"", EMPTY_SCHEMA},
    };

    (void)state;
    check("{}", "{\"name\":\"n\",\"inputSchema\":" EMPTY_SCHEMA "}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf tool = {0}, wanted = {0};
        buf_printf(&tool, "{\"inputSchema\":%s}", cases[i].given);
        buf_printf(&wanted, "{\"name\":\"n\",\"inputSchema\":%s}", cases[i].wanted);
        check(buf_cstr(&tool), buf_cstr(&wanted));
        buf_fini(&tool);
        buf_fini(&wanted);
    }
}

static void test_annotations(void **state)
{
    static const struct {
        const char *given, *wanted;
    } cases[] = {
        {"{}", "{}"},
        {"{\"readOnlyHint\":true,\"title\":\"T\",\"x\":{\"y\":1e2}}",
         "{\"readOnlyHint\":true,\"title\":\"T\",\"x\":{\"y\":1e2}}"},
        {"{\"consequentialHint\":true}", "{\"destructiveHint\":true,\"consequentialHint\":true}"},
        {"{\"consequentialHint\":true,\"destructiveHint\":false}",
         "{\"consequentialHint\":true,\"destructiveHint\":false}"},
        {"{\"readOnlyHint\":\"yes\",\"x\":1,\"destructiveHint\":0,\"idempotentHint\":null,"
         "\"openWorldHint\":[],\"title\":7}",
         "{\"x\":1}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf tool = {0}, wanted = {0};
        buf_printf(&tool, "{\"annotations\":%s}", cases[i].given);
        buf_printf(&wanted, "{\"name\":\"n\",\"inputSchema\":" EMPTY_SCHEMA ",\"annotations\":%s}",
                   cases[i].wanted);
        check(buf_cstr(&tool), buf_cstr(&wanted));
        buf_fini(&tool);
        buf_fini(&wanted);
    }
    check("{\"annotations\":[]}", "{\"name\":\"n\",\"inputSchema\":" EMPTY_SCHEMA "}");
}

static void test_the_rest(void **state)
{
    struct item item = {0};
    struct buf out = {0};

    (void)state;
    check("{\"title\":1,\"description\":{},\"name\":\"own\",\"icons\":3}",
          "{\"name\":\"n\",\"inputSchema\":" EMPTY_SCHEMA "}");
    entry_put(&out,
              SPAN("{\"description\":\"D\",\"title\":\"T\",\"annotations\":{\"readOnlyHint\":true,"
                   "\"idempotentHint\":true}}"),
              SPAN("n"), SPAN_EMPTY, &item);
    assert_int_equal(item.flags, ITEM_READ_ONLY | ITEM_IDEMPOTENT);
    assert_span(span_cut(buf_view(&out), item.description_at.at, item.description_at.n), "\"D\"");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_annotations),
        cmocka_unit_test(test_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
