/* Every row of the two dialect tables, compared with messages written out by hand. */
#include "../unit.h"
#include "acp/mcp_dialects.h"
#include "acp/proxy_dialects.h"

static struct span quoted(struct buf *b, const char *text)
{
    b->n = 0;
    json_quote(b, span_str(text));
    return buf_view(b);
}

static void test_envelope_names(void **state)
{
    static const struct {
        const char *method;
        enum proxy_dialect dialect;
    } rows[] = {
        {"_proxy/successor/send/request", P0},
        {"_proxy/successor/send/notification", P0},
        {"_proxy/successor/receive/request", P0},
        {"_proxy/successor/receive/notification", P0},
        {"_proxy/successor/request", P1},
        {"_proxy/successor/notification", P1},
        {"_proxy/successor", P2},
        {"proxy/successor", P3},
        {"_proxy/successor/", P_UNKNOWN},
        {"proxy/initialize", P_UNKNOWN},
        {"session/new", P_UNKNOWN},
    };
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(proxy_dialect_of_envelope(quoted(&b, rows[i].method)), rows[i].dialect);
    assert_int_equal(proxy_dialect_of_envelope(SPAN("\"_proxy\\/successor\"")), P2);
    buf_fini(&b);
}

static void test_proxy_rows(void **state)
{
    struct buf b = {0};

    (void)state;
    for (enum proxy_dialect d = P0; d < P_COUNT; d++) {
        const struct proxy_row *row = &proxy_rows[d];
        assert_int_equal(proxy_dialect_parse(span_str(row->name)), d);
        assert_int_equal(proxy_dialect_of_envelope(quoted(&b, row->forward_request)), d);
        assert_int_equal(proxy_dialect_of_envelope(quoted(&b, row->deliver_notification)), d);
        /* Dialects that use plain initialize are recognised by the offer, not by the method. */
        assert_int_equal(proxy_dialect_of_initialize(quoted(&b, row->initialize)),
                         row->offers ? P_UNKNOWN : d);
        assert_int_equal(row->offers, strcmp(row->initialize, "initialize") == 0);
    }
    assert_int_equal(proxy_dialect_parse(SPAN("p2")), P2);
    assert_int_equal(proxy_dialect_parse(SPAN("p4")), P_UNKNOWN);
    buf_fini(&b);
}

static void expect_connect(enum mcp_dialect d, const char *session, const char *expected)
{
    struct buf out = {0};

    mcp_dialect_put_connect(&out, d, SPAN("\"acp:u\""), span_str(session));
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void test_connect(void **state)
{
    (void)state;
    expect_connect(M1, "\"s\"",
                   "{\"acp_url\":\"acp:u\",\"acp_id\":\"acp:u\",\"session_id\":\"s\"}");
    expect_connect(M2, NULL, "{\"acp_url\":\"acp:u\",\"acp_id\":\"acp:u\"}");
    expect_connect(M3A, "\"s\"", "{\"acpUrl\":\"acp:u\"}");
    expect_connect(M3, "\"s\"", "{\"serverId\":\"acp:u\",\"acpId\":\"acp:u\"}");
}

static void expect_message(enum mcp_dialect d, struct span params, const char *expected)
{
    const struct mcp_parts parts = {.method = SPAN("\"tools/list\""),
                                    .params = params,
                                    .key = SPAN("\"k\""),
                                    .connection = SPAN("\"c\""),
                                    .request_id = SPAN("\"r\"")};
    struct buf out = {0};

    mcp_dialect_put_message(&out, d, &parts);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void test_message(void **state)
{
    struct span some = SPAN("{\"a\":1}");

    (void)state;
    expect_message(M0, some,
                   "{\"url\":\"k\",\"message\":{\"jsonrpc\":\"2.0\",\"id\":\"r\","
                   "\"method\":\"tools/list\",\"params\":{\"a\":1}}}");
    expect_message(M0B, some, "{\"a\":1}");
    expect_message(M0B, SPAN_EMPTY, "");
    expect_message(M1, some,
                   "{\"connectionId\":\"c\",\"connection_id\":\"c\",\"method\":\"tools/list\","
                   "\"params\":{\"a\":1}}");
    expect_message(M2, SPAN_EMPTY,
                   "{\"connectionId\":\"c\",\"connection_id\":\"c\",\"method\":\"tools/list\","
                   "\"params\":null}");
    expect_message(M3, SPAN_EMPTY, "{\"connectionId\":\"c\",\"method\":\"tools/list\"}");
    expect_message(M3A, some,
                   "{\"connectionId\":\"c\",\"method\":\"tools/list\",\"params\":{\"a\":1}}");
    expect_message(M4, some,
                   "{\"serverId\":\"k\",\"requestId\":\"r\",\"method\":\"tools/list\","
                   "\"params\":{\"a\":1}}");
}

static void test_methods(void **state)
{
    static const struct {
        enum mcp_dialect d;
        const char *request, *notification;
    } rows[] = {
        {M0, "\"_mcp/client_to_server/request\"", "\"_mcp/client_to_server/notification\""},
        {M0B, "\"_mcp/u-1/tools/list\"", "\"_mcp/u-1/tools/list\""},
        {M1, "\"_mcp/request\"", "\"_mcp/notification\""},
        {M2, "\"_mcp/message\"", "\"_mcp/message\""},
        {M3A, "\"mcp/message\"", "\"mcp/message\""},
        {M3, "\"mcp/message\"", "\"mcp/message\""},
        {M4, "\"mcp/message\"", NULL},
    };
    const struct mcp_parts parts = {.method = SPAN("\"tools/list\""), .key = SPAN("\"acp:u-1\"")};
    struct buf out = {0};

    (void)state;
    assert_int_equal(COUNT_OF(rows), M_COUNT);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        out.n = 0;
        mcp_dialect_put_method(&out, rows[i].d, &parts, true);
        assert_string_equal(buf_cstr(&out), rows[i].request);
        if (!rows[i].notification) {
            assert_null(mcp_rows[rows[i].d].notification);
            continue;
        }
        out.n = 0;
        mcp_dialect_put_method(&out, rows[i].d, &parts, false);
        assert_string_equal(buf_cstr(&out), rows[i].notification);
    }
    buf_fini(&out);
}

static void test_disconnect(void **state)
{
    struct buf out = {0};

    (void)state;
    mcp_dialect_put_disconnect(&out, M1, SPAN("\"c\""));
    assert_string_equal(buf_cstr(&out), "{\"connection_id\":\"c\",\"connectionId\":\"c\"}");
    out.n = 0;
    mcp_dialect_put_disconnect(&out, M3, SPAN("\"c\""));
    assert_string_equal(buf_cstr(&out), "{\"connectionId\":\"c\"}");
    buf_fini(&out);
    assert_true(mcp_rows[M3].disconnect_asks);
    assert_false(mcp_rows[M1].disconnect_asks || mcp_rows[M2].disconnect_asks);
    assert_null(mcp_rows[M0].disconnect);
    assert_null(mcp_rows[M4].disconnect);
}

static void test_choice(void **state)
{
    (void)state;
    assert_int_equal(mcp_dialect_guess(BY_URL, true), M1);
    assert_int_equal(mcp_dialect_guess(BY_URL, false), M2);
    assert_int_equal(mcp_dialect_guess(BY_ID, false), M3);
    assert_int_equal(mcp_dialect_guess(BY_SERVER_ID, true), M3);
    /* After -32601 to connect the next older dialect is tried, down to one without connections. */
    assert_int_equal(mcp_dialect_after(M1, BY_URL), M3A);
    assert_int_equal(mcp_dialect_after(M3A, BY_URL), M0);
    assert_int_equal(mcp_dialect_after(M0, BY_URL), M_NONE);
    assert_int_equal(mcp_dialect_after(M3, BY_SERVER_ID), M4);
    assert_int_equal(mcp_dialect_after(M3, BY_ID), M_NONE);
    assert_int_equal(mcp_rows[M1].twin, M2);
    assert_int_equal(mcp_rows[M2].twin, M1);
    assert_int_equal(mcp_rows[M0].twin, M0B);
    assert_int_equal(mcp_rows[M0B].twin, M_NONE);
}

static void test_declarations(void **state)
{
    static const struct {
        const char *entry;
        bool is;
        enum declared_as form;
        const char *key;
    } rows[] = {
        {"{\"transport\":\"http\",\"url\":\"acp:1\",\"headers\":{}}", true, BY_URL, "\"acp:1\""},
        {"{\"type\":\"http\",\"name\":\"n\",\"url\":\"acp:1\",\"headers\":[]}", true, BY_URL,
         "\"acp:1\""},
        {"{\"name\":\"n\",\"url\":\"acp:1\"}", true, BY_URL, "\"acp:1\""},
        {"{\"type\":\"acp\",\"name\":\"n\",\"id\":\"i\"}", true, BY_ID, "\"i\""},
        {"{\"type\":\"acp\",\"name\":\"n\",\"serverId\":\"s\",\"id\":\"i\"}", true, BY_SERVER_ID,
         "\"s\""},
        {"{\"transport\":\"acp\",\"serverId\":\"s\"}", true, BY_SERVER_ID, "\"s\""},
        {"{\"type\":\"acp\",\"name\":\"n\"}", false, 0, NULL},
        {"{\"type\":\"acp\",\"serverId\":7}", false, 0, NULL},
        {"{\"url\":\"acp:\"}", false, 0, NULL},
        {"{\"url\":\"https://x/?acp:1\"}", false, 0, NULL},
        {"{\"type\":\"http\",\"url\":\"http://127.0.0.1\"}", false, 0, NULL},
        {"{\"name\":\"n\",\"command\":\"/x\",\"args\":[\"acp:1\"],\"env\":[]}", false, 0, NULL},
        {"\"acp:1\"", false, 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct declaration d = {0};
        assert_int_equal(declaration_read(span_str(rows[i].entry), &d), rows[i].is);
        if (rows[i].is) {
            assert_int_equal(d.form, rows[i].form);
            assert_span(d.key, rows[i].key);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope_names), cmocka_unit_test(test_proxy_rows),
        cmocka_unit_test(test_connect),        cmocka_unit_test(test_message),
        cmocka_unit_test(test_methods),        cmocka_unit_test(test_disconnect),
        cmocka_unit_test(test_choice),         cmocka_unit_test(test_declarations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
