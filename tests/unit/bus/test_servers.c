/*
 * What agents are told about servers, and what they may ask: discovery in both forms, refresh, and
 * the management requests.
 */
#include "worker_rig.h"

#include "bus/stamp.h"

#include <stdio.h>

#define META    "tool.meta.mcp.RockBot"
#define MANAGED "mcp.manage.response.RockBot"

static void begin(struct rig *r, const char *tools)
{
    rig_begin(r);
    rig_server(r, "fs", tools);
    rig_start(r);
}

/* --- discovery --- */

static void test_a_server_is_announced(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read write secret p:hello r:res:a");
    r.servers[0].facts = (struct bus_server_facts){.display_name = SPAN("Files"),
                                                   .version = SPAN("1.2"),
                                                   .server_id = SPAN("0123456789ab"),
                                                   .identity_hash = SPAN("0123456789abcdef")};
    const struct message *m = rig_next(&r, META);
    assert_span(m->type, "RockBot.Tools.Mcp.McpServersIndexed");
    assert_span(m->source, "mcp-bridge.RockBot");
    assert_span(m->correlation, "");
    assert_span(message_header(m, "rb-content-trust"), "system");
    assert_body_has(m, "{\"servers\":[{\"serverName\":\"fs\",\"displayName\":\"Files\",\"summary\":"
                       "\"Provides 2 tool(s): read, write.\",\"toolCount\":2,\"toolNames\":"
                       "[\"read\",\"write\"],\"promptCount\":1,\"promptNames\":[\"hello\"],"
                       "\"resourceCount\":1,\"resourceNames\":[\"R\"],\"serverId\":"
                       "\"0123456789ab\",\"fingerprint\":\"");
    assert_body_has(m, "\"toolFingerprints\":{\"read\":\"");
    assert_body_has(m, "\"version\":\"1.2\",\"identityHash\":\"0123456789abcdef\",\"handback\":"
                       "false}],\"removedServers\":[]}");
    rig_end(&r);
}

/* What the server says of itself is the better summary. */
static void test_a_summary_of_its_own(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    r.servers[0].facts.instructions = SPAN("Reads\nfiles.");
    assert_body_has(rig_next(&r, META), "\"summary\":\"Reads files.\"");
    rig_end(&r);
}

/* Without any index an agent never gets the tools to add servers with. */
static void test_nothing_is_announced_too(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_start(&r);
    assert_body(rig_next(&r, META), "{\"servers\":[],\"removedServers\":[]}");
    rig_end(&r);
    rig_begin(&r);
    rig_server(&r, "fs", "read")->fails = "no";
    rig_start(&r);
    assert_body(rig_next(&r, META), "{\"servers\":[],\"removedServers\":[]}");
    rig_end(&r);
}

static void test_a_server_without_tools(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "");
    assert_body_has(rig_next(&r, META), "\"summary\":\"Provides 0 tool(s).\",\"toolCount\":0,"
                                        "\"toolNames\":[]");
    rig_end(&r);
}

static void test_changes_are_announced_once(void **state)
{
    const char *final = "\"toolNames\":[\"read\",\"write\"]";
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    /* Changes in a row, of which the last stays, are one; unless the machine was away between. */
    uint64_t began = loop_now(r.loop);
    rig_publish(&r.servers[0], "read other");
    bus_worker_look(r.worker);
    run_for(r.loop, 150);
    rig_publish(&r.servers[0], "write");
    run_for(r.loop, 50);
    rig_publish(&r.servers[0], "read write");
    bool in_a_row = loop_now(r.loop) < began + 450;
    const struct message *m = rig_next(&r, META);
    if (in_a_row)
        assert_body_has(m, final);
    while (!span_has_nocase(m->body, span_str(final)))
        m = rig_next(&r, META);
    /* The same again, in another order even, is no change. */
    rig_publish(&r.servers[0], "write read");
    run_for(r.loop, 1200);
    assert_int_equal(rig_count(&r, META), 0);
    /* And one that is down is still known. */
    provider_lost(&r.servers[0].core, "gone");
    run_for(r.loop, 1200);
    assert_int_equal(rig_count(&r, META), 0);
    rig_end(&r);
}

static void test_a_removal_is_announced(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    r.hidden[0] = true;
    bus_worker_look(r.worker);
    assert_body(rig_next(&r, META), "{\"servers\":[],\"removedServers\":[\"fs\"]}");
    r.hidden[0] = false;
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    rig_end(&r);
}

static void test_the_older_form(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.options.servers_indexed = false;
    r.options.tools_available = true;
    rig_server(&r, "fs", "read secret");
    rig_start(&r);
    const struct message *m = rig_next(&r, META);
    assert_span(m->type, "RockBot.Tools.Mcp.McpToolsAvailable");
    assert_body(m, "{\"serverName\":\"fs\",\"tools\":[{\"name\":\"read\",\"description\":\"does "
                   "it\",\"parametersSchema\":\"{\\\"type\\\":\\\"object\\\",\\\"properties\\\":"
                   "{\\\"path\\\":{\\\"type\\\":\\\"string\\\"}}}\"}],\"removedTools\":[]}");
    rig_publish(&r.servers[0], "write");
    assert_body_has(rig_next(&r, META), "\"removedTools\":[\"read\"]}");
    r.hidden[0] = true;
    assert_body(rig_next(&r, META),
                "{\"serverName\":\"fs\",\"tools\":[],\"removedTools\":[\"write\"]}");
    rig_end(&r);
}

/* A long list goes in parts, each small enough for the bus. */
static void test_the_older_form_in_parts(void **state)
{
    struct buf tools = {0};
    struct rig r;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 60; i++)
        buf_printf(&tools, "tool_number_%d ", i);
    rig_begin(&r);
    r.bus_options.max_message = 8192;
    r.options.servers_indexed = false;
    r.options.tools_available = true;
    rig_server(&r, "fs", buf_cstr(&tools));
    rig_start(&r);
    while (n < 60) {
        struct json_slot list = json_get(rig_next(&r, META)->body, "tools");
        for (struct json_iter it = json_iter(list.value); json_next(&it);)
            n++;
    }
    assert_int_equal(n, 60);
    assert_true(bus_worker_counts(r.worker)->announced > 1);
    rig_end(&r);
    buf_fini(&tools);
}

static void refresh(struct rig *r, const char *body, uint64_t sent_ms)
{
    rig_send(r, &(struct rig_request){.topic = "tool.meta.mcp.refresh",
                                      .type = "RockBot.Tools.Mcp.McpMetadataRefreshRequest",
                                      .sent_ms = sent_ms,
                                      .body = body});
}

static void test_refresh(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_server(&r, "db", "query");
    rig_next(&r, META);
    rig_next(&r, META);
    uint64_t now = stamp_now();
    refresh(&r, "{\"serverName\":null}", now + 1000);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    assert_body_has(rig_next(&r, META), "\"serverName\":\"db\"");
    refresh(&r, "{\"serverName\":\"DB\"}", now + 1000);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"db\"");
    /* Asked before they were announced: it has heard of them. */
    refresh(&r, "{\"serverName\":null}", now - 5000);
    refresh(&r, "no json", now);
    WAIT(r.loop, bus_worker_counts(r.worker)->dead == 1);
    refresh(&r, "{\"serverName\":\"fs\"}", now + 1000);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    assert_int_equal(rig_count(&r, META), 0);
    rig_end(&r);
}

/* The server is asked, and what is new is told as every change is. */
static void test_refresh_finds_what_is_new(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    run_for(r.loop, 1100);
    r.servers[0].tools = "read write";
    refresh(&r, "{\"serverName\":null}", stamp_now() + 1000);
    assert_body_has(rig_next(&r, META), "\"toolNames\":[\"read\"]");
    assert_body_has(rig_next(&r, META), "\"toolNames\":[\"read\",\"write\"]");
    assert_int_equal(r.servers[0].starts, 1);
    rig_end(&r);
}

/* Stamps are whole seconds on some engines: one that seems older by less than that is not. */
static void test_refresh_within_the_same_second(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    /* The beginning of the second in which it was announced, or of a later one. */
    refresh(&r, "{\"serverName\":null}", stamp_now() / 1000 * 1000);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    rig_end(&r);
}

static void test_refresh_of_nothing(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_start(&r);
    rig_next(&r, META);
    refresh(&r, "{\"serverName\":null}", 0);
    assert_body(rig_next(&r, META), "{\"servers\":[],\"removedServers\":[]}");
    rig_end(&r);
}

/* --- management --- */

static const struct message *ask(struct rig *r, const char *type, const char *body)
{
    rig_manage(r, type, body);
    return rig_next(r, MANAGED);
}

static void test_details(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read secret p:hello r:res:a");
    r.servers[0].facts =
        (struct bus_server_facts){.implementation = SPAN("impl"), .instructions = SPAN("use it")};
    const struct message *m = ask(&r, "McpGetServiceDetailsRequest", "{\"serverName\":\"FS\"}");
    assert_span(m->type, "RockBot.Tools.Mcp.McpGetServiceDetailsResponse");
    assert_span(m->correlation, "corr");
    assert_span(m->source, "mcp-bridge.RockBot");
    assert_span(message_header(m, "rb-content-trust"), "tool-output");
    assert_span(message_header(m, "rb-tool-provider"), "mcp");
    assert_body_has(m,
                    "{\"serverName\":\"FS\",\"tools\":[{\"name\":\"read\",\"description\":\"does "
                    "it\",\"parametersSchema\":\"{\\\"type\\\":");
    assert_body_has(m, "}],\"error\":null,\"serverId\":null,\"fingerprint\":\"");
    assert_body_has(m, "\"implementationName\":\"impl\",\"title\":null,\"version\":null,"
                       "\"description\":null,\"instructions\":\"use it\",\"prompts\":[{\"name\":"
                       "\"hello\",\"description\":null,\"arguments\":[{\"name\":\"who\","
                       "\"description\":null,\"required\":true}]}],\"resourceCount\":1}");
    assert_body_has(ask(&r, "McpGetServiceDetailsRequest", "{\"serverName\":\"nope\"}"),
                    "{\"serverName\":\"nope\",\"tools\":[],\"error\":\"there is no server 'nope'. "
                    "The servers are: fs\"");
    provider_lost(&r.servers[0].core, "gone");
    r.servers[0].fails = "still gone";
    assert_body_has(
        ask(&r, "McpGetServiceDetailsRequest", "{\"serverName\":\"fs\"}"),
        "\"tools\":[],\"error\":\"server 'fs' is not connected: gone. Try again later\"");
    rig_end(&r);
}

static void test_register(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    const struct message *m =
        ask(&r, "McpRegisterServerRequest",
            "{\"serverName\":\"added\",\"type\":\"sse\",\"url\":\"http://a\",\"command\":null,"
            "\"args\":[\"x\"],\"env\":{\"K\":\"v\"}}");
    assert_span(m->type, "RockBot.Tools.Mcp.McpRegisterServerResponse");
    assert_body(m,
                "{\"serverName\":\"added\",\"success\":true,\"summary\":\"2 tool(s) available.\","
                "\"error\":null}");
    assert_string_equal(r.added, "added sse http://a  [\"x\"] {\"K\":\"v\"}");
    assert_body_has(rig_next(&r, META), "\"serverName\":\"added\"");
    /* Never replaced, in whatever case. */
    assert_body_has(ask(&r, "McpRegisterServerRequest", "{\"serverName\":\"ADDED\"}"),
                    "\"success\":false,\"summary\":null,\"error\":\"there is a server 'ADDED' "
                    "already; it is not replaced. Choose another name\"");
    m = ask(&r, "McpUnregisterServerRequest", "{\"serverName\":\"Added\"}");
    assert_span(m->type, "RockBot.Tools.Mcp.McpUnregisterServerResponse");
    assert_body(m, "{\"serverName\":\"Added\",\"success\":true,\"error\":null}");
    assert_body(rig_next(&r, META), "{\"servers\":[],\"removedServers\":[\"added\"]}");
    assert_body_has(ask(&r, "McpUnregisterServerRequest", "{\"serverName\":\"added\"}"),
                    "\"success\":false,\"error\":\"there is no server 'added'\"");
    r.refuses = "operators only";
    assert_body_has(ask(&r, "McpRegisterServerRequest", "{\"serverName\":\"more\"}"),
                    "\"success\":false,\"summary\":null,\"error\":\"operators only\"");
    rig_end(&r);
}

static void test_names_that_servers_cannot_have(void **state)
{
    static const char *const bad[] = {
        "",
        "_a",
        "-a",
        ".a",
        "a b",
        "a/b",
        "a__b",
        "\xc3\xa9",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaa"};
    struct rig r;

    (void)state;
    begin(&r, "read");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct buf body = {0};
        buf_str(&body, "{\"serverName\":");
        json_quote(&body, span_str(bad[i]));
        buf_char(&body, '}');
        assert_body_has(ask(&r, "McpRegisterServerRequest", buf_cstr(&body)),
                        "is no name for a server");
        buf_fini(&body);
    }
    assert_string_equal(r.added, "");
    rig_end(&r);
}

/* RockBot kept what it could not connect to; it was there for ever, and failed for ever. */
static void test_what_cannot_be_reached_is_not_kept(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    assert_body_has(
        ask(&r, "McpRegisterServerRequest",
            "{\"serverName\":\"added\",\"type\":\"http\",\"url\":\"http://nowhere\"}"),
        "\"success\":false,\"summary\":null,\"error\":\"the server could not be reached, "
        "and was not kept: nobody there\"");
    assert_true(r.hidden[1]);
    rig_end(&r);
}

static void test_prompts(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read p:hello");
    assert_body(
        ask(&r, "McpGetPromptRequest",
            "{\"serverName\":\"fs\",\"promptName\":\"hello\",\"arguments\":{\"who\":\"x\"}}"),
        "{\"serverName\":\"fs\",\"promptName\":\"hello\",\"description\":\"d\",\"messages\":"
        "[{\"role\":\"user\",\"content\":\"hello\",\"contentType\":\"text\"}],\"error\":"
        "null}");
    assert_span(buf_view(&r.servers[0].params),
                "{\"name\":\"hello\",\"arguments\":{\"who\":\"x\"}}");
    assert_body_has(ask(&r, "McpGetPromptRequest", "{\"serverName\":\"fs\",\"promptName\":\"x\"}"),
                    "\"messages\":[],\"error\":\"server 'fs' has no prompt 'x'. Its prompts are: "
                    "hello\"");
    assert_body_has(ask(&r, "McpGetPromptRequest", "{\"serverName\":\"y\",\"promptName\":\"x\"}"),
                    "there is no server 'y'");
    rig_end(&r);
}

static void test_resources(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read r:res:a r:res:none");
    assert_body_has(ask(&r, "McpListResourcesRequest", "{\"serverName\":\"fs\"}"),
                    "{\"serverName\":\"fs\",\"resources\":[{\"uri\":\"res:a\",\"name\":\"R\","
                    "\"title\":null,\"description\":null,\"mimeType\":null,\"size\":6,"
                    "\"isTemplate\":false},");
    assert_body(ask(&r, "McpReadResourceRequest", "{\"serverName\":\"fs\",\"uri\":\"res:a\"}"),
                "{\"serverName\":\"fs\",\"uri\":\"res:a\",\"contents\":[{\"uri\":\"res:a\","
                "\"mimeType\":null,\"text\":\"inside\",\"path\":null,\"name\":null,\"size\":6,"
                "\"note\":null}],\"error\":null}");
    assert_body_has(
        ask(&r, "McpReadResourceRequest", "{\"serverName\":\"fs\",\"uri\":\"res:none\"}"),
        "\"contents\":[],\"error\":\"Resource not found. List the server's resources to "
        "see what can be read\"");
    rig_end(&r);
}

static void test_a_server_without_resources(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    assert_body(ask(&r, "McpListResourcesRequest", "{\"serverName\":\"fs\"}"),
                "{\"serverName\":\"fs\",\"resources\":[],\"templates\":[],\"error\":null}");
    assert_body_has(ask(&r, "McpReadResourceRequest", "{\"serverName\":\"fs\",\"uri\":\"res:a\"}"),
                    "\"error\":\"resource not found: res:a. List the server's resources");
    rig_end(&r);
}

static void test_questions(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    assert_body_has(
        ask(&r, "McpAnswerQuestionRequest", "{\"questionId\":\"q1\",\"answers\":\"{}\"}"),
        "{\"questionId\":\"q1\",\"serverName\":null,\"toolName\":null,\"result\":null,"
        "\"error\":\"there is no open question 'q1'");
    rig_end(&r);
}

static void test_requests_of_no_use(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    rig_manage(&r, "McpSomethingNewRequest", "{}");
    rig_send(&r,
             &(struct rig_request){.topic = "mcp.manage",
                                   .type = "RockBot.Tools.Mcp.McpReleaseSessionQuestionsRequest",
                                   .body = "{\"sessionId\":\"s\"}"});
    rig_send(&r, &(struct rig_request){.topic = "mcp.manage",
                                       .type = "RockBot.Tools.Mcp.McpGetServiceDetailsRequest",
                                       .body = "{\"serverName\":\"fs\"}"});
    rig_manage(&r, "McpGetServiceDetailsRequest", "poison");
    WAIT(r.loop, bus_worker_counts(r.worker)->dead == 2);
    assert_body_has(ask(&r, "McpGetServiceDetailsRequest", "{\"serverName\":\"fs\"}"),
                    "\"error\":null");
    assert_int_equal(bus_worker_counts(r.worker)->dead, 2);
    assert_int_equal(rig_count(&r, MANAGED), 0);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_is_announced),
        cmocka_unit_test(test_a_summary_of_its_own),
        cmocka_unit_test(test_nothing_is_announced_too),
        cmocka_unit_test(test_a_server_without_tools),
        cmocka_unit_test(test_changes_are_announced_once),
        cmocka_unit_test(test_a_removal_is_announced),
        cmocka_unit_test(test_the_older_form),
        cmocka_unit_test(test_the_older_form_in_parts),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_refresh_finds_what_is_new),
        cmocka_unit_test(test_refresh_within_the_same_second),
        cmocka_unit_test(test_refresh_of_nothing),
        cmocka_unit_test(test_details),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_names_that_servers_cannot_have),
        cmocka_unit_test(test_what_cannot_be_reached_is_not_kept),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_a_server_without_resources),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_requests_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
