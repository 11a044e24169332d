/* Tool calls over the bus: RockBot's test groups ToolInvokeHandler and McpBridgeInvokeEndToEnd, and
 * cases that they leave out. */
#include "worker_rig.h"

#include <stdio.h>

#define RESULTS "tool.result.RockBot"

static const struct message *call(struct rig *r, const char *server, const char *tool,
                                  const char *arguments)
{
    rig_invoke(r, server, tool, arguments);
    return rig_next(r, RESULTS);
}

/* A rig with the servers fs and Other, both up. */
static void begin(struct rig *r)
{
    rig_begin(r);
    rig_server(r, "fs", "echo hold fail picky broken big ask secret");
    rig_server(r, "Other", "other echo");
    rig_start(r);
    rig_next(r, "tool.meta.mcp.RockBot");
    rig_next(r, "tool.meta.mcp.RockBot");
}

static void test_a_call(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    const struct message *m = call(&r, "fs", "echo", "{\"path\":\"/a\"}");
    assert_span(m->type, "RockBot.Tools.ToolInvokeResponse");
    assert_span(m->correlation, "corr");
    assert_span(m->source, "mcp-bridge.RockBot");
    assert_span(m->reply_to, "");
    assert_span(message_header(m, "rb-content-trust"), "tool-output");
    assert_span(message_header(m, "rb-tool-provider"), "mcp");
    assert_span(message_header(m, "traceparent"), "");
    assert_body(m, "{\"toolCallId\":\"c1\",\"toolName\":\"echo\",\"content\":\"{\\\"path\\\":"
                   "\\\"/a\\\"}\",\"contentBlocks\":null,\"isError\":false}");
    assert_span(buf_view(&r.servers[0].params),
                "{\"name\":\"echo\",\"arguments\":{\"path\":\"/a\"}}");
    WAIT(r.loop, bus_worker_counts(r.worker)->replies == 1);
    assert_int_equal(bus_worker_counts(r.worker)->errors, 0);
    rig_end(&r);
}

static void test_where_replies_go(void **state)
{
    const struct rig_request q = {.topic = "tool.invoke.mcp",
                                  .type = "RockBot.Tools.ToolInvokeRequest",
                                  .server = "fs",
                                  .body = "{\"toolCallId\":\"x\",\"toolName\":\"echo\"}"};
    struct rig r;

    (void)state;
    begin(&r);
    rig_send(&r, &q); /* without reply_to: the agent's result topic */
    assert_body_has(rig_next(&r, RESULTS), "\"toolCallId\":\"x\"");
    struct rig_request other = q;
    other.reply_to = "mcp.manage.response.RockBot"; /* any valid topic is used */
    rig_send(&r, &other);
    assert_body_has(rig_next(&r, other.reply_to), "\"content\":\"{}\"");
    other.reply_to = "no topic *";
    rig_send(&r, &other);
    rig_next(&r, RESULTS);
    rig_end(&r);
}

static void test_which_server_and_tool(void **state)
{
    static const struct {
        const char *server, *tool, *expected;
    } rows[] = {
        {"FS", "echo", "\"content\":\"{}\""},
        {"other", "OTHER", "\"content\":\"{}\""},
        {NULL, "other", "\"content\":\"{}\""},
        {NULL, "Other",
         "\"code\":\"tool_not_found\",\"message\":\"no server has a tool 'Other'. "
         "Name the server too\",\"isRetryable\":false"},
        {"nope", "echo",
         "\"code\":\"tool_not_found\",\"message\":\"there is no server 'nope'. The servers are: "
         "fs, "
         "Other\",\"isRetryable\":false"},
        {"Other", "read",
         "\"code\":\"tool_not_found\",\"message\":\"server 'Other' has no tool 'read'. Its tools "
         "are: other, echo\",\"isRetryable\":false"},
        {"Other", "fs__hold",
         "Did you mean the tool 'hold' of server 'fs'? Give the server and the tool apart"},
        {"Other", "FS__secret", "Its tools are: other, echo"},
        /* A filtered tool is neither listed nor called, by whatever name. */
        {"fs", "secret", "Its tools are: echo, hold, fail, picky, broken, big, ask\""},
        {"fs", "SECRET", "\"code\":\"tool_not_found\""},
        {NULL, "secret", "\"code\":\"tool_not_found\""},
    };
    struct rig r;

    (void)state;
    begin(&r);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_body_has(call(&r, rows[i].server, rows[i].tool, NULL), rows[i].expected);
    assert_int_equal(r.servers[0].runs, 1);
    assert_int_equal(r.servers[1].runs, 2);
    rig_end(&r);
}

/* A call of an unknown tool asks the server for its list, which may have changed silently. */
static void test_a_tool_that_nobody_told_of(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    run_for(r.loop, 1100); /* servers are asked at most once a second */
    r.servers[1].tools = "other echo fresh";
    assert_body_has(call(&r, "Other", "fresh", NULL), "\"content\":\"{}\"");
    assert_int_equal(r.servers[1].relists, 1);
    /* The server is not asked again within a second. */
    assert_body_has(call(&r, "Other", "nope", NULL), "\"code\":\"tool_not_found\"");
    assert_int_equal(r.servers[1].relists, 1);
    run_for(r.loop, 1100);
    assert_body_has(call(&r, "Other", "nope", NULL), "Its tools are: other, echo, fresh");
    assert_int_equal(r.servers[1].relists, 2);
    rig_end(&r);
}

/* Of two calls at once, only the first one waited for the list that was on its way. */
static void test_two_calls_of_a_tool_that_nobody_told_of(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    run_for(r.loop, 1100);
    r.servers[1].tools = "other echo fresh";
    rig_invoke(&r, "Other", "fresh", NULL);
    rig_invoke(&r, "Other", "fresh", NULL);
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    assert_int_equal(r.servers[1].relists, 1);
    rig_end(&r);
}

/* The catalog of a server that is down may be outdated: a call of an unknown tool waits for it. */
static void test_a_tool_of_a_server_on_its_way_up(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    r.servers[0].slow_start = true;
    r.servers[0].tools = "echo fresh";
    provider_lost(&r.servers[0].core, "gone");
    rig_invoke(&r, "fs", "fresh", NULL);
    WAIT(r.loop, r.servers[0].starts == 2);
    run_for(r.loop, 100);
    assert_int_equal(rig_count(&r, RESULTS), 0);
    rig_server_up(&r.servers[0]);
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    rig_end(&r);
}

static void test_arguments(void **state)
{
    static const struct {
        const char *raw, *expected;
    } rows[] = {
        {"null", "\"content\":\"{}\""},
        {"\"\"", "\"content\":\"{}\""},
        {"\" \\n \"", "\"content\":\"{}\""},
        {"\"{\\u0022n\\u0022:12345678901234567890.10}\"", "12345678901234567890.10"},
        {"\" {\\\"a\\\":[{\\\"b\\\":[]}]} \"", "{\\\"a\\\":[{\\\"b\\\":[]}]}"},
        {"{\"a\":1}", "{\\\"a\\\":1}"},
        {"\"[]\"", "\"code\":\"invalid_arguments\""},
        {"\"nonsense\"", "\"code\":\"invalid_arguments\""},
        {"\"{\"", "\"code\":\"invalid_arguments\""},
        {"7", "\"code\":\"invalid_arguments\",\"message\":\"the arguments of 'echo' must be a JSON "
              "object, or nothing\",\"isRetryable\":false"},
    };
    struct rig r;

    (void)state;
    begin(&r);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf body = {0};
        buf_printf(&body, "{\"toolCallId\":\"1\",\"toolName\":\"echo\",\"arguments\":%s}",
                   rows[i].raw);
        rig_send(&r, &(struct rig_request){
                         .topic = "tool.invoke.mcp", .server = "fs", .body = buf_cstr(&body)});
        assert_body_has(rig_next(&r, RESULTS), rows[i].expected);
        buf_fini(&body);
    }
    rig_end(&r);
}

static void test_errors_of_servers(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    /* The tool failed: its error is passed on. */
    assert_body_has(call(&r, "fs", "fail", "{\"path\":\"/a\"}"),
                    "\"content\":\"no such file\",\"contentBlocks\":null,\"isError\":true");
    /* Called with an unknown argument: the error gets a hint. */
    assert_body_has(call(&r, "fs", "fail", "{\"file\":\"/a\"}"),
                    "\"content\":\"no such file\\n\\nHint: check the arguments. Unknown: file. "
                    "'fail' takes path (string).\",\"contentBlocks\":null,\"isError\":true");
    /* A protocol error becomes a result, on one line, and the server stays up. */
    const struct message *m = call(&r, "fs", "picky", "{}");
    assert_span(m->type, "RockBot.Tools.ToolInvokeResponse");
    assert_body_has(m, "\"content\":\"Error -32602: bad arguments\\n\\nHint: check the arguments. "
                       "'picky' takes path (string).\",\"contentBlocks\":null,\"isError\":true");
    m = call(&r, "fs", "broken", "{}");
    assert_span(m->type, "RockBot.Tools.ToolError");
    assert_span(message_header(m, "rb-content-trust"), "tool-output");
    assert_body(m, "{\"toolCallId\":\"c1\",\"toolName\":\"broken\",\"code\":\"execution_failed\","
                   "\"message\":\"server 'fs' failed with -32000: boom\",\"isRetryable\":true}");
    assert_int_equal(r.servers[0].starts, 1);
    rig_end(&r);
}

static void test_questions_are_declined_at_once(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    assert_body_has(call(&r, "fs", "ask", "{}"), "\"content\":\"declined\"");
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call),
        cmocka_unit_test(test_where_replies_go),
        cmocka_unit_test(test_which_server_and_tool),
        cmocka_unit_test(test_a_tool_that_nobody_told_of),
        cmocka_unit_test(test_two_calls_of_a_tool_that_nobody_told_of),
        cmocka_unit_test(test_a_tool_of_a_server_on_its_way_up),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_errors_of_servers),
        cmocka_unit_test(test_questions_are_declined_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
