/*
 * The proxy on a real embedded bus, with a bridge of ours at the other end of it in the same loop:
 * what happens when the bus goes away and comes back, and what is told of calls that are under way.
 */
#include "bus_test.h"

#include "base/err.h"
#include "bus/proxy.h"
#include "bus/rockbot.h"

#include <stdio.h>
#include <stdlib.h>

struct rig {
    struct loop *loop;
    struct router *router;
    struct view *view;
    struct bus_host host;
    struct bus_options options;
    char url[160];
    struct bus *ours, *theirs; /* the proxy's place on the bus, and the bridge's */
    struct bus_proxy *proxy;
    int closed, stopped, admitted, dismissed;
    bool ours_up, theirs_up;

    /* The bridge. */
    struct bus_sub *invokes, *manages;
    int n_invokes, n_details, n_refreshes;
    struct bus_sub *refreshes;
    bool mute;  /* it answers nothing */
    bool quiet; /* it answers no calls */
    struct message_copy last;
    bool has_last;

    /* The consumer. */
    struct peer consumer;
    int n_done;
    struct outcome outcome;
    char text[256];
};

static void up_ours(void *owner)
{
    struct rig *r = owner;

    r->ours_up = true;
    if (r->proxy)
        bus_proxy_up(r->proxy);
}

static void up_theirs(void *owner)
{
    ((struct rig *)owner)->theirs_up = true;
}

static void down(void *owner, const char *why)
{
    (void)owner, (void)why;
}

static void closed(void *owner)
{
    ((struct rig *)owner)->closed++;
}

static const struct bus_events ours_on = {up_ours, down, closed};
static const struct bus_events theirs_on = {up_theirs, down, closed};

/* --- the bridge --- */

static void reply(struct rig *r, const struct message *to, enum rockbot_record type,
                  const struct span *values, const char *trust)
{
    struct message m = {.type = span_str(rockbot_name(type)), .correlation = to->correlation};
    struct buf body = {0};

    rockbot_put(&body, type, values);
    m.body = buf_view(&body);
    (void)message_add_header(&m, ROCKBOT_TRUST, span_str(trust));
    bus_publish(r->theirs, to->reply_to, &m, 0, NULL, NULL);
    buf_fini(&body);
}

static void answer_invoke(struct rig *r, const struct message *m)
{
    reply(r, m, ROCKBOT_RESULT,
          (const struct span[]){[RESULT_CALL] = SPAN("c"),
                                [RESULT_TOOL] = SPAN("t"),
                                [RESULT_CONTENT] = SPAN("done"),
                                [RESULT_IS_ERROR] = SPAN("false")},
          ROCKBOT_TRUST_OUTPUT);
}

static void on_invoke(void *owner, const struct bus_delivery *d)
{
    struct rig *r = owner;

    r->n_invokes++;
    if (r->has_last)
        message_copy_fini(&r->last);
    message_copy(&r->last, d->message);
    r->has_last = true;
    if (!r->quiet && !r->mute)
        answer_invoke(r, d->message);
    bus_settle(d->sub, d->tag, BUS_ACK);
}

static void on_manage(void *owner, const struct bus_delivery *d)
{
    struct rig *r = owner;
    const struct span details[ROCKBOT_MAX_MEMBERS] = {
        [DETAILS_SERVER] = SPAN("far"),
        [DETAILS_TOOLS] = SPAN("[{\"name\":\"t\",\"description\":\"\",\"parametersSchema\":null}]"),
    };

    r->n_details++;
    if (!r->mute)
        reply(r, d->message, ROCKBOT_DETAILS, details, ROCKBOT_TRUST_OUTPUT);
    bus_settle(d->sub, d->tag, BUS_ACK);
}

static void on_refresh(void *owner, const struct bus_delivery *d)
{
    ((struct rig *)owner)->n_refreshes++;
    bus_settle(d->sub, d->tag, BUS_ACK);
}

static void announce(struct rig *r, const char *servers, const char *removed)
{
    struct message m = {.type = span_str(rockbot_name(ROCKBOT_SERVERS_INDEXED))};
    struct buf body = {0};

    rockbot_put(&body, ROCKBOT_SERVERS_INDEXED,
                (const struct span[]){
                    [INDEXED_SERVERS] = span_str(servers), [INDEXED_REMOVED] = span_str(removed)});
    m.body = buf_view(&body);
    bus_publish(r->theirs, SPAN("tool.meta.mcp.Me"), &m, 0, NULL, NULL);
    buf_fini(&body);
}

/* --- the host and the consumer --- */

static struct provider *no_server(void *arg, size_t n)
{
    (void)arg, (void)n;
    return NULL;
}

static void admit(void *arg, struct provider *p)
{
    struct rig *r = arg;

    r->admitted++;
    view_add(r->view, p, NULL);
}

static void dismiss(void *arg, struct provider *p)
{
    struct rig *r = arg;

    assert_int_equal(p->state, PROVIDER_DOWN);
    assert_false(view_has(r->view, p));
    r->dismissed++;
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct rig *r = CONTAINER_OF(self, struct rig, consumer);
    struct span said = outcome->text.n ? outcome->text : outcome->body;

    (void)call;
    r->n_done++;
    r->outcome = *outcome;
    snprintf(r->text, sizeof r->text, SPAN_FMT, SPAN_ARG(span_cut(said, 0, 200)));
}

static const struct peer_verbs consumer_verbs = {.done = on_done};

static struct call *call_tool(struct rig *r, const char *name)
{
    struct buf params = {0};

    buf_printf(&params, "{\"name\":\"%s\",\"arguments\":{\"a\":1}}", name);
    struct call *c = router_open(r->router, &r->consumer, r->view,
                                 &(struct request){.op = OP_CALL_TOOL,
                                                   .name = span_str(name),
                                                   .params = buf_view(&params),
                                                   .name_at = {8, strlen(name) + 2}},
                                 NULL);
    buf_fini(&params);
    return c;
}

static struct bus_sub *listen(struct rig *r, const char *topic, const char *group,
                              bus_deliver_fn *deliver)
{
    return bus_subscribe(r->theirs, &(struct bus_subscription){.topic = topic, .group = group},
                         deliver, r);
}

static void set_up(struct rig *r, const struct bus_proxy_options *options)
{
    struct err err;
    static int serial;

    *r = (struct rig){.loop = loop_new()};
    snprintf(r->url, sizeof r->url, "unix:%s/rialto-proxy-%d-%d.sock",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), ++serial);
    r->router = router_new(loop_timers(r->loop), 7);
    r->view = view_new("all", "{server}__{tool}");
    router_add_view(r->router, r->view);
    peer_init(&r->consumer, &consumer_verbs);
    r->host = (struct bus_host){
        .router = r->router, .arg = r, .server = no_server, .admit = admit, .dismiss = dismiss};
    r->options = (struct bus_options){.url = r->url, .name = "test"};
    r->theirs = bus_open(r->loop, &r->options, &theirs_on, r, &err);
    assert_non_null(r->theirs);
    WAIT(r->loop, r->theirs_up);
    r->invokes = listen(r, ROCKBOT_TOPIC_INVOKE, "mcp-bridge.Me", on_invoke);
    r->manages = listen(r, ROCKBOT_TOPIC_MANAGE, "mcp-bridge.Me.manage", on_manage);
    r->refreshes = listen(r, ROCKBOT_TOPIC_REFRESH, "mcp-bridge.Me.refresh", on_refresh);
    r->ours = bus_open(r->loop, &r->options, &ours_on, r, &err);
    assert_non_null(r->ours);
    WAIT(r->loop, r->ours_up);
    r->proxy = bus_proxy_new(r->loop, r->ours, &r->host, options);
    WAIT(r->loop, r->n_refreshes > 0);
}

static void stopped(void *arg)
{
    ((struct rig *)arg)->stopped++;
}

static void tear_down(struct rig *r)
{
    bus_proxy_stop(r->proxy, stopped, r);
    assert_int_equal(r->admitted, r->dismissed);
    assert_null(router_next_provider(r->router, NULL));
    WAIT(r->loop, r->stopped == 1);
    bus_close(r->ours);
    WAIT(r->loop, r->closed == 1);
    bus_close(r->theirs);
    WAIT(r->loop, r->closed == 2);
    router_detach(r->router, &r->consumer);
    router_remove_view(r->router, r->view);
    view_free(r->view);
    router_free(r->router);
    if (r->has_last)
        message_copy_fini(&r->last);
    loop_free(r->loop);
    /* What an embedded bus leaves: whoever comes next may host it. */
    strcat(r->url, ".lock");
    unlink(r->url + strlen("unix:"));
}

static const struct bus_proxy_options patient = {.agent = "Me", .patience = 60000};
static const char far[] = "[{\"serverName\":\"far\",\"toolNames\":[\"t\"]}]";

static struct provider *meet(struct rig *r)
{
    struct provider *p;

    announce(r, far, "[]");
    WAIT(r->loop, (p = router_provider(r->router, SPAN("far"))) && p->state == PROVIDER_READY);
    return p;
}

static void test_a_call_and_its_answer(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    meet(&r);
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_done == 1);
    assert_string_equal(r.text,
                        "{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"isError\":false}");
    assert_span(message_header(&r.last.m, ROCKBOT_SERVER), "far");
    assert_span(message_header(&r.last.m, ROCKBOT_TIMEOUT), "60000");
    tear_down(&r);
}

static void test_the_bus_away_for_a_while_changes_nothing(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    struct provider *p = meet(&r);
    bus_proxy_down(r.proxy, "a broken wire");
    call_tool(&r, "far__t"); /* waits in the outbox, or goes out: the bus is not really away */
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.kind, OUTCOME_RESULT);
    assert_int_equal(p->state, PROVIDER_READY);
    int before = r.n_refreshes;
    bus_proxy_up(r.proxy);
    WAIT(r.loop, r.n_refreshes > before);
    assert_int_equal(p->state, PROVIDER_READY);
    tear_down(&r);
}

static void test_the_bus_away_for_good(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &(struct bus_proxy_options){.agent = "Me", .patience = 50});
    struct provider *p = meet(&r);
    r.quiet = true;
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    bus_proxy_down(r.proxy, "a broken wire");
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.kind, OUTCOME_FAILED);
    assert_int_equal(r.outcome.why, FAIL_CRASHED);
    assert_false(r.outcome.retryable); /* it may have been done */
    assert_non_null(strstr(r.text, "the bus is away: a broken wire"));
    assert_int_equal(p->state, PROVIDER_BACKOFF);
    /* A call now fails at once with the same reason, and costs no waiting. */
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_done == 2);
    assert_int_equal(r.outcome.why, FAIL_UNAVAILABLE);
    assert_true(r.outcome.retryable);
    assert_non_null(strstr(r.text, "a broken wire"));
    bus_proxy_up(r.proxy);
    WAIT(r.loop, p->state == PROVIDER_READY);
    tear_down(&r);
}

/* The late answer of a call that was taken back finds nobody. */
static void test_a_cancelled_call(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    meet(&r);
    r.quiet = true;
    struct call *c = call_tool(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    router_cancel(c, FAIL_CANCELLED);
    assert_int_equal(r.n_done, 1);
    answer_invoke(&r, &r.last.m);
    run_for(r.loop, 50);
    assert_int_equal(r.n_done, 1);
    tear_down(&r);
}

/* A call that is taken back before the bus has told what became of its message. */
static void test_cancelled_at_once(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    meet(&r);
    struct call *c = call_tool(&r, "far__t");
    router_cancel(c, FAIL_CANCELLED);
    assert_int_equal(r.n_done, 1);
    run_for(r.loop, 50);
    tear_down(&r);
}

static void test_stopped_with_a_call_open(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    meet(&r);
    r.quiet = true;
    call_tool(&r, "far__t");
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 2);
    call_tool(&r, "far__t"); /* its message is still on its way */
    tear_down(&r);
    assert_int_equal(r.n_done, 3);
    assert_int_equal(r.outcome.why, FAIL_SHUTDOWN);
}

/* Silence: the call ends by our own limit, and then we ask whether anybody is there. */
static void test_nobody_answers(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &(struct bus_proxy_options){.agent = "Me", .timeout = 60, .margin = 20});
    struct provider *p = meet(&r);
    r.quiet = true;
    int before = r.n_details;
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.why, FAIL_TIMEOUT);
    assert_non_null(strstr(r.text, "timed out"));
    WAIT(r.loop, r.n_details == before + 1);
    run_for(r.loop, 30);
    assert_int_equal(p->state, PROVIDER_READY); /* the bridge lives */
    tear_down(&r);
}

/*
 * A request for what there is waits until the proxy's subscriptions stand. With a slow broker it
 * arrived with a stamp from before that, so the bridge thought that its announcement, which nobody
 * had heard, was known already, and the proxy had no servers.
 */
static void test_a_request_that_took_long(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    run_for(r.loop, 50);
    int before = r.n_refreshes;
    bus_proxy_down(r.proxy, "a broken wire");
    bus_proxy_up(r.proxy);
    usleep(1100 * 1000);
    WAIT(r.loop, r.n_refreshes == before + 2);
    tear_down(&r);
}

static void test_too_large_a_request(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    r.options.max_message = 40;
    announce(&r, "[]", "[]"); /* too large by itself now: nothing comes of it */
    r.options.max_message = 0;
    meet(&r);
    r.options.max_message = 40;
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.why, FAIL_REFUSED);
    assert_non_null(strstr(r.text, "larger than the bus takes (40 bytes)"));
    r.options.max_message = 0;
    tear_down(&r);
}

/* A server that leaves takes its calls with it, and may come back under the same name. */
static void test_removed_and_back(void **state)
{
    (void)state;
    struct rig r;

    set_up(&r, &patient);
    meet(&r);
    r.quiet = true;
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    announce(&r, "[]", "[\"FAR\"]");
    WAIT(r.loop, r.dismissed == 1);
    assert_int_equal(r.n_done, 1);
    assert_int_equal((int)bus_proxy_servers(r.proxy), 0);
    r.quiet = false;
    meet(&r);
    call_tool(&r, "far__t");
    WAIT(r.loop, r.n_done == 2);
    assert_int_equal(r.outcome.kind, OUTCOME_RESULT);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_and_its_answer),
        cmocka_unit_test(test_the_bus_away_for_a_while_changes_nothing),
        cmocka_unit_test(test_the_bus_away_for_good),
        cmocka_unit_test(test_a_cancelled_call),
        cmocka_unit_test(test_cancelled_at_once),
        cmocka_unit_test(test_stopped_with_a_call_open),
        cmocka_unit_test(test_nobody_answers),
        cmocka_unit_test(test_a_request_that_took_long),
        cmocka_unit_test(test_too_large_a_request),
        cmocka_unit_test(test_removed_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
