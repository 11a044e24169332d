/* The management requests of agents. */
#include "worker_rig.h"

#define META    "tool.meta.mcp.RockBot"
#define MANAGED "mcp.manage.response.RockBot"

static void begin(struct rig *r, const char *tools)
{
    rig_begin(r);
    rig_server(r, "fs", tools);
    rig_start(r);
}

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
    /* An existing server is never replaced; names ignore case. */
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
                        "cannot be the name of a server");
        buf_fini(&body);
    }
    assert_string_equal(r.added, "");
    rig_end(&r);
}

/* RockBot kept servers that it could not connect to, and they failed for ever. */
static void test_what_cannot_be_reached_is_not_kept(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    assert_body_has(
        ask(&r, "McpRegisterServerRequest",
            "{\"serverName\":\"added\",\"type\":\"http\",\"url\":\"http://nowhere\"}"),
        "\"success\":false,\"summary\":null,\"error\":\"the server was not kept: nobody there\"");
    assert_true(r.hidden[1]);
    rig_end(&r);
}

/* The agent is told to try again, so the server must be removed, or the retry would fail. */
static void test_leaving_before_it_is_reached(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_manage(&r, "McpRegisterServerRequest",
               "{\"serverName\":\"added\",\"type\":\"http\",\"url\":\"http://slow\"}");
    WAIT(r.loop, r.n_servers == 2);
    rig_close_worker(&r);
    assert_body_has(rig_next(&r, MANAGED),
                    "\"success\":false,\"summary\":null,\"error\":\"the bridge is shutting down: "
                    "try again\"");
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
        cmocka_unit_test(test_details),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_names_that_servers_cannot_have),
        cmocka_unit_test(test_what_cannot_be_reached_is_not_kept),
        cmocka_unit_test(test_leaving_before_it_is_reached),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_a_server_without_resources),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_requests_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
