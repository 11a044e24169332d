/*
 * The proxy: what happens when the bus is lost and comes back, and how calls in flight end.
 */
#include "proxy_rig.h"

static void test_a_call_and_its_answer(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_meet(&r);
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_done == 1);
    assert_string_equal(r.text,
                        "{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"isError\":false}");
    assert_span(message_header(&r.last.m, ROCKBOT_SERVER), "far");
    assert_span(message_header(&r.last.m, ROCKBOT_TIMEOUT), "60000");
    rig_tear_down(&r);
}

static void test_the_bus_away_for_a_while_changes_nothing(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    struct provider *p = rig_meet(&r);
    bus_proxy_down(r.proxy, "a broken wire");
    rig_call(&r, "far__t"); /* is answered: the bus is not really down */
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.kind, OUTCOME_RESULT);
    assert_int_equal(p->state, PROVIDER_READY);
    int before = r.n_refreshes;
    bus_proxy_up(r.proxy);
    WAIT(r.loop, r.n_refreshes > before);
    assert_int_equal(p->state, PROVIDER_READY);
    rig_tear_down(&r);
}

static void test_the_bus_away_for_good(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &(struct bus_proxy_options){.agent = "Me", .patience = 50});
    struct provider *p = rig_meet(&r);
    r.quiet = true;
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    bus_proxy_down(r.proxy, "a broken wire");
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.kind, OUTCOME_FAILED);
    assert_int_equal(r.outcome.why, FAIL_CRASHED);
    assert_false(r.outcome.retryable); /* the call may have run */
    assert_non_null(strstr(r.text, "the bus is away: a broken wire"));
    assert_int_equal(p->state, PROVIDER_BACKOFF);
    /* A call now fails at once with the same reason. */
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_done == 2);
    assert_int_equal(r.outcome.why, FAIL_UNAVAILABLE);
    assert_true(r.outcome.retryable);
    assert_non_null(strstr(r.text, "a broken wire"));
    bus_proxy_up(r.proxy);
    WAIT(r.loop, p->state == PROVIDER_READY);
    rig_tear_down(&r);
}

/* A late answer to a cancelled call is ignored. */
static void test_a_cancelled_call(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_meet(&r);
    r.quiet = true;
    struct call *c = rig_call(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    call_cancel(c, FAIL_CANCELLED);
    assert_int_equal(r.n_done, 1);
    rig_answer_invoke(&r, &r.last.m);
    run_for(r.loop, 50);
    assert_int_equal(r.n_done, 1);
    rig_tear_down(&r);
}

/* A call that is cancelled before the bus has reported that its message was sent. */
static void test_cancelled_at_once(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_meet(&r);
    struct call *c = rig_call(&r, "far__t");
    call_cancel(c, FAIL_CANCELLED);
    assert_int_equal(r.n_done, 1);
    run_for(r.loop, 50);
    rig_tear_down(&r);
}

static void test_stopped_with_a_call_open(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_meet(&r);
    r.quiet = true;
    rig_call(&r, "far__t");
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 2);
    rig_call(&r, "far__t"); /* its message is not sent yet */
    rig_tear_down(&r);
    assert_int_equal(r.n_done, 3);
    assert_int_equal(r.outcome.why, FAIL_SHUTDOWN);
}

/* Without an answer the call ends by our own timeout, and then we check if the bridge is alive. */
static void test_nobody_answers(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &(struct bus_proxy_options){.agent = "Me", .timeout = 60, .margin = 20});
    struct provider *p = rig_meet(&r);
    r.quiet = true;
    int before = r.n_details;
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.why, FAIL_TIMEOUT);
    assert_non_null(strstr(r.text, "timed out"));
    WAIT(r.loop, r.n_details == before + 1);
    run_for(r.loop, 30);
    assert_int_equal(p->state, PROVIDER_READY); /* the bridge has answered */
    rig_tear_down(&r);
}

/*
 * A refresh request waits until the proxy's subscriptions are active. With a slow broker it arrived
 * with an older time stamp, so the bridge thought that the proxy had received its announcement,
 * which it had not, and the proxy had no servers.
 */
static void test_a_request_that_took_long(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    run_for(r.loop, 50);
    int before = r.n_refreshes;
    bus_proxy_down(r.proxy, "a broken wire");
    bus_proxy_up(r.proxy);
    usleep(1100 * 1000);
    WAIT(r.loop, r.n_refreshes == before + 2);
    rig_tear_down(&r);
}

static void test_too_large_a_request(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    r.options.max_message = 40;
    rig_announce(&r, "[]", "[]"); /* too large for the bus, so it is not sent */
    r.options.max_message = 0;
    rig_meet(&r);
    r.options.max_message = 40;
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_done == 1);
    assert_int_equal(r.outcome.why, FAIL_REFUSED);
    assert_non_null(strstr(r.text, "larger than the bus takes (40 bytes)"));
    r.options.max_message = 0;
    rig_tear_down(&r);
}

/* When a server is removed, its calls end; it may come back under the same name. */
static void test_removed_and_back(void **state)
{
    (void)state;
    struct proxy_rig r;

    rig_set_up(&r, &rig_patient);
    rig_meet(&r);
    r.quiet = true;
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_invokes == 1);
    rig_announce(&r, "[]", "[\"FAR\"]");
    WAIT(r.loop, !view_member(r.view, 0));
    assert_int_equal(r.n_done, 1);
    assert_int_equal((int)bus_proxy_servers(r.proxy), 0);
    r.quiet = false;
    rig_meet(&r);
    rig_call(&r, "far__t");
    WAIT(r.loop, r.n_done == 2);
    assert_int_equal(r.outcome.kind, OUTCOME_RESULT);
    rig_tear_down(&r);
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
