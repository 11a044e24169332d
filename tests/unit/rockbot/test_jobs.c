/*
 * What can happen during a call over the bus: timeouts, crashes, messages that arrive twice or too
 * late, other agents and other workers, and closing the worker.
 */
#include "worker_rig.h"

#include "bus/stamp.h"

#include <stdio.h>
#include <unistd.h>

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

static void send_hold(struct rig *r, const char *timeout, const char *id)
{
    rig_send(r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                      .type = "RockBot.Tools.ToolInvokeRequest",
                                      .server = "fs",
                                      .timeout = timeout,
                                      .id = id,
                                      .body = "{\"toolCallId\":\"h\",\"toolName\":\"hold\"}"});
}

/* Our timeout error comes before the agent gives up, and has the words that agents look for. */
static void test_timeout(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, "100", NULL);
    assert_body_has(
        rig_next(&r, RESULTS),
        "\"code\":\"timeout\",\"message\":\"server 'fs' timed out: 'hold' gave no answer "
        "within 50 ms. It may have done its work all the same: look first\","
        "\"isRetryable\":true");
    assert_int_equal(r.servers[0].cancels, 1);
    r.options.max_timeout_ms = 60;
    send_hold(&r, "60000", NULL);
    assert_body_has(rig_next(&r, RESULTS), "within 30 ms");
    send_hold(&r, "-5", NULL); /* an invalid timeout is ignored */
    assert_body_has(rig_next(&r, RESULTS), "within 60 ms");
    rig_end(&r);
}

static uint64_t asked_for; /* the time limit of the last request for a file */

static const struct config_attachments *files(void *arg, const struct provider *p)
{
    static const char *tools[] = {"echo"};
    static const struct config_attachments rules = {
        .given = true, .endpoint = "/files", .inbound = {.items = tools, .n = 1}};

    (void)arg, (void)p;
    return &rules;
}

/* A host that does not answer. */
static struct side_request *request(void *arg, const struct provider *p,
                                    const struct bus_request *asked, bus_answer_fn *done,
                                    void *owner)
{
    (void)p, (void)done, (void)owner;
    asked_for = asked->timeout;
    return arg;
}

static void withdraw(struct side_request *r)
{
    (void)r;
}

/*
 * The download had the same limit as the call. When both ended in the same millisecond, either
 * could be first, and the agent read that a file was not saved instead of a timeout, after which it
 * may call again.
 */
static void test_a_file_that_does_not_come(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "echo");
    r.options.attachments = r.folder;
    r.host.files = files;
    r.host.request = request;
    r.host.withdraw = withdraw;
    rig_start(&r);
    rig_next(&r, "tool.meta.mcp.RockBot");
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                       .type = "RockBot.Tools.ToolInvokeRequest",
                                       .server = "fs",
                                       .timeout = "100",
                                       .body = "{\"toolCallId\":\"h\",\"toolName\":\"echo\","
                                               "\"arguments\":{\"id\":\"a\",\"mode\":\"save\"}}"});
    assert_body_has(rig_next(&r, RESULTS), "timed out: the files of the call were not exchanged "
                                           "with server 'fs' within 50 ms");
    assert_true(asked_for > 50);
    rig_end(&r);
}

/* The server's configured timeout wins over the agent's, but not over our maximum. */
static void test_a_limit_of_the_servers_own(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "hold")->facts.timeout_ms = 80;
    rig_start(&r);
    send_hold(&r, "60000", NULL);
    assert_body_has(rig_next(&r, RESULTS), "within 80 ms");
    r.options.max_timeout_ms = 60;
    send_hold(&r, "60000", NULL);
    assert_body_has(rig_next(&r, RESULTS), "within 60 ms");
    rig_end(&r);
}

/* The agent's timeout is used even if it is longer than the server's policy for other consumers. */
static void test_an_agent_that_waits_longer_than_others(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "hold")->core.policy.timeout = 20;
    rig_start(&r);
    send_hold(&r, "400", NULL);
    assert_body_has(rig_next(&r, RESULTS), "within 200 ms");
    rig_end(&r);
}

static void test_a_server_that_crashes(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 1);
    r.servers[0].n_held = 0;
    provider_lost(&r.servers[0].core, "exited with\n1");
    assert_body_has(rig_next(&r, RESULTS),
                    "\"code\":\"execution_failed\",\"message\":\"server 'fs' ended while the call "
                    "was open: exited with 1. It may have done its work all the same: look before "
                    "calling again\",\"isRetryable\":true");
    /* The next call starts the server again. */
    assert_body_has(call(&r, "fs", "echo", NULL), "\"content\":\"{}\"");
    assert_int_equal(r.servers[0].starts, 2);
    rig_end(&r);
}

/* Calls to servers that were still starting failed (RockBot's issue 248). */
static void test_a_server_on_its_way_up(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "echo")->slow_start = true;
    rig_start(&r);
    rig_invoke(&r, "fs", "echo", NULL);
    rig_invoke(&r, NULL, "echo", NULL);
    WAIT(r.loop, r.servers[0].starts == 1 && bus_worker_counts(r.worker)->invokes == 2);
    assert_int_equal(rig_count(&r, RESULTS), 0);
    rig_server_up(&r.servers[0]);
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    rig_end(&r);
}

static void test_a_server_that_does_not_come_up(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "echo")->fails = "no such program";
    rig_server(&r, "slow", "echo")->slow_start = true;
    rig_start(&r);
    assert_body_has(
        call(&r, "fs", "echo", NULL),
        "\"code\":\"tool_not_found\",\"message\":\"server 'fs' is registered but cannot "
        "be reached now: no such program. Try again later, or use another server\","
        "\"isRetryable\":false");
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                       .server = "slow",
                                       .timeout = "200",
                                       .body = "{\"toolCallId\":\"h\",\"toolName\":\"echo\"}"});
    assert_body_has(rig_next(&r, RESULTS), "\"message\":\"timed out: server 'slow' did not come up "
                                           "within 100 ms\",\"isRetryable\":true");
    rig_end(&r);
}

/* A call starts the server again even during its backoff. */
static void test_a_server_that_failed_before(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "echo")->fails = "not yet";
    rig_start(&r);
    WAIT(r.loop, r.servers[0].core.state == PROVIDER_BACKOFF);
    r.servers[0].fails = NULL;
    assert_body_has(call(&r, "fs", "echo", NULL), "\"content\":\"{}\"");
    assert_int_equal(r.servers[0].starts, 2);
    rig_end(&r);
}

/* The broker redelivers messages after a crash and after every broken connection. */
static void test_a_message_that_comes_again(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, "60000", "same");
    send_hold(&r, "60000", "same");
    WAIT(r.loop, bus_worker_counts(r.worker)->duplicates == 1);
    assert_int_equal(r.servers[0].runs, 1);
    rig_finish(r.servers[0].held[0], "once");
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"once\"");
    /* A message of another agent with the same id is not a duplicate. */
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp", .source = "Eve", .id = "same"});
    send_hold(&r, "60000", "same");
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"once\"");
    assert_int_equal(r.servers[0].runs, 1);
    assert_int_equal(bus_worker_counts(r.worker)->duplicates, 2);
    assert_int_equal(bus_worker_counts(r.worker)->foreign, 1);
    /* All of them are settled: as many calls as before can run at once. */
    r.servers[0].n_held = 0;
    for (int i = 0; i < 4; i++)
        send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 4);
    for (int i = 0; i < 4; i++)
        rig_finish(r.servers[0].held[i], "more");
    rig_end(&r);
}

/*
 * With more calls in flight than recent messages are kept, the entry of a call that ends is freed
 * at once; it was used after that.
 */
static void test_more_under_way_than_can_be_remembered(void **state)
{
    enum { AGENTS = 10, EACH = 900, BATCH = 100, MANY = AGENTS * EACH }; /* a queue takes 1,024 */
    static const char *const agents[AGENTS] = {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"};
    struct rig_request q = {.topic = ROCKBOT_TOPIC_INVOKE,
                            .type = rockbot_name(ROCKBOT_INVOKE),
                            .server = "fs",
                            .reply_to = "nobody.listens",
                            .body = "{\"toolCallId\":\"c\",\"toolName\":\"echo\"}"};
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.options.prefetch = 1000;
    r.options.agents = agents;
    r.options.n_agents = AGENTS;
    rig_server(&r, "fs", "echo")->slow_start = true;
    rig_start(&r);
    for (uint64_t n = 0; n < MANY; n += BATCH) {
        q.source = agents[n / EACH];
        for (int i = 0; i < BATCH; i++)
            rig_send(&r, &q);
        WAIT(r.loop, bus_worker_counts(r.worker)->invokes == n + BATCH);
    }
    q.source = agents[0];
    q.server = "nobody";
    rig_send(&r, &q);
    WAIT(r.loop, bus_worker_counts(r.worker)->replies >= 1);
    rig_server_up(&r.servers[0]);
    WAIT(r.loop, bus_worker_counts(r.worker)->replies == MANY + 1);
    rig_end(&r);
}

/* The agent has given up on an old message: it must not be executed any more. */
static void test_a_message_that_is_too_old(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                       .server = "fs",
                                       .timeout = "1000",
                                       .sent_ms = stamp_now() - 40 * 1000,
                                       .body = "{\"toolCallId\":\"h\",\"toolName\":\"echo\"}"});
    assert_body_has(rig_next(&r, RESULTS), "\"code\":\"timeout\",\"message\":\"timed out: ");
    assert_int_equal(r.servers[0].runs, 0);
    assert_int_equal(bus_worker_counts(r.worker)->stale, 1);
    rig_end(&r);
}

static void send_late(struct rig *r, const char *tool, uint64_t late_ms)
{
    struct buf body = {0};

    buf_printf(&body, "{\"toolCallId\":\"l\",\"toolName\":\"%s\"}", tool);
    rig_send(r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                      .type = "RockBot.Tools.ToolInvokeRequest",
                                      .server = "fs",
                                      .timeout = "5000",
                                      .sent_ms = stamp_now() - late_ms,
                                      .body = buf_cstr(&body)});
    buf_fini(&body);
}

/*
 * A worker that was suspended (stopped, its machine paused) executed the messages that had arrived
 * meanwhile, after the callers had given up, as half a minute is allowed for clock differences. Now
 * the clock difference is estimated from the agent's other messages.
 */
static void test_what_came_while_we_stood_still(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_late(&r, "echo", 0);
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    send_late(&r, "hold", 20 * 1000);
    assert_body_has(rig_next(&r, RESULTS), "\"code\":\"timeout\"");
    send_late(&r, "hold", 7 * 1000);
    assert_body_has(rig_next(&r, RESULTS), "\"code\":\"timeout\"");
    assert_int_equal(r.servers[0].runs, 1);
    assert_int_equal(bus_worker_counts(r.worker)->stale, 2);
    send_late(&r, "echo", 3 * 1000); /* the caller still waits */
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    rig_end(&r);
}

/* The agent's clock is 20 s behind or ahead of ours: its calls do not count as late for that. */
static void test_an_agent_whose_clock_differs(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    for (int i = 0; i < 3; i++) {
        send_late(&r, "echo", 20 * 1000);
        assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    }
    rig_end(&r);
    begin(&r);
    send_late(&r, "echo", (uint64_t)-20 * 1000);
    assert_body_has(rig_next(&r, RESULTS), "\"content\":\"{}\"");
    send_late(&r, "hold", 0); /* sent 20 s ago by the agent's clock */
    assert_body_has(rig_next(&r, RESULTS), "\"code\":\"timeout\"");
    assert_int_equal(bus_worker_counts(r.worker)->stale, 1);
    rig_end(&r);
}

/* While we were suspended the server came up, but the call's timeout passed as well. */
static void test_standing_still_before_the_call(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    rig_server(&r, "fs", "echo")->slow_start = true;
    rig_start(&r);
    send_late(&r, "echo", 0);
    WAIT(r.loop, bus_worker_counts(r.worker)->invokes == 1);
    sleep(4); /* of the agent's timeout of 5 s, 3 s are for us */
    rig_server_up(&r.servers[0]);
    assert_body_has(rig_next(&r, RESULTS), "\"code\":\"timeout\"");
    assert_int_equal(r.servers[0].runs, 0);
    rig_end(&r);
}

/* The default was a minute, as long as the agent itself waits; RockBot gives its bridge 30 s. */
static void test_the_time_of_a_call_that_names_none(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, NULL, NULL);
    WAIT(r.loop, r.servers[0].n_held == 1);
    uint64_t left = r.servers[0].held[0]->deadline.at - loop_now(r.loop);
    assert_in_range(left, 28 * 1000, 32 * 1000); /* the router's deadline, 2 s after ours */
    rig_finish(r.servers[0].held[0], "x");
    rig_end(&r);
}

static void test_messages_of_no_use(void **state)
{
    static const char *const bodies[] = {"not json", "[]", "{\"toolName\":\"x\"}"};
    struct rig r;

    (void)state;
    begin(&r);
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                           .type = "RockBot.Tools.ToolInvokeRequest",
                                           .server = "fs",
                                           .body = bodies[i]});
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                       .type = "RockBot.Tools.ToolError",
                                       .body = "{\"toolCallId\":\"1\",\"toolName\":\"echo\"}"});
    WAIT(r.loop, bus_worker_counts(r.worker)->dead == 4);
    /* They do not block the worker: the next call is answered. */
    call(&r, "fs", "echo", NULL);
    run_for(r.loop, 1300); /* longer than the delay of a retry */
    assert_int_equal(bus_worker_counts(r.worker)->dead, 4);
    rig_end(&r);
}

static void test_other_agents(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                       .source = "rockbot", /* names are case-sensitive */
                                       .server = "fs",
                                       .reply_to = RESULTS,
                                       .body = "{\"toolCallId\":\"1\",\"toolName\":\"echo\"}"});
    rig_send(&r, &(struct rig_request){.topic = "mcp.manage",
                                       .source = "Other",
                                       .reply_to = "mcp.manage.response.RockBot"});
    rig_send(&r, &(struct rig_request){.topic = "tool.meta.mcp.refresh", .source = "Other"});
    WAIT(r.loop, bus_worker_counts(r.worker)->foreign == 3);
    assert_int_equal(r.servers[0].runs, 0);
    rig_end(&r);
}

static void test_everybody(void **state)
{
    static const char *const agents[] = {"Somebody", "*"};
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.options.agents = agents;
    r.options.n_agents = 2;
    rig_server(&r, "fs", "echo");
    rig_start(&r);
    assert_body_has(call(&r, "fs", "echo", NULL), "\"content\":\"{}\"");
    /* An agent that the worker did not know is sent the list of servers. */
    assert_body_has(rig_next(&r, "tool.meta.mcp.RockBot"), "\"serverName\":\"fs\"");
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp", .source = "no name"});
    WAIT(r.loop, bus_worker_counts(r.worker)->foreign == 1);
    rig_end(&r);
}

/* Several named workers serve one agent: a worker without the requested server does not answer. */
static void test_a_worker_with_a_name(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.options.name = "left";
    rig_server(&r, "fs", "echo");
    rig_start(&r);
    rig_next(&r, "tool.meta.mcp.RockBot");
    rig_invoke(&r, "elsewhere", "echo", NULL);
    rig_invoke(&r, NULL, "nothing", NULL);
    rig_manage(&r, "McpGetServiceDetailsRequest", "{\"serverName\":\"elsewhere\"}");
    rig_manage(&r, "McpRegisterServerRequest", "{\"serverName\":\"new\"}");
    WAIT(r.loop, bus_worker_counts(r.worker)->elsewhere == 4);
    assert_body_has(call(&r, "fs", "echo", NULL), "\"content\":\"{}\"");
    assert_int_equal(rig_count(&r, "mcp.manage.response.RockBot"), 0);
    rig_end(&r);
}

static void test_a_reply_that_is_too_large(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.bus_options.max_message = 8192;
    rig_server(&r, "fs", "echo big");
    rig_start(&r);
    const struct message *m = call(&r, "fs", "big", NULL);
    assert_span(m->type, "RockBot.Tools.ToolError");
    assert_body_has(m,
                    "\"code\":\"execution_failed\",\"message\":\"the result is too large for the "
                    "bus: 20");
    assert_body_has(m, " bytes, and a message may have ");
    rig_end(&r);
}

static void test_the_trace_goes_on(void **state)
{
    const char *parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    struct rig r;

    (void)state;
    begin(&r);
    rig_send(&r, &(struct rig_request){.topic = "tool.invoke.mcp",
                                       .server = "fs",
                                       .traceparent = parent,
                                       .body = "{\"toolCallId\":\"1\",\"toolName\":\"echo\"}"});
    struct span child = message_header(rig_next(&r, RESULTS), "traceparent");
    assert_int_equal(child.n, strlen(parent));
    assert_memory_equal(child.p, parent, 36);
    assert_memory_not_equal(child.p + 36, parent + 36, 16);
    assert_span(buf_view(&r.servers[0].params),
                "{\"name\":\"echo\",\"arguments\":{},\"_meta\":{}}");
    /* The server gets our trace span, which the reply has too. */
    char *meta = mem_span(buf_view(&r.servers[0].meta));
    assert_memory_equal(meta, "\"traceparent\":\"", 15);
    assert_memory_equal(meta + 15, child.p, child.n);
    mem_free(meta);
    rig_end(&r);
}

static void test_as_many_at_once_as_asked_for(void **state)
{
    struct rig r;

    (void)state;
    begin(&r); /* with a prefetch of 4 */
    for (int i = 0; i < 6; i++)
        send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 4);
    run_for(r.loop, 50);
    assert_int_equal(r.servers[0].n_held, 4);
    /* Each call that ends makes room for the next, in whatever order they end. */
    rig_finish(r.servers[0].held[2], "third");
    assert_body_has(rig_next(&r, RESULTS), "third");
    WAIT(r.loop, r.servers[0].n_held == 5);
    for (int i = 0; i < 6; i++) {
        WAIT(r.loop, r.servers[0].n_held > i);
        if (i != 2)
            rig_finish(r.servers[0].held[i], "other");
    }
    WAIT(r.loop, bus_worker_counts(r.worker)->replies == 6);
    rig_end(&r);
}

static void test_leaving_lets_calls_end(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 1);
    rig_close_worker(&r);
    /* A message that arrives now is left for the next worker. */
    send_hold(&r, "60000", NULL);
    run_for(r.loop, 50);
    assert_false(r.worker_closed);
    assert_int_equal(r.servers[0].runs, 1);
    rig_finish(r.servers[0].held[0], "just in time");
    WAIT(r.loop, r.worker_closed);
    assert_body_has(rig_next(&r, RESULTS), "just in time");
    /* The next worker gets it. */
    r.servers[0].n_held = 0;
    r.worker_closed = false;
    r.worker = bus_worker_new(r.loop, r.bus, &r.host, &r.options);
    WAIT(r.loop, r.servers[0].n_held == 1);
    rig_finish(r.servers[0].held[0], "by the next");
    assert_body_has(rig_next(&r, RESULTS), "by the next");
    rig_end(&r);
}

static void test_leaving_answers_every_call(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 1);
    rig_close_worker(&r);
    WAIT(r.loop, r.worker_closed);
    assert_body_has(rig_next(&r, RESULTS), "\"code\":\"execution_failed\",\"message\":\"the bridge "
                                           "is shutting down, and the call was ended.");
    assert_int_equal(r.servers[0].cancels, 1);
    rig_end(&r);
}

/* Closing the worker while the bus is down: replies cannot be sent, but closing must end. */
static void test_leaving_without_a_bus(void **state)
{
    struct rig r;

    (void)state;
    rig_begin(&r);
    r.hosted_apart = true;
    rig_server(&r, "fs", "hold");
    rig_start(&r);
    send_hold(&r, "60000", NULL);
    send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 2);
    rig_lose_bus(&r);
    rig_finish(r.servers[0].held[0], "too late");
    rig_close_worker(&r);
    WAIT(r.loop, r.worker_closed);
    assert_int_equal(r.servers[0].cancels, 1);
    rig_end(&r);
}

/* When a server is removed, its calls end. */
static void test_a_server_that_is_stopped(void **state)
{
    struct rig r;

    (void)state;
    begin(&r);
    send_hold(&r, "60000", NULL);
    WAIT(r.loop, r.servers[0].n_held == 1);
    r.hidden[0] = true;
    provider_unwant(&r.servers[0].core);
    assert_body_has(
        rig_next(&r, RESULTS),
        "\"code\":\"execution_failed\",\"message\":\"the call was ended: server 'fs' is "
        "being stopped or removed\",\"isRetryable\":false");
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_an_agent_that_waits_longer_than_others),
        cmocka_unit_test(test_a_file_that_does_not_come),
        cmocka_unit_test(test_a_limit_of_the_servers_own),
        cmocka_unit_test(test_a_server_that_crashes),
        cmocka_unit_test(test_what_came_while_we_stood_still),
        cmocka_unit_test(test_an_agent_whose_clock_differs),
        cmocka_unit_test(test_standing_still_before_the_call),
        cmocka_unit_test(test_the_time_of_a_call_that_names_none),
        cmocka_unit_test(test_a_server_on_its_way_up),
        cmocka_unit_test(test_a_server_that_does_not_come_up),
        cmocka_unit_test(test_a_server_that_failed_before),
        cmocka_unit_test(test_a_message_that_comes_again),
        cmocka_unit_test(test_more_under_way_than_can_be_remembered),
        cmocka_unit_test(test_a_message_that_is_too_old),
        cmocka_unit_test(test_messages_of_no_use),
        cmocka_unit_test(test_other_agents),
        cmocka_unit_test(test_everybody),
        cmocka_unit_test(test_a_worker_with_a_name),
        cmocka_unit_test(test_a_reply_that_is_too_large),
        cmocka_unit_test(test_the_trace_goes_on),
        cmocka_unit_test(test_as_many_at_once_as_asked_for),
        cmocka_unit_test(test_leaving_lets_calls_end),
        cmocka_unit_test(test_leaving_answers_every_call),
        cmocka_unit_test(test_leaving_without_a_bus),
        cmocka_unit_test(test_a_server_that_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
