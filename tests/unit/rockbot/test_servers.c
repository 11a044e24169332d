/* Announcing servers to agents: discovery in both forms, and refresh. */
#include "worker_rig.h"

#include "bus/stamp.h"

#include <stdio.h>

#define META "tool.meta.mcp.RockBot"

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

/* The server's own instructions are used as the summary. */
static void test_a_summary_of_its_own(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    r.servers[0].facts.instructions = SPAN("Reads\nfiles.");
    assert_body_has(rig_next(&r, META), "\"summary\":\"Reads files.\"");
    rig_end(&r);
}

/* A long summary was cut in the middle of a character, and was not valid UTF-8 any more. */
static void test_a_long_summary(void **state)
{
    struct buf text = {0};
    struct rig r;

    (void)state;
    buf_char(&text, '.');
    for (int i = 0; i < 400; i++)
        buf_str(&text, "\xc3\xa9");
    begin(&r, "read");
    r.servers[0].facts.instructions = buf_view(&text);
    assert_body_has(rig_next(&r, META), "\xc3\xa9...\",\"toolCount\":1");
    buf_fini(&text);
    rig_end(&r);
}

/* Without any announcement an agent never gets the tools for adding servers. */
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
    /* Several quick changes are announced once, with the last state, unless the machine paused. */
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
    /* The same tools again, even in another order, are no change. */
    rig_publish(&r.servers[0], "write read");
    run_for(r.loop, 1200);
    assert_int_equal(rig_count(&r, META), 0);
    /* A server that goes down is not announced as removed. */
    provider_lost(&r.servers[0].core, "gone");
    run_for(r.loop, 1200);
    assert_int_equal(rig_count(&r, META), 0);
    rig_end(&r);
}

/* The change is announced when the server is up again: until then no timer is needed. */
static void test_a_change_of_one_that_is_down_wakes_nobody(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    rig_publish(&r.servers[0], "read write");
    run_for(r.loop, 100);
    provider_lost(&r.servers[0].core, "gone");
    run_for(r.loop, 700);
    assert_int_equal(rig_count(&r, META), 0);
    assert_true(timers_next(loop_timers(r.loop)) > loop_now(r.loop) + 1000);
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
    bus_worker_look(r.worker);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    rig_end(&r);
}

/* After every reconnect, however short, servers are announced again, as announcements may be lost.
 * The worker only polled the connection, and missed short interruptions. */
static void test_announced_anew_when_the_bus_is_back(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.hosted_apart = true;
    rig_server(&r, "fs", "read");
    rig_start(&r);
    rig_next(&r, META);
    for (int i = 0; i < 3; i++) {
        rig_lose_bus(&r);
        rig_regain_bus(&r);
        assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    }
    rig_end(&r);
}

/*
 * A server that is down when the bus comes back cannot be announced again. It then counted as never
 * announced: when it was removed, agents were not told and kept it for ever.
 */
static void test_a_removal_after_the_bus_was_away(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.hosted_apart = true;
    rig_server(&r, "fs", "read");
    rig_start(&r);
    rig_next(&r, META);
    provider_lost(&r.servers[0].core, "gone");
    rig_lose_bus(&r);
    rig_regain_bus(&r);
    run_for(r.loop, 200); /* the worker checks its servers, and this one is down */
    r.hidden[0] = true;
    bus_worker_look(r.worker);
    assert_body(rig_next(&r, META), "{\"servers\":[],\"removedServers\":[\"fs\"]}");
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
    bus_worker_look(r.worker);
    assert_body(rig_next(&r, META),
                "{\"serverName\":\"fs\",\"tools\":[],\"removedTools\":[\"write\"]}");
    rig_end(&r);
}

/* A long list is sent in parts, each small enough for the bus. */
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
    /* Requests from before the announcement: the agent has received that already. */
    refresh(&r, "{\"serverName\":null}", now - 5000);
    refresh(&r, "no json", now);
    WAIT(r.loop, bus_worker_counts(r.worker)->dead == 1);
    refresh(&r, "{\"serverName\":\"fs\"}", now + 1000);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    assert_int_equal(rig_count(&r, META), 0);
    rig_end(&r);
}

/* A refresh asks the server for its lists, and changes are announced as usual. */
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

/*
 * A server is asked for its lists at most once a second. A refresh within that second was answered
 * with the old list and did not ask the server again, so changes were announced only five minutes
 * later. Now the answer waits for the next list.
 */
static void test_refresh_right_after_a_list(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    r.servers[0].tools = "read write"; /* without a list change notification */
    refresh(&r, "{\"serverName\":null}", stamp_now() + 1000);
    refresh(&r, "{\"serverName\":null}", stamp_now() + 1000);
    assert_body_has(rig_next(&r, META), "\"toolNames\":[\"read\",\"write\"]");
    assert_int_equal(r.servers[0].relists, 1);
    /* One announcement answers all requests before it. */
    run_for(r.loop, 700);
    assert_int_equal(rig_count(&r, META), 0);
    /* If nothing has changed, the list is announced all the same. */
    refresh(&r, "{\"serverName\":\"fs\"}", stamp_now() + 1000);
    assert_body_has(rig_next(&r, META), "\"toolNames\":[\"read\",\"write\"]");
    assert_int_equal(r.servers[0].relists, 2);
    rig_end(&r);
}

/* Some engines have time stamps in whole seconds: less than a second older does not count. */
static void test_refresh_within_the_same_second(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    /* The start of the second in which the server was announced, or of a later second. */
    refresh(&r, "{\"serverName\":null}", stamp_now() / 1000 * 1000);
    assert_body_has(rig_next(&r, META), "\"serverName\":\"fs\"");
    rig_end(&r);
}

/*
 * A worker for all agents announces to those it knows. An unknown agent has received nothing,
 * whatever the time stamp of its request: the request may have waited while the worker started.
 */
static void test_refresh_of_a_newcomer(void **state)
{
    static const char *const everybody[] = {"*"};
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.options.agents = everybody;
    rig_server(&r, "fs", "read");
    rig_start(&r);
    rig_listen(&r, "tool.meta.mcp.Newcomer");
    WAIT(r.loop, r.servers[0].core.state == PROVIDER_READY);
    run_for(r.loop, 200); /* the server was announced, but no agent is known */
    rig_send(&r, &(struct rig_request){.topic = "tool.meta.mcp.refresh",
                                       .type = "RockBot.Tools.Mcp.McpMetadataRefreshRequest",
                                       .source = "Newcomer",
                                       .sent_ms = stamp_now() - 5000,
                                       .body = "{\"serverName\":null}"});
    assert_body_has(rig_next(&r, "tool.meta.mcp.Newcomer"), "\"serverName\":\"fs\"");
    rig_end(&r);
}

/*
 * A machine whose clock was behind was never answered, and so had no servers at all: each of its
 * requests seemed older than the announcement, although it came long after it.
 */
static void test_refresh_by_a_clock_that_is_behind(void **state)
{
    struct rig r;

    (void)state;
    begin(&r, "read");
    rig_next(&r, META);
    run_for(r.loop, 10500);
    refresh(&r, "{\"serverName\":null}", stamp_now() - 3600 * 1000);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_is_announced),
        cmocka_unit_test(test_a_summary_of_its_own),
        cmocka_unit_test(test_a_long_summary),
        cmocka_unit_test(test_nothing_is_announced_too),
        cmocka_unit_test(test_a_server_without_tools),
        cmocka_unit_test(test_changes_are_announced_once),
        cmocka_unit_test(test_a_change_of_one_that_is_down_wakes_nobody),
        cmocka_unit_test(test_a_removal_is_announced),
        cmocka_unit_test(test_announced_anew_when_the_bus_is_back),
        cmocka_unit_test(test_a_removal_after_the_bus_was_away),
        cmocka_unit_test(test_the_older_form),
        cmocka_unit_test(test_the_older_form_in_parts),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_refresh_right_after_a_list),
        cmocka_unit_test(test_refresh_finds_what_is_new),
        cmocka_unit_test(test_refresh_within_the_same_second),
        cmocka_unit_test(test_refresh_of_a_newcomer),
        cmocka_unit_test(test_refresh_by_a_clock_that_is_behind),
        cmocka_unit_test(test_refresh_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
