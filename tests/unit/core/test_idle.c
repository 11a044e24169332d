/* Providers that are stopped while idle, and those that are stopped by hand. */
#include "core/subscriptions.h"
#include "stage.h"

struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
};

static void begin(struct fixture *x, bool eager)
{
    stage_init(&x->stage);
    x->view = view_new("test", NULL);
    fake_init(&x->fake, &x->stage, "f");
    x->fake.core.policy.eager = eager;
    x->fake.core.policy.idle_stop = 1000;
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    fake_ready(&x->fake, "read r:file:///x");
    x->stage.account.n = 0;
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

static void test_it_rests_and_is_woken_by_a_call(void **state)
{
    for (int eager = 0; eager < 2; eager++) {
        struct fixture x;
        (void)state;
        begin(&x, eager);
        router_attach(x.stage.router, &x.ann.peer, x.view, 0, &x.ann);
        stage_wait(&x.stage, 999);
        assert_int_equal(x.fake.core.state, PROVIDER_READY);
        stage_wait(&x.stage, 1);
        assert_int_equal(x.fake.core.state, PROVIDER_STOPPING);
        provider_lost(&x.fake.core, "exited with 0");
        assert_int_equal(x.fake.core.state, PROVIDER_DOWN);
        /* No list change is sent: the provider's tools can still be called. */
        assert_account(&x.stage, "f stop\n");
        assert_true(provider_advertised(&x.fake.core));
        struct call *c = client_open(&x.ann, "read");
        provider_up(&x.fake.core);
        finish_call(c, "here");
        assert_account(&x.stage, "f start\nf open 2 read\nann done 2 here\n");
        end(&x);
    }
}

static void test_a_call_while_it_goes_to_rest(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    stage_wait(&x.stage, 1000);
    client_open(&x.ann, "read");
    provider_lost(&x.fake.core, "exited with 0");
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f stop\nf start\nf open 1 read\n");
    end(&x);
}

static void test_use_keeps_it_awake(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    stage_wait(&x.stage, 700);
    struct call *c = client_open(&x.ann, "read");
    stage_wait(&x.stage, 5000);
    assert_int_equal(x.fake.core.state, PROVIDER_READY);
    finish_call(c, "slow");
    /* The idle time counts from the end of the last call, to the millisecond. */
    stage_wait(&x.stage, 999);
    assert_int_equal(x.fake.core.state, PROVIDER_READY);
    stage_wait(&x.stage, 1);
    assert_int_equal(x.fake.core.state, PROVIDER_STOPPING);
    end(&x);
}

static void test_a_subscription_keeps_it_awake(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    struct call *standing = router_attach(x.stage.router, &x.ann.peer, x.view, 0, &x.ann);
    subscriptions_note(standing, &x.fake.core, SPAN("file:///x"), SPAN("file:///x"));
    stage_wait(&x.stage, 10 * 1000);
    assert_int_equal(x.fake.core.state, PROVIDER_READY);
    subscriptions_remove(standing, SPAN("file:///x"));
    stage_wait(&x.stage, 1000);
    assert_int_equal(x.fake.core.state, PROVIDER_STOPPING);
    end(&x);
}

/* Code that removes a provider waits for `stopped`, which an idle stop does not report. */
static void test_resting_is_not_being_stopped(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    x.fake.lost_in_stop = true;
    stage_wait(&x.stage, 1000);
    assert_account(&x.stage, "f stop\n");
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "f stopped\n");
    provider_want(&x.fake.core);
    provider_up(&x.fake.core);
    x.fake.lost_in_stop = false;
    stage_wait(&x.stage, 1000);
    provider_unwant(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 0");
    assert_account(&x.stage, "f start\nf stop\nf stopped\n");
    end(&x);
}

/* --- by hand --- */

static void test_stopped_by_hand_it_stays_down(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    client_open(&x.ann, "read");
    provider_halt(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 0");
    assert_account(&x.stage, "f open 1 read\nf cancel 1 shutdown\nann done 1 shutdown\nf stop\n"
                             "f stopped\n");
    assert_false(provider_advertised(&x.fake.core));
    provider_want(&x.fake.core);
    assert_null(client_open(&x.ann, "read"));
    assert_account(&x.stage, "ann done 2 unavailable\n");
    provider_resume(&x.fake.core);
    provider_up(&x.fake.core);
    client_open(&x.ann, "read");
    assert_account(&x.stage, "f start\nf open 3 read\n");
    end(&x);
}

static void test_started_by_hand_it_has_never_failed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    x.fake.core.policy.restart_limit = 1;
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 60 * 1000);
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(x.fake.core.state, PROVIDER_DOWN);
    provider_resume(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(x.fake.core.state, PROVIDER_BACKOFF);
    end(&x);
}

static void test_restarted_by_hand(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    client_open(&x.ann, "read");
    provider_restart(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 0");
    assert_account(&x.stage, "f open 1 read\nf cancel 1 shutdown\nann done 1 shutdown\nf stop\n"
                             "f start\n");
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(x.fake.core.state, PROVIDER_BACKOFF);
    provider_restart(&x.fake.core);
    assert_account(&x.stage, "f stopped\nf start\n");
    end(&x);
}

/* idle_stop was removed from the file, added again and made shorter while the provider was idle:
 * the newest value applies, counted from the last use. */
static void test_other_limits_hold_while_it_runs(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, true);
    struct policy policy = x.fake.core.policy;
    policy.idle_stop = 0;
    provider_adjust(&x.fake.core, &policy);
    stage_wait(&x.stage, 5000);
    assert_int_equal(x.fake.core.state, PROVIDER_READY);
    policy.idle_stop = 9000;
    provider_adjust(&x.fake.core, &policy);
    stage_wait(&x.stage, 2000);
    policy.idle_stop = 8000;
    provider_adjust(&x.fake.core, &policy);
    stage_wait(&x.stage, 999);
    assert_account(&x.stage, "");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "f stop\n");
    provider_lost(&x.fake.core, "exited with 0");
    provider_adjust(&x.fake.core, &policy); /* the provider is down: no timer is needed */
    assert_int_equal(x.stage.timers.n, 0);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_rests_and_is_woken_by_a_call),
        cmocka_unit_test(test_a_call_while_it_goes_to_rest),
        cmocka_unit_test(test_use_keeps_it_awake),
        cmocka_unit_test(test_a_subscription_keeps_it_awake),
        cmocka_unit_test(test_resting_is_not_being_stopped),
        cmocka_unit_test(test_stopped_by_hand_it_stays_down),
        cmocka_unit_test(test_started_by_hand_it_has_never_failed),
        cmocka_unit_test(test_restarted_by_hand),
        cmocka_unit_test(test_other_limits_hold_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
