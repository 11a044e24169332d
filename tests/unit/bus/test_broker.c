#include "bus/broker.h"

#include "base/log.h"
#include "bus_test.h"

#include <stdio.h>

/* A member that records its deliveries and reacts as the test has set. */
struct reader {
    struct broker_member *member;
    struct broker_sub *sub;
    struct buf got; /* bodies, each after a blank; '!' after a redelivered one */
    int n;
    uint64_t tags[4096];
    bool settles, busy, leaves;
    enum bus_verdict verdict;
};

static void on_deliver(void *owner, struct broker_sub *sub, uint64_t tag, bool redelivered,
                       struct span topic, const struct message *m)
{
    struct reader *r = owner;

    (void)topic;
    buf_printf(&r->got, " " SPAN_FMT "%s", SPAN_ARG(m->body), redelivered ? "!" : "");
    r->tags[r->n++ % (int)COUNT_OF(r->tags)] = tag;
    if (r->settles)
        broker_settle(r->member, tag, r->verdict);
    if (r->leaves) {
        broker_unsubscribe(sub);
        r->sub = NULL;
    }
}

static bool on_ready(void *owner)
{
    return !((struct reader *)owner)->busy;
}

static const struct broker_events events = {on_deliver, on_ready};

static void reader_join(struct reader *r, struct broker *b, const char *topic, const char *group,
                        unsigned prefetch, bool durable)
{
    r->member = broker_join(b, &events, r);
    r->sub = broker_subscribe(
        r->member,
        &(struct bus_subscription){
            .topic = topic, .group = group, .prefetch = prefetch, .ephemeral = !durable},
        NULL);
    assert_non_null(r->sub);
}

static void reader_leave(struct reader *r)
{
    broker_leave(r->member);
    buf_fini(&r->got);
    *r = (struct reader){0};
}

static enum bus_sent publish(struct broker *b, const char *topic, const char *body)
{
    return broker_publish(b, span_str(topic),
                          &(struct message){.id = SPAN("i"),
                                            .type = SPAN("t"),
                                            .source = SPAN("s"),
                                            .sent_ms = 1,
                                            .body = span_str(body)});
}

static void settle_turns(struct loop *l)
{
    for (int i = 0; i < 4; i++)
        loop_step(l, 0);
}

struct stage {
    struct loop *loop;
    struct broker *broker;
};

static struct stage stage_open(const struct broker_options *o)
{
    struct stage s = {.loop = loop_new()};
    s.broker = broker_new(s.loop, o);
    return s;
}

static void stage_close(struct stage *s)
{
    broker_free(s->broker);
    loop_free(s->loop);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {.settles = true};

    reader_join(&r, s.broker, "a.b", "g", 10, false);
    assert_int_equal(publish(s.broker, "a.b", "1"), BUS_SENT);
    assert_int_equal(publish(s.broker, "a.c", "2"), BUS_SENT);
    assert_int_equal(r.n, 0); /* no delivery inside broker_publish */
    settle_turns(s.loop);
    assert_span(buf_view(&r.got), " 1");
    reader_leave(&r);
    stage_close(&s);
}

/* Each group gets a copy; members of a group take turns; two patterns of a group get one copy. */
static void test_groups(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader a1 = {.settles = true}, a2 = a1, b = a1, wide = a1;

    reader_join(&a1, s.broker, "t.x", "a", 10, false);
    reader_join(&a2, s.broker, "t.x", "a", 10, false);
    reader_join(&b, s.broker, "t.*", "b", 10, false);
    reader_join(&wide, s.broker, "t.#", "b", 10, false);
    for (int i = 0; i < 6; i++)
        assert_int_equal(publish(s.broker, "t.x", "m"), BUS_SENT);
    settle_turns(s.loop);
    assert_int_equal(a1.n, 3);
    assert_int_equal(a2.n, 3);
    assert_int_equal(b.n + wide.n, 6);
    reader_leave(&a1);
    reader_leave(&a2);
    reader_leave(&b);
    reader_leave(&wide);
    stage_close(&s);
}

/*
 * An agent comes back with another pattern and its old group. The queue of the old pattern is still
 * kept, and must not get the messages instead: it would drop them after a minute.
 */
static void test_group_that_moved(void **state)
{
    (void)state;
    static const char *const patterns[] = {"t.x", "t.*", "t.#", "#", "*.x", "t.x"};
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {.settles = true};

    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        reader_join(&r, s.broker, patterns[i], "g", 10, true);
        r.settles = true;
        assert_int_equal(publish(s.broker, "t.x", "m"), BUS_SENT);
        settle_turns(s.loop);
        assert_span(buf_view(&r.got), " m");
        reader_leave(&r);
    }
    stage_close(&s);
}

static void test_prefetch(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {0}, other = {0};

    reader_join(&r, s.broker, "t", "g", 2, false);
    for (int i = 0; i < 5; i++)
        assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    settle_turns(s.loop);
    assert_int_equal(r.n, 2);
    broker_settle(r.member, r.tags[1], BUS_ACK);
    settle_turns(s.loop);
    assert_int_equal(r.n, 3);
    broker_settle(r.member, 999, BUS_ACK);
    broker_settle(r.member, r.tags[1], BUS_ACK); /* a second time */
    settle_turns(s.loop);
    assert_int_equal(r.n, 3);
    /* Another member of the group gets what exceeds the first one's prefetch. */
    reader_join(&other, s.broker, "t", "g", 10, false);
    settle_turns(s.loop);
    assert_int_equal(other.n, 2);
    /* A busy member is skipped, and gets the messages when it is ready again. */
    other.busy = true;
    assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    settle_turns(s.loop);
    assert_int_equal(other.n, 2);
    other.busy = false;
    broker_member_ready(other.member);
    settle_turns(s.loop);
    assert_int_equal(other.n, 3);
    reader_leave(&r);
    reader_leave(&other);
    stage_close(&s);
}

/* Retry: a message is delivered four times in total, then it is a dead letter. */
static void test_retry(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.retry_ms = 1});
    struct reader r = {.settles = true, .verdict = BUS_RETRY};
    struct dead_letter d;

    reader_join(&r, s.broker, "t", "g", 10, false);
    assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    WAIT(s.loop, broker_dead_letter(s.broker, 0, &d));
    assert_span(buf_view(&r.got), " m m! m! m!");
    assert_span(d.topic, "t");
    assert_span(d.group, "g");
    assert_span(d.message.body, "m");
    assert_int_equal(d.number, 1);
    assert_string_equal(d.why, "was tried four times");
    reader_leave(&r);
    stage_close(&s);
}

/* The waits double: 1 s, 2 s, 4 s with the standard setting. */
static void test_retry_delay(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.retry_ms = 40});
    struct reader r = {.settles = true, .verdict = BUS_RETRY};
    struct dead_letter d;

    reader_join(&r, s.broker, "t", "g", 10, false);
    loop_step(s.loop, 0);
    uint64_t from = loop_now(s.loop); /* before the first delivery */
    assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    WAIT(s.loop, broker_dead_letter(s.broker, 0, &d));
    assert_true(loop_now(s.loop) - from >= 40 + 80 + 160);
    reader_leave(&r);
    stage_close(&s);
}

static void test_dead(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {.settles = true, .verdict = BUS_DEAD};
    struct dead_letter d;

    reader_join(&r, s.broker, "t", "g", 10, false);
    for (int i = 0; i < 1100; i++) {
        assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
        if (i % 100 == 99)
            settle_turns(s.loop);
    }
    assert_int_equal(r.n, 1100); /* each was delivered once */
    assert_true(broker_dead_letter(s.broker, 0, &d));
    assert_int_equal(d.number, 101); /* only the last thousand are kept */
    assert_true(broker_dead_letter(s.broker, 1099, &d));
    assert_int_equal(d.number, 1100);
    assert_false(broker_dead_letter(s.broker, 1100, &d));
    reader_leave(&r);
    stage_close(&s);
}

/* Unsettled messages go to the next member of the group, before others and in order. */
static void test_given_back(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader a = {0}, b = {0};

    reader_join(&a, s.broker, "t", "g", 3, false);
    for (char c[2] = "1"; c[0] <= '5'; c[0]++)
        assert_int_equal(publish(s.broker, "t", c), BUS_SENT);
    settle_turns(s.loop);
    assert_span(buf_view(&a.got), " 1 2 3");
    broker_settle(a.member, a.tags[1], BUS_ACK);
    settle_turns(s.loop);
    reader_join(&b, s.broker, "t", "g", 10, false);
    reader_leave(&a);
    settle_turns(s.loop);
    assert_true(b.n >= 4);
    reader_leave(&b);
    stage_close(&s);
}

static void test_order_kept(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader a = {0}, b = {.settles = true};

    reader_join(&a, s.broker, "t", "g", 3, true);
    for (char c[2] = "1"; c[0] <= '5'; c[0]++)
        assert_int_equal(publish(s.broker, "t", c), BUS_SENT);
    settle_turns(s.loop);
    reader_leave(&a);
    reader_join(&b, s.broker, "t", "g", 10, true);
    settle_turns(s.loop);
    assert_span(buf_view(&b.got), " 1! 2! 3! 4 5");
    reader_leave(&b);
    stage_close(&s);
}

/* A durable queue is kept for its subscriber for a limited time; other queues end at once. */
static void test_durable(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.durable_ms = 50});
    struct reader r = {.settles = true};

    reader_join(&r, s.broker, "t", "g", 10, true);
    reader_leave(&r);
    assert_int_equal(publish(s.broker, "t", "kept"), BUS_SENT);
    r.settles = true;
    reader_join(&r, s.broker, "t", "g", 10, true);
    settle_turns(s.loop);
    assert_span(buf_view(&r.got), " kept");
    reader_leave(&r);
    assert_int_equal(publish(s.broker, "t", "lost"), BUS_SENT);
    run_for(s.loop, 150);
    r.settles = true;
    reader_join(&r, s.broker, "t", "g", 10, false);
    settle_turns(s.loop);
    reader_leave(&r);
    stage_close(&s);

    s = stage_open(&(struct broker_options){0});
    reader_join(&r, s.broker, "t", "g", 10, false);
    reader_leave(&r);
    assert_int_equal(publish(s.broker, "t", "nobody"), BUS_SENT);
    reader_join(&r, s.broker, "t", "g", 10, false);
    settle_turns(s.loop);
    assert_int_equal(r.n, 0);
    reader_leave(&r);
    stage_close(&s);
}

/* The number of queues that are kept for absent subscribers is bounded, too. */
static void test_many_queues(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {.member = broker_join(s.broker, &events, &r)};
    char group[16];

    for (int i = 0; i < 10001; i++) {
        snprintf(group, sizeof group, "g%d", i);
        struct broker_sub *sub = broker_subscribe(
            r.member, &(struct bus_subscription){.topic = "t", .group = group}, NULL);
        assert_int_equal(sub != NULL, i < 10000);
        if (sub)
            broker_unsubscribe(sub);
    }
    reader_leave(&r);
    stage_close(&s);
}

/* If one queue is full, the whole message is refused: no queue gets a copy. */
static void test_full(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.queue_messages = 3});
    struct reader slow = {0}, quick = {.settles = true};

    reader_join(&slow, s.broker, "t", "slow", 1, false);
    reader_join(&quick, s.broker, "t", "quick", 10, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    settle_turns(s.loop);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(publish(s.broker, "t", "m"), BUS_FULL);
    settle_turns(s.loop);
    assert_int_equal(quick.n, 3);
    broker_settle(slow.member, slow.tags[0], BUS_ACK);
    assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    reader_leave(&slow);
    reader_leave(&quick);
    stage_close(&s);
}

/*
 * All agents use the same topics for tool calls. The queue kept for one agent's worker, which had
 * left, was full after 1,024 calls of another agent, and then those calls were refused.
 */
static void test_full_and_nobody_there(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.queue_messages = 3});
    struct reader gone = {0}, there = {.settles = true}, back = {.settles = true};

    reader_join(&gone, s.broker, "t", "kept", 10, true);
    reader_join(&there, s.broker, "t", "there", 10, false);
    reader_leave(&gone);
    for (int i = 0; i < 10; i++) {
        const char body[] = {(char)('0' + i), '\0'};
        assert_int_equal(publish(s.broker, "t", body), BUS_SENT);
        settle_turns(s.loop);
    }
    assert_int_equal(there.n, 10);
    /* If no member is there to get the message, it is refused as before. */
    reader_leave(&there);
    assert_int_equal(publish(s.broker, "t", "x"), BUS_FULL);
    /* The kept queue has the newest messages; the older ones are nearly expired. */
    reader_join(&back, s.broker, "t", "kept", 10, true);
    settle_turns(s.loop);
    assert_span(buf_view(&back.got), " 7 8 9");
    reader_leave(&back);
    stage_close(&s);
}

static void test_full_of_bytes(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.queue_bytes = 100000});
    struct reader r = {0};
    char *big = mem_zalloc(40001);

    memset(big, 'x', 40000);
    reader_join(&r, s.broker, "t", "g", 1, false);
    assert_int_equal(publish(s.broker, "t", big), BUS_SENT);
    assert_int_equal(publish(s.broker, "t", big), BUS_SENT);
    assert_int_equal(publish(s.broker, "t", big), BUS_FULL);
    reader_leave(&r);
    stage_close(&s);

    s = stage_open(&(struct broker_options){.total_bytes = 100000});
    struct reader a = {0}, b = {0};
    reader_join(&a, s.broker, "a", "g", 1, false);
    reader_join(&b, s.broker, "b", "g", 1, false);
    assert_int_equal(publish(s.broker, "a", big), BUS_SENT);
    assert_int_equal(publish(s.broker, "b", big), BUS_SENT);
    assert_int_equal(publish(s.broker, "a", big), BUS_FULL);
    reader_leave(&a);
    assert_int_equal(publish(s.broker, "b", big), BUS_SENT);
    reader_leave(&b);
    stage_close(&s);
    mem_free(big);
}

/* A message is stored once, but its entry in each of many queues needs memory, too. When entries
 * were not counted, a few thousand groups took gigabytes instead of the promised 256 MiB. */
static void test_full_of_places(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.total_bytes = 200000});
    struct reader r = {.member = broker_join(s.broker, &events, &r)};
    char group[16];
    int sent = 0;

    for (int i = 0; i < 100; i++) {
        snprintf(group, sizeof group, "g%d", i);
        assert_non_null(broker_subscribe(
            r.member, &(struct bus_subscription){.topic = "t", .group = group}, NULL));
    }
    while (sent < 1000 && publish(s.broker, "t", "m") == BUS_SENT)
        sent++;
    assert_in_range(sent, 10, 50);
    broker_leave(r.member);
    stage_close(&s);
}

/* A slow lossy subscriber misses messages; publishers are never refused because of it. */
static void test_lossy(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){.queue_messages = 3});
    struct reader r = {0};

    r.member = broker_join(s.broker, &events, &r);
    r.sub = broker_subscribe(
        r.member,
        &(struct bus_subscription){.topic = "#", .group = "look", .ephemeral = true, .lossy = true},
        NULL);
    for (int i = 0; i < 100; i++)
        assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    settle_turns(s.loop);
    assert_int_equal(r.n, 3);
    reader_leave(&r);
    stage_close(&s);
}

/* Unsubscribing inside a delivery while more messages wait. */
static void test_leaves_inside(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {.settles = true, .leaves = true};

    reader_join(&r, s.broker, "t", "g", 10, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    settle_turns(s.loop);
    assert_int_equal(r.n, 1); /* no delivery after unsubscribing */
    assert_int_equal(publish(s.broker, "t", "m"), BUS_SENT);
    settle_turns(s.loop);
    assert_int_equal(r.n, 1);
    reader_leave(&r);
    stage_close(&s);
}

static void index_servers(struct broker *b, const char *body)
{
    assert_int_equal(
        broker_publish(b, SPAN("tool.meta.mcp.RockBot"),
                       &(struct message){.id = SPAN("i"),
                                         .type = SPAN("RockBot.Tools.Mcp.McpServersIndexed"),
                                         .source = SPAN("mcp-bridge.RockBot"),
                                         .sent_ms = 1,
                                         .body = span_str(body)}),
        BUS_SENT);
}

static void expect_index(struct stage *s, const char *pattern, const char *bodies)
{
    struct reader r = {.settles = true};

    reader_join(&r, s->broker, pattern, "late", 10, false);
    settle_turns(s->loop);
    assert_span(buf_view(&r.got), bodies);
    reader_leave(&r);
}

/* Later subscribers get the last announcement of each server, once. */
static void test_retained(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});

    expect_index(&s, "tool.meta.mcp.RockBot", "");
    index_servers(s.broker, "{\"servers\":[],\"removedServers\":[]}");
    expect_index(&s, "tool.meta.mcp.*", " {\"servers\":[],\"removedServers\":[]}");
    index_servers(s.broker, "{\"servers\":[{\"serverName\":\"fs\",\"n\":1}]}");
    index_servers(s.broker, "{\"servers\":[{\"serverName\":\"db\"}]}");
    index_servers(s.broker, "{\"servers\":[{\"serverName\":\"FS\",\"n\":2}]}");
    expect_index(&s, "tool.meta.mcp.RockBot",
                 " {\"servers\":[],\"removedServers\":[]}"
                 " {\"servers\":[{\"serverName\":\"db\"}]}"
                 " {\"servers\":[{\"serverName\":\"FS\",\"n\":2}]}");
    expect_index(&s, "tool.meta.mcp.Other", "");
    expect_index(&s, "tool.#", "");
    /* Several servers in one message are kept separately. */
    index_servers(s.broker, "{\"servers\":[{\"serverName\":\"a\"},{\"serverName\":\"b\"}],"
                            "\"removedServers\":[\"db\",\"fs\"]}");
    index_servers(s.broker, "{\"servers\":[],\"removedServers\":[\"a\"]}");
    expect_index(&s, "tool.meta.mcp.#",
                 " {\"servers\":[],\"removedServers\":[]}"
                 " {\"servers\":[{\"serverName\":\"b\"}],\"removedServers\":[]}");
    index_servers(s.broker, "{\"servers\":7,\"removedServers\":{}}");
    index_servers(s.broker, "no json");
    index_servers(s.broker, "[]");
    stage_close(&s);
}

/* A flood takes no more memory than the bounds allow. */
static void test_flood(void **state)
{
    (void)state;
    struct stage s = stage_open(&(struct broker_options){0});
    struct reader r = {0};
    int sent = 0, refused = 0;

    reader_join(&r, s.broker, "t", "g", 10, false);
    for (int i = 0; i < 100000; i++) {
        if (publish(s.broker, "t", "body") == BUS_SENT)
            sent++;
        else
            refused++;
    }
    assert_int_equal(sent, 1024);
    assert_int_equal(refused, 100000 - 1024);
    reader_leave(&r);
    stage_close(&s);
}

int main(void)
{
    log_set_level(LOG_ERROR); /* dead letters are logged as warnings */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_retry_delay),
        cmocka_unit_test(test_dead),
        cmocka_unit_test(test_given_back),
        cmocka_unit_test(test_order_kept),
        cmocka_unit_test(test_durable),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_full_and_nobody_there),
        cmocka_unit_test(test_full_of_bytes),
        cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_leaves_inside),
        cmocka_unit_test(test_retained),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_many_queues),
        cmocka_unit_test(test_group_that_moved),
        cmocka_unit_test(test_full_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
