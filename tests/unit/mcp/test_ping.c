/* The health of a server is checked with MCP's own ping. */
#include "../unit.h"
#include "base/log.h"
#include "mcp/server/provider.h"

#include <stdio.h>

/* A provider whose link only records what is sent. */
struct fixture {
    struct timers timers;
    struct router *router;
    struct mcp_provider *provider;
    struct provider *core;
    struct buf line; /* being written */
    struct buf sent; /* the methods sent, one per line */
    uint64_t last_id;
    unsigned closes;
};

static void link_open(void *link)
{
    (void)link;
}

static struct buf *link_begin(void *link)
{
    struct fixture *x = link;

    x->line.n = 0;
    return &x->line;
}

static void link_end(void *link, const struct mcp_parcel *parcel)
{
    struct fixture *x = link;

    if (parcel->kind == RPC_REQUEST)
        x->last_id = parcel->id;
    if (parcel->method)
        buf_printf(&x->sent, "%s\n", parcel->method);
}

static void link_close(void *link)
{
    struct fixture *x = link;

    x->closes++;
}

static void link_free(void *link)
{
    (void)link;
}

static const struct mcp_link_ops link_ops = {.open = link_open,
                                             .begin = link_begin,
                                             .end = link_end,
                                             .close = link_close,
                                             .free = link_free};

static void answer(struct fixture *x, const char *members)
{
    struct buf text = {0};

    buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,%s}", (unsigned long long)x->last_id,
               members);
    mcp_provider_receive(x->provider, buf_view(&text), 0);
    buf_fini(&text);
}

static void begin(struct fixture *x, uint64_t interval)
{
    *x = (struct fixture){.timers.now = 1000 * 1000};
    log_set_level(LOG_ERROR);
    x->router = router_new(&x->timers, 1);
    x->provider = mcp_provider_new("far", &link_ops, x);
    x->core = mcp_provider_core(x->provider);
    x->core->policy.settle = 1;
    mcp_provider_set_era(x->provider, MCP_ERA_LEGACY);
    mcp_provider_set_ping(x->provider, interval);
    router_add_provider(x->router, x->core);
    provider_want(x->core);
    mcp_provider_connected(x->provider);
    answer(x, "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}}}");
    answer(x, "\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]}");
    assert_int_equal(x->core->state, PROVIDER_READY);
    x->sent.n = 0;
}

static void end(struct fixture *x)
{
    provider_unwant(x->core);
    if (x->core->state == PROVIDER_STOPPING)
        mcp_provider_closed(x->provider, "the test is over");
    router_remove_provider(x->router, x->core);
    mcp_provider_free(x->provider);
    router_free(x->router);
    assert_int_equal(x->timers.n, 0);
    timers_fini(&x->timers);
    buf_fini(&x->line);
    buf_fini(&x->sent);
}

static void wait_ms(struct fixture *x, uint64_t ms)
{
    timers_advance(&x->timers, x->timers.now + ms);
}

#define assert_sent(x, text)                                                                       \
    do {                                                                                           \
        assert_string_equal(buf_cstr(&(x)->sent), (text));                                         \
        (x)->sent.n = 0;                                                                           \
    } while (0)

static void test_silence_is_followed_by_a_ping(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 30000);
    wait_ms(&x, 29999);
    assert_sent(&x, "");
    wait_ms(&x, 1);
    assert_sent(&x, "ping\n");
    answer(&x, "\"result\":{}");
    wait_ms(&x, 29999);
    assert_sent(&x, "");
    wait_ms(&x, 1);
    assert_sent(&x, "ping\n");
    /* An error is an answer too: the server is alive. */
    answer(&x, "\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
    wait_ms(&x, 10000);
    assert_int_equal(x.closes, 0);
    end(&x);
}

static void test_any_word_is_a_sign_of_life(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 30000);
    wait_ms(&x, 20000);
    mcp_provider_receive(x.provider,
                         SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                              "\"params\":{\"level\":\"info\",\"data\":1}}"),
                         0);
    wait_ms(&x, 29999);
    assert_sent(&x, "");
    wait_ms(&x, 1);
    assert_sent(&x, "ping\n");
    /* The ping is not answered, but any message shows that the server is alive. */
    wait_ms(&x, 5000);
    mcp_provider_receive(x.provider, SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"), 0);
    wait_ms(&x, 5000);
    assert_int_equal(x.closes, 0);
    assert_sent(&x, "notifications/cancelled\n");
    end(&x);
}

static void test_no_answer_is_as_good_as_gone(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 30000);
    wait_ms(&x, 30000);
    wait_ms(&x, 9999);
    assert_int_equal(x.closes, 0);
    wait_ms(&x, 1);
    assert_int_equal(x.closes, 1);
    mcp_provider_closed(x.provider, "killed by SIGKILL");
    assert_int_equal(x.core->state, PROVIDER_BACKOFF);
    assert_string_equal(x.core->why, "did not answer a ping within 10 s");
    end(&x);
}

static void test_what_the_link_says_of_a_ping(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 30000);
    wait_ms(&x, 30000);
    mcp_provider_failed(x.provider, x.last_id, 405, true, "405 Method Not Allowed");
    assert_int_equal(x.closes, 0);
    wait_ms(&x, 30000);
    mcp_provider_failed(x.provider, x.last_id, 0, false, "connection refused");
    assert_int_equal(x.closes, 1);
    mcp_provider_closed(x.provider, "closed");
    assert_string_equal(x.core->why, "could not be reached by a ping: connection refused");
    end(&x);
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    (void)self, (void)call, (void)outcome;
}

/* A server with one thread cannot answer pings during a call: it must not be closed for that. */
static void test_a_server_at_work_is_left_alone(void **state)
{
    static const struct peer_verbs verbs = {.done = on_done};
    struct fixture x;
    struct peer consumer;

    (void)state;
    begin(&x, 1000);
    peer_init(&consumer, &verbs);
    x.core->policy.timeout = 0;
    struct view *v = view_new("v", NULL);
    view_add(v, x.core, NULL);
    call_open(x.router, &consumer, v,
              &(struct request){.op = OP_CALL_TOOL,
                                .name = SPAN("t"),
                                .params = SPAN("{\"name\":\"t\"}"),
                                .name_at = {8, 3}},
              NULL);
    assert_sent(&x, "tools/call\n");
    wait_ms(&x, 100000);
    assert_sent(&x, "");
    answer(&x, "\"result\":{\"content\":[]}");
    wait_ms(&x, 1000);
    assert_sent(&x, "ping\n");
    view_free(v);
    end(&x);
}

static void test_no_ping_unless_wanted(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 0);
    wait_ms(&x, 1000 * 1000);
    assert_sent(&x, "");
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_is_followed_by_a_ping),
        cmocka_unit_test(test_any_word_is_a_sign_of_life),
        cmocka_unit_test(test_no_answer_is_as_good_as_gone),
        cmocka_unit_test(test_what_the_link_says_of_a_ping),
        cmocka_unit_test(test_a_server_at_work_is_left_alone),
        cmocka_unit_test(test_no_ping_unless_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
