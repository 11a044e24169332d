/* The JSON-RPC envelope: kinds, faults, and messages written and read back. */
#include "../unit.h"

#include "base/buf.h"
#include "wire/rpc.h"

#include <stdio.h>

static struct rpc_message skim(const char *text)
{
    struct rpc_message m;
    assert_int_equal(rpc_skim(span_str(text), NULL, NULL, NULL, 0, &m), 0);
    return m;
}

static void test_request(void **state)
{
    struct rpc_message m =
        skim(" {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":"
             "{\"name\":\"x\"}}\n");

    (void)state;
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_true(m.versioned);
    assert_span(m.id, "7");
    assert_span(m.method, "tools/call");
    assert_true(rpc_method_is(&m, "tools/call"));
    assert_false(rpc_method_is(&m, "tools/cal"));
    assert_span(m.params, "{\"name\":\"x\"}");
    assert_int_equal(m.result.n + m.error.n, 0);
    assert_null(m.why);
    assert_int_equal(m.text.p[0], '{');
    assert_int_equal(m.text.p[m.text.n - 1], '}');

    m = skim("{\"id\":\"a\\\"\",\"params\":[1],\"method\":\"x\"}");
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_false(m.versioned);
    assert_span(m.id, "\"a\\\"\"");
    assert_span(m.params, "[1]");
}

/* Ids pass as they are: no number is ever converted, however large. */
static void test_ids_stay_raw(void **state)
{
    static const char *const ids[] = {
        "0", "-1", "1.0", "1e3", "123456789012345678901234567890", "\"\"", "\"\\u0041\""};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
        struct rpc_message m = skim(text);
        assert_int_equal(m.kind, RPC_RESULT);
        assert_span(m.id, ids[i]);
        struct buf b = {0};
        rpc_put_result(&b, m.id, m.result);
        assert_string_equal(buf_cstr(&b), text);
        buf_fini(&b);
    }
}

static void test_other_kinds(void **state)
{
    struct rpc_message m = skim("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");

    (void)state;
    assert_int_equal(m.kind, RPC_NOTIFICATION);
    assert_int_equal(m.id.n, 0);
    m = skim("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
    assert_int_equal(m.kind, RPC_RESULT);
    assert_span(m.result, "null");
    m = skim("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1}}");
    assert_int_equal(m.kind, RPC_ERROR);
    assert_span(m.error, "{\"code\":-1}");
    m = skim("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}");
    assert_int_equal(m.kind, RPC_ERROR);
    assert_span(m.id, "null");
    m = skim("{\"jsonrpc\":\"2.0\",\"error\":{}}");
    assert_int_equal(m.kind, RPC_ERROR);
    assert_int_equal(m.id.n, 0);
}

/*
 * PHP's encoder writes "tools\/call". That is the same string, but a comparison of raw bytes
 * treated such calls as unknown methods.
 */
static void test_method_with_escapes(void **state)
{
    struct rpc_message m = skim("{\"id\":1,\"method\":\"tools\\/call\"}");

    (void)state;
    assert_span(m.method, "tools\\/call");
    assert_true(rpc_method_is(&m, "tools/call"));
    assert_false(rpc_method_is(&m, "tools\\/call"));
    m = skim("{\"id\":1,\"result\":{}}");
    assert_false(rpc_method_is(&m, ""));
    m = skim("{\"id\":1,\"method\":\"\"}");
    assert_true(rpc_method_is(&m, ""));
}

static void test_batch(void **state)
{
    struct rpc_message m = skim(" [{\"id\":1,\"method\":\"a\"},{\"method\":\"b\"}, 3] "), part;
    struct json_iter it = json_iter(m.text);
    static const enum rpc_kind kinds[] = {RPC_REQUEST, RPC_NOTIFICATION, RPC_INVALID};

    (void)state;
    assert_int_equal(m.kind, RPC_BATCH);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        assert_true(json_next(&it));
        assert_int_equal(rpc_skim(it.value, NULL, NULL, NULL, 0, &part), 0);
        assert_int_equal(part.kind, kinds[i]);
    }
    assert_false(json_next(&it));
    assert_int_equal(skim("[]").kind, RPC_BATCH);
}

static void test_batch_that_is_too_long(void **state)
{
    struct rpc_message m = skim("[1,[2,3],{\"a\":[4]}]"), none = skim("[]");
    struct buf why = {0};

    (void)state;
    assert_true(rpc_batch_fits(&none, 1, &why));
    assert_true(rpc_batch_fits(&m, 3, &why));
    assert_int_equal(why.n, 0);
    assert_false(rpc_batch_fits(&m, 2, &why));
    assert_non_null(strstr(buf_cstr(&why), "a batch of 3 messages: at most 2 "));
    assert_non_null(strstr(buf_cstr(&why), "limits.batch"));
    buf_fini(&why);
}

static void test_invalid(void **state)
{
    static const struct {
        const char *text, *id;
    } bad[] = {
        {"1", ""},
        {"null", ""},
        {"\"method\"", ""},
        {"{}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", "1"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", "1"},
        {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", "1"},
        {"{\"jsonrpc\":null,\"id\":1,\"method\":\"a\"}", "1"},
        {"{\"id\":null,\"method\":\"a\"}", "null"},
        {"{\"id\":true,\"method\":\"a\"}", ""},
        {"{\"id\":[1],\"method\":\"a\"}", ""},
        {"{\"id\":{},\"error\":{}}", ""},
        {"{\"id\":1,\"method\":1}", "1"},
        {"{\"id\":1,\"method\":null}", "1"},
        {"{\"id\":1,\"method\":\"a\",\"params\":1}", "1"},
        {"{\"id\":1,\"method\":\"a\",\"params\":null}", "1"},
        {"{\"id\":1,\"method\":\"a\",\"result\":1}", "1"},
        {"{\"id\":1,\"method\":\"a\",\"error\":{}}", "1"},
        {"{\"id\":1,\"result\":1,\"error\":{}}", "1"},
        {"{\"result\":1}", ""},
        {"{\"id\":null,\"result\":1}", "null"},
        {"{\"id\":1,\"error\":\"broken\"}", "1"},
        {"{\"id\":1,\"error\":null}", "1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct rpc_message m = skim(bad[i].text);
        if (m.kind != RPC_INVALID)
            fail_msg("%s was taken", bad[i].text);
        assert_non_null(m.why);
        assert_span(m.id, bad[i].id);
        assert_int_equal(m.method.n + m.params.n + m.result.n + m.error.n, 0);
    }
}

static void test_not_json(void **state)
{
    static const struct {
        const char *text;
        int code;
    } bad[] = {
        {"", ERR_SYNTAX},
        {"{\"id\":1,", ERR_SYNTAX},
        {"{\"id\":1,\"id\":1,\"method\":\"a\"}", ERR_DUPLICATE},
        {"{\"id\":1,\"method\":\"a\",\"m\\u0065thod\":\"b\"}", ERR_DUPLICATE},
        {"{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"method\":\"a\"}", ERR_DUPLICATE},
        {"{\"id\":1,\"method\":\"\xff\"}", ERR_UTF8},
    };
    struct rpc_message m;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(rpc_skim(span_str(bad[i].text), NULL, NULL, NULL, 0, &m), bad[i].code);
}

enum { S_NAME, S_META, S_TOKEN, S_COUNT };

static void test_shapes(void **state)
{
    static const struct json_shape_row meta_rows[] = {{"progressToken", S_TOKEN, NULL}};
    static const struct json_shape meta = JSON_SHAPE(meta_rows);
    static const struct json_shape_row params_rows[] = {{"name", S_NAME, NULL},
                                                        {"_meta", S_META, &meta}};
    static const struct json_shape_row result_rows[] = {{"tools", S_NAME, NULL}};
    static const struct json_shape params = JSON_SHAPE(params_rows),
                                   result = JSON_SHAPE(result_rows);
    struct json_slot slots[S_COUNT];
    struct rpc_message m;

    (void)state;
    memset(slots, 0xff, sizeof slots); /* they are zeroed for us */
    assert_int_equal(
        rpc_skim(SPAN("{\"name\":0,\"method\":\"m\",\"params\":{\"name\":\"n\",\"id\":5,"
                      "\"_meta\":{\"progressToken\":\"t\"}},\"id\":1}"),
                 &params, &result, slots, S_COUNT, &m),
        0);
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_span(m.id, "1");
    assert_ptr_equal(m.slots, slots);
    assert_span(slots[S_NAME].value, "\"n\"");
    assert_span(slots[S_TOKEN].value, "\"t\"");

    assert_int_equal(rpc_skim(SPAN("{\"id\":1,\"result\":{\"tools\":[],\"name\":1}}"), &params,
                              &result, slots, S_COUNT, &m),
                     0);
    assert_int_equal(m.kind, RPC_RESULT);
    assert_span(slots[S_NAME].value, "[]");
    assert_int_equal(slots[S_META].type, JSON_NONE);
    assert_int_equal(slots[S_TOKEN].type, JSON_NONE);

    assert_int_equal(rpc_skim(SPAN("{\"method\":\"m\",\"params\":{\"name\":1,\"name\":2}}"),
                              &params, &result, slots, S_COUNT, &m),
                     ERR_DUPLICATE);
    assert_int_equal(rpc_skim(SPAN("{\"method\":\"m\",\"params\":[{\"name\":1,\"name\":2}]}"),
                              &params, &result, slots, S_COUNT, &m),
                     0);
    assert_int_equal(slots[S_NAME].type, JSON_NONE);
}

static void test_error_of(void **state)
{
    struct rpc_error e =
        rpc_error_of(SPAN("{\"data\":[1],\"message\":\"no \\\"x\\\"\",\"code\":-32601}"));

    (void)state;
    assert_int_equal(e.code, RPC_METHOD_NOT_FOUND);
    assert_span(e.message, "\"no \\\"x\\\"\"");
    assert_span(e.data, "[1]");
    e = rpc_error_of(SPAN("{\"code\":\"1\",\"message\":2}"));
    assert_int_equal(e.code, RPC_INTERNAL_ERROR);
    assert_int_equal(e.message.n + e.data.n, 0);
}

static void check_written(struct buf *b, const char *expected, enum rpc_kind kind)
{
    assert_string_equal(buf_cstr(b), expected);
    assert_int_equal(skim(buf_cstr(b)).kind, kind);
    b->n = 0;
}

static void test_writers(void **state)
{
    struct buf b = {0};

    (void)state;
    rpc_put_request(&b, UINT64_MAX, "tools/list", SPAN_EMPTY);
    check_written(&b, "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"tools/list\"}",
                  RPC_REQUEST);
    rpc_put_request(&b, 1, "a\"b", SPAN("{\"x\":1}"));
    check_written(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\\"b\",\"params\":{\"x\":1}}",
                  RPC_REQUEST);
    rpc_put_notification(&b, "n", SPAN("[]"));
    check_written(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[]}", RPC_NOTIFICATION);
    rpc_put_notification(&b, "n", SPAN_EMPTY);
    check_written(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", RPC_NOTIFICATION);
    rpc_put_result(&b, SPAN("\"i\""), SPAN("{}"));
    check_written(&b, "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":{}}", RPC_RESULT);
    rpc_put_error_raw(&b, SPAN("5"), SPAN("{\"code\":1}"));
    check_written(&b, "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":1}}", RPC_ERROR);
    rpc_put_error(&b, SPAN_EMPTY, RPC_PARSE_ERROR, SPAN("not \"JSON\""), SPAN_EMPTY);
    check_written(
        &b, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"not \\\"JSON\\\"\"}}",
        RPC_ERROR);
    rpc_put_error(&b, SPAN("null"), -32600, SPAN("m"), SPAN("{\"a\":1}"));
    check_written(&b,
                  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"m\","
                  "\"data\":{\"a\":1}}}",
                  RPC_ERROR);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_ids_stay_raw),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_method_with_escapes),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_error_of),
        cmocka_unit_test(test_writers),
        cmocka_unit_test(test_batch_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
