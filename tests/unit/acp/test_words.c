/* Reading a message once, and extracting it from every kind of envelope. */
#include "../unit.h"
#include "acp/words.h"

static void expect_word(const char *method, enum acp_word word)
{
    struct buf raw = {0};

    json_quote(&raw, span_str(method));
    assert_int_equal(acp_word_of(buf_view(&raw)), word);
    buf_fini(&raw);
}

static void test_words(void **state)
{
    (void)state;
    expect_word("initialize", WORD_INITIALIZE);
    expect_word("proxy/initialize", WORD_PROXY_INITIALIZE);
    expect_word("_proxy/initialize", WORD_PROXY_INITIALIZE);
    expect_word("$/cancel_request", WORD_CANCEL);
    expect_word("session/new", WORD_SETUP_NEW);
    expect_word("session/fork", WORD_SETUP_NEW);
    expect_word("session/load", WORD_SETUP);
    expect_word("session/resume", WORD_SETUP);
    expect_word("session/close", WORD_CLOSE);
    expect_word("session/delete", WORD_CLOSE);
    expect_word("_mcp/server_to_client/request", WORD_MCP);
    expect_word("_mcp/client_to_server/notification", WORD_MCP);
    expect_word("_mcp/550e8400/tools/call", WORD_MCP_PATH);
    expect_word("_mcp/550e8400", WORD_OTHER);
    expect_word("mcp/message", WORD_MCP);
    expect_word("mcp/disconnect", WORD_MCP_CLOSE);
    expect_word("session/prompt", WORD_OTHER);
    expect_word("session/new/", WORD_OTHER);
    expect_word("", WORD_OTHER);
    assert_int_equal(acp_word_of(SPAN("\"session\\/new\"")), WORD_SETUP_NEW);
}

static void test_flat_envelope(void **state)
{
    struct acp_message m;

    (void)state;
    assert_int_equal(acp_skim(SPAN("{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"_proxy/successor\","
                                   "\"params\":{\"method\":\"session/new\",\"params\":{\"cwd\":"
                                   "\"/\",\"sessionId\":\"s\"},\"_meta\":{\"method\":1}}}"),
                              &m),
                     0);
    assert_true(acp_unwrap(&m));
    assert_true(m.wrapped && !m.nested && acp_is_request(&m));
    assert_int_equal(m.word, WORD_SETUP_NEW);
    assert_span(m.method, "\"session/new\"");
    assert_span(m.params, "{\"cwd\":\"/\",\"sessionId\":\"s\"}");
    assert_span(m.slots[ACP_SESSION_ID].value, "\"s\"");
}

static void test_envelope_without_params(void **state)
{
    struct acp_message m;

    (void)state;
    assert_int_equal(acp_skim(SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"proxy/successor\",\"params\":"
                                   "{\"method\":\"x\",\"params\":null}}"),
                              &m),
                     0);
    assert_true(acp_unwrap(&m));
    assert_int_equal(m.params.n, 0);
    assert_false(acp_is_request(&m));
}

static void test_nested_envelope(void **state)
{
    struct acp_message m;

    (void)state;
    assert_int_equal(
        acp_skim(SPAN("{\"id\":7,\"method\":\"_proxy/successor/send/request\",\"params\":{"
                      "\"message\":{\"jsonrpc\":\"2.0\",\"id\":\"in\",\"method\":\"mcp/message\","
                      "\"params\":{\"connectionId\":\"c\"}}}}"),
                 &m),
        0);
    assert_true(acp_unwrap(&m));
    assert_true(m.nested);
    assert_span(m.inner_id, "\"in\"");
    assert_int_equal(m.word, WORD_MCP);
    assert_span(acp_first(&m, ACP_CONNECTION_ID, ACP_CONNECTION_ID_OLD).value, "\"c\"");
}

/* M0b: the method name of the ACP message contains the server and method of the MCP message. */
static void test_carried_in_the_name(void **state)
{
    struct acp_message m;
    struct acp_carried said;

    (void)state;
    assert_int_equal(
        acp_skim(SPAN("{\"id\":1,\"method\":\"proxy/successor\",\"params\":{\"method\":"
                      "\"_mcp/u-1/tools/call\",\"params\":{\"url\":1,\"url\":2}}}"),
                 &m),
        0);
    assert_true(acp_unwrap(&m));
    assert_int_equal(m.word, WORD_MCP_PATH);
    assert_true(acp_carried(&m, &said));
    assert_span(said.server, "u-1");
    assert_span(said.method, "\"tools/call\"");
    assert_span(said.params, "{\"url\":1,\"url\":2}");
    assert_int_equal(said.id.n, 0);
    buf_fini(&said.quoted);
}

static void test_bad_envelopes(void **state)
{
    static const char *const bad[] = {
        "{\"id\":1,\"method\":\"proxy/successor\"}",
        "{\"id\":1,\"method\":\"proxy/successor\",\"params\":{}}",
        "{\"id\":1,\"method\":\"proxy/successor\",\"params\":{\"method\":7}}",
        "{\"id\":1,\"method\":\"proxy/successor\",\"params\":{\"method\":\"x\",\"params\":7}}",
        "{\"id\":1,\"method\":\"proxy/successor\",\"params\":{\"message\":{\"result\":1}}}",
        "{\"id\":1,\"method\":\"proxy/successor\",\"params\":{\"method\":\"session/"
        "new\",\"params\":"
        "{\"sessionId\":1,\"sessionId\":2}}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct acp_message m;
        assert_int_equal(acp_skim(span_str(bad[i]), &m), 0);
        assert_false(acp_unwrap(&m));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_flat_envelope),
        cmocka_unit_test(test_nested_envelope),
        cmocka_unit_test(test_envelope_without_params),
        cmocka_unit_test(test_carried_in_the_name),
        cmocka_unit_test(test_bad_envelopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
