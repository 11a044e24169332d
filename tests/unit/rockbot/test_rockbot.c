/*
 * RockBot's messages: its test groups MessageEnvelope, TraceContextPropagator, WellKnownHeaders,
 * McpMessageSerialization and McpManagementMessageSerialization.
 */
#include "../unit.h"

#include "bus/message.h"
#include "rockbot/rockbot.h"
#include "rockbot/trace.h"

#include <stdio.h>

#define VALUES(...) ((const struct span[ROCKBOT_MAX_MEMBERS]){__VA_ARGS__})

static void assert_put(enum rockbot_record type, const struct span *values, const char *expected)
{
    struct buf out = {0};

    rockbot_put(&out, type, values);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

/* --- records --- */

static void test_every_member_is_written(void **state)
{
    static const char *const empty[ROCKBOT_RECORDS] = {
        [ROCKBOT_INVOKE] = "{\"toolCallId\":\"\",\"toolName\":\"\",\"arguments\":null,"
                           "\"sessionId\":null,\"batchId\":null}",
        [ROCKBOT_RESULT] = "{\"toolCallId\":\"\",\"toolName\":\"\",\"content\":null,"
                           "\"contentBlocks\":null,\"isError\":false}",
        [ROCKBOT_ERROR] = "{\"toolCallId\":\"\",\"toolName\":\"\",\"code\":\"\",\"message\":\"\","
                          "\"isRetryable\":false}",
        [ROCKBOT_TOOLS_AVAILABLE] = "{\"serverName\":\"\",\"tools\":[],\"removedTools\":[]}",
        [ROCKBOT_SERVERS_INDEXED] = "{\"servers\":[],\"removedServers\":[]}",
        [ROCKBOT_REFRESH] = "{\"serverName\":null}",
        [ROCKBOT_GET_DETAILS] = "{\"serverName\":\"\"}",
        [ROCKBOT_DETAILS] = "{\"serverName\":\"\",\"tools\":[],\"error\":null,\"serverId\":null,"
                            "\"fingerprint\":null,\"implementationName\":null,\"title\":null,"
                            "\"version\":null,\"description\":null,\"instructions\":null,"
                            "\"prompts\":[],\"resourceCount\":0}",
        [ROCKBOT_REGISTER] = "{\"serverName\":\"\",\"type\":null,\"url\":null,\"command\":null,"
                             "\"args\":[],\"env\":{}}",
        [ROCKBOT_REGISTERED] = "{\"serverName\":\"\",\"success\":false,\"summary\":null,"
                               "\"error\":null}",
        [ROCKBOT_UNREGISTER] = "{\"serverName\":\"\"}",
        [ROCKBOT_UNREGISTERED] = "{\"serverName\":\"\",\"success\":false,\"error\":null}",
        [ROCKBOT_GET_PROMPT] = "{\"serverName\":\"\",\"promptName\":\"\",\"arguments\":null}",
        [ROCKBOT_PROMPT] = "{\"serverName\":\"\",\"promptName\":\"\",\"description\":null,"
                           "\"messages\":[],\"error\":null}",
        [ROCKBOT_LIST_RESOURCES] = "{\"serverName\":\"\"}",
        [ROCKBOT_RESOURCES] = "{\"serverName\":\"\",\"resources\":[],\"templates\":[],"
                              "\"error\":null}",
        [ROCKBOT_READ_RESOURCE] = "{\"serverName\":\"\",\"uri\":\"\"}",
        [ROCKBOT_RESOURCE] = "{\"serverName\":\"\",\"uri\":\"\",\"contents\":[],\"error\":null}",
        [ROCKBOT_ANSWER] = "{\"questionId\":\"\",\"sessionId\":null,\"toolCallId\":null,"
                           "\"answers\":null,\"decline\":false}",
        [ROCKBOT_ANSWERED] = "{\"questionId\":\"\",\"serverName\":null,\"toolName\":null,"
                             "\"result\":null,\"error\":null}",
        [ROCKBOT_RELEASE] = "{\"sessionId\":\"\"}",
        [ROCKBOT_A_BLOCK] = "{\"type\":\"\",\"text\":null,\"data\":null,\"mimeType\":null,"
                            "\"uri\":null}",
        [ROCKBOT_A_TOOL] = "{\"name\":\"\",\"description\":\"\",\"parametersSchema\":null}",
        [ROCKBOT_A_SERVER] =
            "{\"serverName\":\"\",\"displayName\":null,\"summary\":null,\"toolCount\":0,"
            "\"toolNames\":[],\"promptCount\":0,\"promptNames\":[],\"resourceCount\":0,"
            "\"resourceNames\":[],\"serverId\":null,\"fingerprint\":null,"
            "\"toolFingerprints\":null,\"version\":null,\"identityHash\":null,\"handback\":false}",
        [ROCKBOT_A_PROMPT] = "{\"name\":\"\",\"description\":null,\"arguments\":[]}",
        [ROCKBOT_AN_ARGUMENT] = "{\"name\":\"\",\"description\":null,\"required\":false}",
        [ROCKBOT_A_MESSAGE] = "{\"role\":\"\",\"content\":\"\",\"contentType\":null}",
        [ROCKBOT_A_RESOURCE] = "{\"uri\":\"\",\"name\":null,\"title\":null,\"description\":null,"
                               "\"mimeType\":null,\"size\":null,\"isTemplate\":false}",
        [ROCKBOT_A_CONTENT] = "{\"uri\":\"\",\"mimeType\":null,\"text\":null,\"path\":null,"
                              "\"name\":null,\"size\":null,\"note\":null}",
    };

    (void)state;
    for (int type = 0; type < ROCKBOT_RECORDS; type++)
        assert_put((enum rockbot_record)type, VALUES({0}), empty[type]);
}

static void test_values_go_where_their_names_say(void **state)
{
    (void)state;
    assert_put(
        ROCKBOT_RESULT,
        VALUES([RESULT_CALL] = SPAN("c1"), [RESULT_TOOL] = SPAN("read"),
               [RESULT_CONTENT] = SPAN("a \"b\"\n\xc3\xa9"), [RESULT_BLOCKS] = SPAN("[1]"),
               [RESULT_IS_ERROR] = SPAN("true")),
        "{\"toolCallId\":\"c1\",\"toolName\":\"read\",\"content\":\"a \\\"b\\\"\\n\xc3\xa9\","
        "\"contentBlocks\":[1],\"isError\":true}");
    assert_put(ROCKBOT_A_SERVER,
               VALUES([SERVER_NAME] = SPAN("fs"), [SERVER_N_TOOLS] = SPAN("2"),
                      [SERVER_TOOLS] = SPAN("[\"a\",\"b\"]"), [SERVER_ID] = SPAN("id"),
                      [SERVER_FINGERPRINT] = SPAN("f"), [SERVER_TOOL_FINGERPRINTS] = SPAN("{}"),
                      [SERVER_VERSION] = SPAN("1"), [SERVER_IDENTITY] = SPAN("h"),
                      [SERVER_HANDBACK] = SPAN("true")),
               "{\"serverName\":\"fs\",\"displayName\":null,\"summary\":null,\"toolCount\":2,"
               "\"toolNames\":[\"a\",\"b\"],\"promptCount\":0,\"promptNames\":[],"
               "\"resourceCount\":0,\"resourceNames\":[],\"serverId\":\"id\",\"fingerprint\":\"f\","
               "\"toolFingerprints\":{},\"version\":\"1\",\"identityHash\":\"h\","
               "\"handback\":true}");
    assert_put(ROCKBOT_DETAILS,
               VALUES([DETAILS_SERVER] = SPAN("fs"), [DETAILS_ID] = SPAN("i"),
                      [DETAILS_IMPLEMENTATION] = SPAN("m"), [DETAILS_INSTRUCTIONS] = SPAN("n"),
                      [DETAILS_N_RESOURCES] = SPAN("3")),
               "{\"serverName\":\"fs\",\"tools\":[],\"error\":null,\"serverId\":\"i\","
               "\"fingerprint\":null,\"implementationName\":\"m\",\"title\":null,\"version\":null,"
               "\"description\":null,\"instructions\":\"n\",\"prompts\":[],\"resourceCount\":3}");
}

/* Every record that is written can be read again, with each member in its slot. */
static void test_every_record_makes_the_round(void **state)
{
    (void)state;
    for (int type = 0; type < ROCKBOT_RECORDS; type++) {
        struct json_slot slots[ROCKBOT_MAX_MEMBERS];
        struct buf out = {0}, again = {0};
        struct span values[ROCKBOT_MAX_MEMBERS];
        char texts[ROCKBOT_MAX_MEMBERS][16];
        struct err err;

        /* First without values, to find out the members and their types. */
        rockbot_put(&out, (enum rockbot_record)type, VALUES({0}));
        size_t n = 0;
        for (struct json_iter it = json_iter(buf_view(&out)); json_next(&it); n++) {
            static const struct span of_type[] = {[JSON_FALSE] = {"true", 4},
                                                  [JSON_NUMBER] = {"7", 1},
                                                  [JSON_ARRAY] = {"[1]", 3},
                                                  [JSON_OBJECT] = {"{\"a\":1}", 7}};
            snprintf(texts[n], sizeof texts[n], "text %zu", n);
            values[n] = it.type == JSON_STRING ? span_str(texts[n]) : of_type[it.type];
        }
        out.n = 0;
        rockbot_put(&out, (enum rockbot_record)type, values);
        assert_int_equal(rockbot_read((enum rockbot_record)type, buf_view(&out), slots, &err), 0);
        for (size_t i = 0; i < n; i++) {
            struct buf scratch = {0};
            if (slots[i].type == JSON_NONE)
                assert_int_equal(values[i].n, 0);
            else if (slots[i].type == JSON_STRING)
                assert_true(span_eq(rockbot_text(&slots[i], &scratch), values[i]));
            else
                assert_true(span_eq(slots[i].value, values[i]));
            buf_fini(&scratch);
        }
        buf_fini(&again);
        buf_fini(&out);
    }
}

static void test_reading_is_lenient_where_net_is(void **state)
{
    struct json_slot slots[ROCKBOT_MAX_MEMBERS];
    struct buf scratch = {0};
    struct err err;

    (void)state;
    /* Any case, unknown members, escapes as .NET writes them, null for optional members. */
    assert_int_equal(rockbot_read(ROCKBOT_INVOKE,
                                  SPAN("{\"TOOLCALLID\":\"1\",\"more\":[{}],\"toolname\":\"x\","
                                       "\"arguments\":\"{\\u0022p\\u0022:1}\",\"sessionId\":null}"),
                                  slots, &err),
                     0);
    assert_span(rockbot_text(&slots[INVOKE_CALL], &scratch), "1");
    assert_span(rockbot_text(&slots[INVOKE_ARGUMENTS], &scratch), "{\"p\":1}");
    assert_int_equal(slots[INVOKE_SESSION].type, JSON_NONE);
    assert_span(rockbot_text(&slots[INVOKE_SESSION], &scratch), "");
    buf_fini(&scratch);
}

static void test_reading_refuses_what_cannot_be_used(void **state)
{
    static const struct {
        enum rockbot_record type;
        const char *body, *why;
    } rows[] = {
        {ROCKBOT_INVOKE, "", "the body is not JSON"},
        {ROCKBOT_INVOKE, "not json", "the body is not JSON"},
        {ROCKBOT_INVOKE, "[]", "the body is not a JSON object"},
        {ROCKBOT_INVOKE, "{\"toolName\":\"x\"}", "toolCallId is missing"},
        {ROCKBOT_INVOKE, "{\"toolCallId\":\"1\",\"toolName\":null}", "toolName is missing"},
        {ROCKBOT_INVOKE, "{\"toolCallId\":1,\"toolName\":\"x\"}",
         "toolCallId is of the wrong type"},
        {ROCKBOT_INVOKE, "{\"toolCallId\":\"1\",\"toolName\":\"x\",\"TOOLNAME\":\"y\"}",
         "toolName occurs twice"},
        {ROCKBOT_ERROR, "{\"toolCallId\":\"1\",\"toolName\":\"x\",\"code\":\"c\"}",
         "message is missing"},
        {ROCKBOT_TOOLS_AVAILABLE, "{\"serverName\":\"x\",\"tools\":[]}", "removedTools is missing"},
        {ROCKBOT_SERVERS_INDEXED, "{\"servers\":{}}", "servers is of the wrong type"},
        {ROCKBOT_REGISTERED, "{\"serverName\":\"x\",\"success\":\"yes\"}",
         "success is of the wrong type"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct json_slot slots[ROCKBOT_MAX_MEMBERS];
        struct err err = {0};
        assert_true(rockbot_read(rows[i].type, span_str(rows[i].body), slots, &err) < 0);
        assert_non_null(strstr(err.text, rows[i].why));
    }
}

static void test_names_are_the_full_ones(void **state)
{
    (void)state;
    assert_string_equal(rockbot_name(ROCKBOT_INVOKE), "RockBot.Tools.ToolInvokeRequest");
    assert_string_equal(rockbot_name(ROCKBOT_RESULT), "RockBot.Tools.ToolInvokeResponse");
    assert_string_equal(rockbot_name(ROCKBOT_ERROR), "RockBot.Tools.ToolError");
    assert_string_equal(rockbot_name(ROCKBOT_SERVERS_INDEXED),
                        "RockBot.Tools.Mcp.McpServersIndexed");
    for (int type = 0; type < ROCKBOT_TYPES; type++) {
        const char *prefix =
            type < ROCKBOT_TOOLS_AVAILABLE ? "RockBot.Tools.Tool" : "RockBot.Tools.Mcp.Mcp";
        assert_true(
            span_starts(span_str(rockbot_name((enum rockbot_record)type)), span_str(prefix)));
        assert_int_equal(rockbot_record(span_str(rockbot_name((enum rockbot_record)type))), type);
    }
    assert_int_equal(rockbot_record(SPAN("rockbot.tools.toolerror")), ROCKBOT_RECORDS);
    assert_int_equal(rockbot_record(SPAN("")), ROCKBOT_RECORDS);
}

/* --- headers and names --- */

static void test_well_known_headers(void **state)
{
    (void)state;
    assert_string_equal(ROCKBOT_TRUST, "rb-content-trust");
    assert_string_equal(ROCKBOT_PROVIDER, "rb-tool-provider");
    assert_string_equal(ROCKBOT_TIMEOUT, "rb-timeout-ms");
    assert_string_equal(ROCKBOT_SERVER, "rb-mcp-server");
    assert_string_equal(ROCKBOT_HANDBACK, "rb-mcp-handback");
    assert_string_equal(ROCKBOT_TRUST_SYSTEM, "system");
    assert_string_equal(ROCKBOT_TRUST_USER, "user-input");
    assert_string_equal(ROCKBOT_TRUST_REQUEST, "tool-request");
    assert_string_equal(ROCKBOT_TRUST_OUTPUT, "tool-output");
    assert_string_equal(ROCKBOT_TRUST_AGENT, "agent-message");
    assert_string_equal(ROCKBOT_PROVIDER_MCP, "mcp");
}

static void test_timeout_header(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {{"60000", 60000},   {" 5 ", 5}, {"0", 0},
                {"-1", 0},          {"1.5", 0}, {"abc", 0},
                {"99999999999", 0}, {"", 0},    {"9999999999", 9999999999u}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct message m = {0};
        assert_true(message_add_header(&m, ROCKBOT_TIMEOUT, span_str(rows[i].text)));
        assert_int_equal(rockbot_timeout(&m), rows[i].ms);
    }
    assert_int_equal(rockbot_timeout(&(struct message){0}), 0);
}

static void test_agent_names(void **state)
{
    static const char *const good[] = {"RockBot", "a", "0", "a_b-C9", "Refresh"};
    static const char *const bad[] = {
        "",
        "refresh",
        "_a",
        "-a",
        "a.b",
        "a b",
        "*",
        "#",
        "\xc3\xa9",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaa"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(rockbot_is_agent_name(span_str(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(rockbot_is_agent_name(span_str(bad[i])));
}

/* --- trace context --- */

#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static bool extract(struct trace *t, const char *parent, const char *trace_state)
{
    struct message m = {0};

    if (parent)
        assert_true(message_add_header(&m, "traceparent", span_str(parent)));
    if (trace_state)
        assert_true(message_add_header(&m, "tracestate", span_str(trace_state)));
    return trace_extract(t, &m);
}

static void test_trace_makes_the_round(void **state)
{
    struct message m = {0};
    struct trace t;

    (void)state;
    assert_true(extract(&t, PARENT, "vendor=1,other=2"));
    trace_inject(&t, &m);
    assert_span(message_header(&m, "traceparent"), PARENT);
    assert_span(message_header(&m, "tracestate"), "vendor=1,other=2");
}

static void test_trace_without_a_state(void **state)
{
    struct message m = {0};
    struct trace t;

    (void)state;
    assert_true(extract(&t, PARENT, NULL));
    trace_inject(&t, &m);
    assert_int_equal(m.n_headers, 1);
}

static void test_no_trace_is_none(void **state)
{
    static const char *const bad[] = {
        NULL,
        "",
        "nonsense",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct message m = {0};
        struct trace t;
        assert_false(extract(&t, bad[i], "vendor=1"));
        trace_descend(&t);
        trace_inject(&t, &m);
        assert_int_equal(m.n_headers, 0);
    }
}

static void test_flags_are_kept(void **state)
{
    static const char *const flags[] = {"00", "01", "03", "0a", "0b"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        char parent[64];
        struct trace t;
        snprintf(parent, sizeof parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-%s",
                 flags[i]);
        assert_true(extract(&t, parent, NULL));
        trace_descend(&t);
        assert_string_equal(t.parent + 53, flags[i]);
    }
}

static void test_a_child_is_of_the_same_trace(void **state)
{
    struct trace t, again;

    (void)state;
    assert_true(extract(&t, PARENT, "v=1"));
    again = t;
    trace_descend(&t);
    trace_descend(&again);
    assert_memory_equal(t.parent, PARENT, 36);
    assert_memory_not_equal(t.parent + 36, PARENT + 36, 16);
    assert_memory_not_equal(t.parent + 36, again.parent + 36, 16);
    assert_string_equal(t.parent + 52, "-01");
    assert_string_equal(t.state, "v=1");
}

static void test_a_state_that_is_too_long_is_left_out(void **state)
{
    char longest[TRACE_MAX_STATE + 2];
    struct trace t;

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_true(extract(&t, PARENT, longest));
    assert_string_equal(t.state, "");
    longest[TRACE_MAX_STATE] = '\0';
    assert_true(extract(&t, PARENT, longest));
    assert_string_equal(t.state, longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_is_written),
        cmocka_unit_test(test_values_go_where_their_names_say),
        cmocka_unit_test(test_every_record_makes_the_round),
        cmocka_unit_test(test_reading_is_lenient_where_net_is),
        cmocka_unit_test(test_reading_refuses_what_cannot_be_used),
        cmocka_unit_test(test_names_are_the_full_ones),
        cmocka_unit_test(test_well_known_headers),
        cmocka_unit_test(test_timeout_header),
        cmocka_unit_test(test_agent_names),
        cmocka_unit_test(test_trace_makes_the_round),
        cmocka_unit_test(test_trace_without_a_state),
        cmocka_unit_test(test_no_trace_is_none),
        cmocka_unit_test(test_flags_are_kept),
        cmocka_unit_test(test_a_child_is_of_the_same_trace),
        cmocka_unit_test(test_a_state_that_is_too_long_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
