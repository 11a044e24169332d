#include "stage.h"

/* One provider with one tool, and a client with a view of it. */
struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
};

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->view = view_new("test", NULL);
    fake_init(&x->fake, &x->stage, "files");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
}

static void end(struct fixture *x)
{
    x->ann.in_done = NULL;
    x->ann.in_event = NULL;
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

static void bring_to(struct fixture *x, enum provider_state state)
{
    struct provider *p = &x->fake.core;

    if (state != PROVIDER_DOWN)
        provider_want(p);
    fake_publish(&x->fake, "read");
    if (state == PROVIDER_READY || state == PROVIDER_BACKOFF || state == PROVIDER_STOPPING)
        provider_up(p);
    if (state == PROVIDER_BACKOFF)
        provider_lost(p, "exited with 1");
    if (state == PROVIDER_STOPPING)
        provider_unwant(p);
    assert_int_equal(p->state, state);
    x->stage.account.n = 0;
}

static void happen(struct provider *p, enum provider_event event)
{
    switch (event) {
    case PROVIDER_WANTED:
        provider_want(p);
        break;
    case PROVIDER_UP:
        provider_up(p);
        break;
    case PROVIDER_LOST:
        provider_lost(p, "lost");
        break;
    case PROVIDER_TIMER:
        p->timer.fire(&p->timer);
        break;
    case PROVIDER_IDLE:
        p->idle.fire(&p->idle);
        break;
    case PROVIDER_UNWANTED:
        provider_unwant(p);
        break;
    case PROVIDER_EVENTS:
        break;
    }
}

/* Every cell of the table: the next state, and the callbacks to the family and the bridge. */
static const struct {
    enum provider_state from;
    enum provider_event event;
    enum provider_state to;
    const char *account;
} cells[] = {
    {PROVIDER_DOWN, PROVIDER_WANTED, PROVIDER_STARTING, "files start\n"},
    {PROVIDER_DOWN, PROVIDER_UP, PROVIDER_DOWN, ""},
    {PROVIDER_DOWN, PROVIDER_LOST, PROVIDER_DOWN, ""},
    {PROVIDER_DOWN, PROVIDER_TIMER, PROVIDER_DOWN, ""},
    {PROVIDER_DOWN, PROVIDER_IDLE, PROVIDER_DOWN, ""},
    {PROVIDER_DOWN, PROVIDER_UNWANTED, PROVIDER_DOWN, "files stopped\n"},
    {PROVIDER_STARTING, PROVIDER_WANTED, PROVIDER_STARTING, ""},
    {PROVIDER_STARTING, PROVIDER_UP, PROVIDER_READY, ""},
    {PROVIDER_STARTING, PROVIDER_LOST, PROVIDER_BACKOFF, ""},
    {PROVIDER_STARTING, PROVIDER_TIMER, PROVIDER_STOPPING, "files stop\n"},
    {PROVIDER_STARTING, PROVIDER_IDLE, PROVIDER_STARTING, ""},
    {PROVIDER_STARTING, PROVIDER_UNWANTED, PROVIDER_STOPPING, "files stop\n"},
    {PROVIDER_READY, PROVIDER_WANTED, PROVIDER_READY, ""},
    {PROVIDER_READY, PROVIDER_UP, PROVIDER_READY, ""},
    {PROVIDER_READY, PROVIDER_LOST, PROVIDER_BACKOFF, ""},
    {PROVIDER_READY, PROVIDER_TIMER, PROVIDER_READY, ""},
    {PROVIDER_READY, PROVIDER_IDLE, PROVIDER_STOPPING, "files stop\n"},
    {PROVIDER_READY, PROVIDER_UNWANTED, PROVIDER_STOPPING, "files stop\n"},
    /* Ends the backoff only if the last start is not too recent: see test_wanting_wakes_it. */
    {PROVIDER_BACKOFF, PROVIDER_WANTED, PROVIDER_BACKOFF, ""},
    {PROVIDER_BACKOFF, PROVIDER_UP, PROVIDER_BACKOFF, ""},
    {PROVIDER_BACKOFF, PROVIDER_LOST, PROVIDER_BACKOFF, ""},
    {PROVIDER_BACKOFF, PROVIDER_TIMER, PROVIDER_STARTING, "files start\n"},
    {PROVIDER_BACKOFF, PROVIDER_IDLE, PROVIDER_BACKOFF, ""},
    {PROVIDER_BACKOFF, PROVIDER_UNWANTED, PROVIDER_DOWN, "files stopped\n"},
    {PROVIDER_STOPPING, PROVIDER_WANTED, PROVIDER_STOPPING, ""},
    {PROVIDER_STOPPING, PROVIDER_UP, PROVIDER_STOPPING, ""},
    {PROVIDER_STOPPING, PROVIDER_LOST, PROVIDER_DOWN, "files stopped\n"},
    {PROVIDER_STOPPING, PROVIDER_TIMER, PROVIDER_STOPPING, ""},
    {PROVIDER_STOPPING, PROVIDER_IDLE, PROVIDER_STOPPING, ""},
    {PROVIDER_STOPPING, PROVIDER_UNWANTED, PROVIDER_STOPPING, ""},
};

static void test_every_state_meets_every_event(void **state)
{
    bool seen[PROVIDER_STATES][PROVIDER_EVENTS] = {{false}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cells); i++) {
        struct fixture x;
        begin(&x);
        bring_to(&x, cells[i].from);
        happen(&x.fake.core, cells[i].event);
        if (x.fake.core.state != cells[i].to)
            fail_msg("%s, event %d: led to %s", provider_state_name(cells[i].from),
                     (int)cells[i].event, provider_state_name(x.fake.core.state));
        assert_account(&x.stage, cells[i].account);
        /* The timer is set exactly in the states that have a timeout. */
        bool timed = cells[i].to == PROVIDER_STARTING || cells[i].to == PROVIDER_BACKOFF;
        assert_int_equal(timer_is_set(&x.fake.core.timer), timed);
        seen[cells[i].from][cells[i].event] = true;
        end(&x);
    }
    for (int s = 0; s < PROVIDER_STATES; s++)
        for (int e = 0; e < PROVIDER_EVENTS; e++)
            assert_true(seen[s][e]);
}

static void test_states_have_names(void **state)
{
    (void)state;
    assert_string_equal(provider_state_name(PROVIDER_DOWN), "down");
    assert_string_equal(provider_state_name(PROVIDER_STARTING), "starting");
    assert_string_equal(provider_state_name(PROVIDER_READY), "ready");
    assert_string_equal(provider_state_name(PROVIDER_BACKOFF), "backoff");
    assert_string_equal(provider_state_name(PROVIDER_STOPPING), "stopping");
}

static void test_a_slow_start_is_stopped_and_tried_again(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.start_timeout = 100;
    provider_want(&x.fake.core);
    stage_wait(&x.stage, 99);
    assert_account(&x.stage, "files start\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "files stop\n");
    assert_string_equal(x.fake.core.why, "was not ready within 100 ms");
    provider_lost(&x.fake.core, "killed"); /* does not replace the real reason */
    assert_string_equal(x.fake.core.why, "was not ready within 100 ms");
    assert_int_equal(x.fake.core.state, PROVIDER_BACKOFF);
    assert_int_equal(x.fake.core.backoff.failures, 1);
    stage_wait(&x.stage, 500);
    assert_account(&x.stage, "files start\n");
    end(&x);
}

static void test_no_start_timeout(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.start_timeout = 0;
    provider_want(&x.fake.core);
    stage_wait(&x.stage, 1000 * 1000);
    assert_int_equal(x.fake.core.state, PROVIDER_STARTING);
    end(&x);
}

static void test_a_slow_start_that_nobody_wants_any_more(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    provider_want(&x.fake.core);
    stage_wait(&x.stage, x.fake.core.policy.start_timeout);
    provider_unwant(&x.fake.core);
    provider_lost(&x.fake.core, "killed");
    assert_account(&x.stage, "files start\nfiles stop\nfiles stopped\n");
    assert_int_equal(x.fake.core.state, PROVIDER_DOWN);
    end(&x);
}

static void test_failures_are_forgotten_after_a_while(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.settle = 1000;
    for (unsigned i = 1; i <= 3; i++) {
        fake_ready(&x.fake, "read");
        stage_wait(&x.stage, 999);
        provider_lost(&x.fake.core, "exited with 1");
        assert_int_equal(x.fake.core.backoff.failures, i);
    }
    fake_ready(&x.fake, "read");
    assert_null(x.fake.core.why);
    stage_wait(&x.stage, 1000);
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(x.fake.core.backoff.failures, 1);
    /* Failures are also forgotten if the provider is stopped after that time. */
    fake_ready(&x.fake, "read");
    stage_wait(&x.stage, 1000);
    provider_unwant(&x.fake.core);
    assert_int_equal(x.fake.core.backoff.failures, 0);
    end(&x);
}

static void test_it_stays_down_after_too_many_failures(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.restart_limit = 2;
    provider_want(&x.fake.core);
    for (int i = 0; i < 2; i++) {
        provider_lost(&x.fake.core, "exited with 1");
        assert_int_equal(x.fake.core.state, PROVIDER_BACKOFF);
        stage_wait(&x.stage, 60 * 1000);
    }
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(x.fake.core.state, PROVIDER_DOWN);
    stage_wait(&x.stage, 1000 * 1000);
    assert_account(&x.stage, "files start\nfiles start\nfiles start\n");
    provider_want(&x.fake.core);
    assert_account(&x.stage, "files start\n");
    end(&x);
}

/*
 * The backoff times were copied when the provider was created, before its configuration was known:
 * the defaults were used whatever the policy said.
 */
static void test_the_policy_decides_how_long_it_backs_off(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.backoff_first = 20 * 1000;
    x.fake.core.policy.backoff_max = 20 * 1000;
    provider_want(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "files start\n");
    stage_wait(&x.stage, 9999); /* each wait is between half of the step and the whole step */
    assert_account(&x.stage, "");
    stage_wait(&x.stage, 10001);
    assert_account(&x.stage, "files start\n");
    end(&x);
}

/* A call ends a long backoff early, but calls cannot cause restarts without a pause. */
static void test_wanting_wakes_it(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.backoff_first = x.fake.core.policy.backoff_max = 100 * 1000;
    provider_want(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 1");
    provider_want(&x.fake.core);
    provider_want(&x.fake.core);
    stage_wait(&x.stage, 249);
    assert_account(&x.stage, "files start\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "files start\n");
    stage_wait(&x.stage, 250);
    provider_lost(&x.fake.core, "exited with 1");
    provider_want(&x.fake.core);
    assert_account(&x.stage, "files start\n");
    end(&x);
}

static void test_a_short_backoff_is_not_made_longer_by_waking(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.backoff_first = x.fake.core.policy.backoff_max = 10;
    provider_want(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 1");
    provider_want(&x.fake.core);
    assert_account(&x.stage, "files start\n");
    stage_wait(&x.stage, 10);
    assert_account(&x.stage, "files start\n");
    end(&x);
}

/*
 * A provider that was wanted again while it was stopping (by a restart, or by a call just after an
 * idle stop) was treated as if its start had failed: a failure was counted, waiting calls ended as
 * "not available", and it waited for a backoff. It must simply be started again.
 */
static void test_wanted_again_while_stopping(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.fake, "read");
    provider_unwant(&x.fake.core);
    client_open(&x.ann, "read");
    provider_lost(&x.fake.core, "exited with 0");
    assert_account(&x.stage, "files start\nfiles stop\nfiles start\n");
    assert_int_equal(x.fake.core.backoff.failures, 0);
    provider_up(&x.fake.core);
    finish_call(x.ann.last, "fine");
    assert_account(&x.stage, "files open 1 read\nann done 1 fine\n");
    end(&x);
}

/*
 * A call came while the provider was stopping, and then the provider was stopped once more, for
 * good. The call waited for a start that never came: it hung until its deadline, or for ever, and
 * pointed to a provider that was about to be freed.
 */
static void test_stopped_for_good_while_a_call_hopes(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.timeout = 0;
    fake_ready(&x.fake, "read");
    provider_unwant(&x.fake.core);
    client_open(&x.ann, "read");
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "files start\nfiles stop\nann done 1 shutdown (retryable)\n");
    provider_lost(&x.fake.core, "exited with 0");
    assert_account(&x.stage, "files stopped\n");
    end(&x);
}

static void open_again(struct client *c, const struct outcome *outcome)
{
    (void)outcome;
    c->in_done = NULL;
    client_open(c, "read");
}

/* `stopped` was called although the client had started the provider again inside `done` of a
 * waiting call. */
static void test_not_stopped_if_started_again_meanwhile(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.fake, "read");
    provider_lost(&x.fake.core, "exited with 1");
    client_open(&x.ann, "read");
    x.ann.in_done = open_again;
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "files start\nann done 1 shutdown (retryable)\nfiles start\n");
    end(&x);
}

static void test_stop_may_end_at_once(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.lost_in_stop = true;
    fake_ready(&x.fake, "read");
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "files start\nfiles stop\nfiles stopped\n");
    end(&x);
}

static void test_start_may_be_up_at_once(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_publish(&x.fake, "read");
    x.fake.up_in_start = true;
    client_open(&x.ann, "read");
    assert_account(&x.stage, "files start\nfiles open 1 read\n");
    end(&x);
}

/* --- lazy providers --- */

static void test_what_is_advertised(void **state)
{
    struct fixture x;
    struct provider *p = &x.fake.core;

    (void)state;
    begin(&x);
    assert_false(provider_advertised(p));
    fake_publish(&x.fake, "read");
    assert_false(provider_advertised(p)); /* an eager provider only while it runs */
    p->policy.eager = false;
    assert_true(provider_advertised(p));
    provider_want(p);
    assert_true(provider_advertised(p)); /* the tools stay listed while it starts */
    provider_lost(p, "exited with 1");
    assert_false(provider_advertised(p)); /* the start failed */
    stage_wait(&x.stage, 500);
    assert_false(provider_advertised(p));
    provider_up(p);
    assert_true(provider_advertised(p));
    end(&x);
}

/* A server whose last catalog is remembered is listed while it starts. */
static void test_what_is_remembered_is_advertised_until_it_fails(void **state)
{
    struct fixture x;
    struct provider *p = &x.fake.core;

    (void)state;
    begin(&x);
    provider_recall(p, catalog_new());
    assert_true(provider_advertised(p));
    provider_want(p);
    assert_true(provider_advertised(p));
    fake_publish(&x.fake, "read");
    assert_true(provider_advertised(p)); /* the tools stay listed while it starts */
    provider_up(p);
    assert_true(provider_advertised(p));
    provider_lost(p, "exited with 1");
    assert_false(provider_advertised(p)); /* as any provider that has failed */
    stage_wait(&x.stage, 500);
    assert_false(provider_advertised(p));
    end(&x);

    begin(&x);
    provider_recall(p, catalog_new());
    provider_want(p);
    provider_lost(p, "no such program");
    assert_false(provider_advertised(p));
    end(&x);
}

/*
 * A hundred servers with a thousand remembered tools each took ten times as long to start as
 * without memory: for each server that started, listed the same tools and was ready, the list of
 * all tools was built again. The list must not be built again if nothing differs: the test puts a
 * mark into the catalog that a new list would show.
 */
static void test_a_remembered_one_that_lists_the_same_builds_no_list_again(void **state)
{
    struct fixture x;
    struct provider *p = &x.fake.core;

    (void)state;
    begin(&x);
    provider_recall(p, catalog_of_words("read"));
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"read\"}]");
    p->catalog->items[ITEM_TOOL][0].raw = SPAN("{\"name\":\"mark\"}");
    provider_want(p);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"read\"}]");
    p->catalog->items[ITEM_TOOL][0].raw = SPAN("{\"name\":\"read\"}");
    uint64_t generation = p->catalog->generation;
    fake_publish(&x.fake, "read");
    assert_true(p->catalog->generation >
                generation); /* code that waits for the lists sees that they arrived */
    p->catalog->items[ITEM_TOOL][0].raw = SPAN("{\"name\":\"mark\"}");
    provider_up(p);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"read\"}]");
    end(&x);

    /* A provider that lists something else gets a new list. */
    begin(&x);
    provider_recall(p, catalog_of_words("read"));
    provider_want(p);
    fake_publish(&x.fake, "write");
    provider_up(p);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"write\"}]");
    end(&x);
}

/*
 * A lazy server that was stopped disappeared from the lists: first because it was stopping and not
 * ready, then because "exited with 0" counted as a failure, and the lists were not built again when
 * it was down. Stopping a lazy server must not be a list change.
 */
static void test_a_lazy_one_put_to_rest_stays_listed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.eager = false;
    fake_ready(&x.fake, "read");
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    provider_unwant(&x.fake.core);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"read\"}]");
    provider_lost(&x.fake.core, "exited with 0");
    assert_account(&x.stage, "files start\nfiles stop\nfiles stopped\n");
    view_touch(&x.fake.core);
    assert_span(view_list(x.view, ITEM_TOOL), "[{\"name\":\"read\"}]");
    client_open(&x.ann, "read");
    provider_up(&x.fake.core);
    assert_account(&x.stage, "files start\nfiles open 2 read\n");
    end(&x);
}

/* A lazy server whose start fails is removed from the list, and listed again when it is up. */
static void test_a_lazy_one_that_cannot_start_is_not_listed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.eager = false;
    fake_publish(&x.fake, "read");
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    provider_want(&x.fake.core);
    assert_account(&x.stage, "files start\n");
    provider_lost(&x.fake.core, "no such file");
    assert_account(&x.stage, "ann changed 1 tools\n");
    stage_wait(&x.stage, 500);
    provider_up(&x.fake.core);
    assert_account(&x.stage, "files start\nann changed 1 tools\n");
    end(&x);
}

static void test_a_lazy_one_too_slow_is_not_listed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.eager = false;
    fake_publish(&x.fake, "read");
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    provider_want(&x.fake.core);
    stage_wait(&x.stage, x.fake.core.policy.start_timeout);
    assert_account(&x.stage, "files start\nann changed 1 tools\nfiles stop\n");
    end(&x);
}

/* --- what may happen inside an event --- */

static void call_it(struct client *c, struct call *call, const struct event *event)
{
    (void)call, (void)event;
    c->in_event = NULL;
    client_open(c, "read");
}

/*
 * When a server crashed, the list change was sent before the backoff was set. A client that called
 * a tool inside that event started the server; then the backoff timer was set all the same, fired
 * during the start, and the start was stopped as too slow.
 */
static void test_a_call_inside_the_change_of_a_crash(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.fake, "read");
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    stage_wait(&x.stage, 1000);
    x.ann.in_event = call_it;
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "files start\nann changed 1 tools\nfiles start\n");
    stage_wait(&x.stage, 29 * 1000);
    assert_int_equal(x.fake.core.state, PROVIDER_STARTING);
    provider_up(&x.fake.core);
    assert_account(&x.stage, "ann changed 1 tools\nfiles open 2 read\n");
    end(&x);
}

static void lose_it(struct fake *f, struct call *c, const struct request *request)
{
    (void)c, (void)request;
    provider_lost(&f->core, "broken pipe");
}

/*
 * A server came up, a client called a tool inside the list change, and the server was lost inside
 * that call. Then the code for "ready" overwrote the backoff timer with its own, and the server was
 * started again after 30 s instead of 0.5 s.
 */
static void test_lost_inside_the_change_of_its_start(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    x.ann.in_event = call_it;
    x.fake.in_open = lose_it;
    fake_ready(&x.fake, "read");
    assert_int_equal(x.fake.core.state, PROVIDER_BACKOFF);
    assert_string_equal(x.fake.core.why, "broken pipe");
    x.stage.account.n = 0;
    stage_wait(&x.stage, 500);
    assert_account(&x.stage, "files start\n");
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_state_meets_every_event),
        cmocka_unit_test(test_states_have_names),
        cmocka_unit_test(test_a_slow_start_is_stopped_and_tried_again),
        cmocka_unit_test(test_no_start_timeout),
        cmocka_unit_test(test_a_slow_start_that_nobody_wants_any_more),
        cmocka_unit_test(test_failures_are_forgotten_after_a_while),
        cmocka_unit_test(test_it_stays_down_after_too_many_failures),
        cmocka_unit_test(test_the_policy_decides_how_long_it_backs_off),
        cmocka_unit_test(test_wanting_wakes_it),
        cmocka_unit_test(test_a_short_backoff_is_not_made_longer_by_waking),
        cmocka_unit_test(test_wanted_again_while_stopping),
        cmocka_unit_test(test_stopped_for_good_while_a_call_hopes),
        cmocka_unit_test(test_not_stopped_if_started_again_meanwhile),
        cmocka_unit_test(test_stop_may_end_at_once),
        cmocka_unit_test(test_start_may_be_up_at_once),
        cmocka_unit_test(test_what_is_advertised),
        cmocka_unit_test(test_what_is_remembered_is_advertised_until_it_fails),
        cmocka_unit_test(test_a_remembered_one_that_lists_the_same_builds_no_list_again),
        cmocka_unit_test(test_a_lazy_one_put_to_rest_stays_listed),
        cmocka_unit_test(test_a_lazy_one_that_cannot_start_is_not_listed),
        cmocka_unit_test(test_a_lazy_one_too_slow_is_not_listed),
        cmocka_unit_test(test_a_call_inside_the_change_of_a_crash),
        cmocka_unit_test(test_lost_inside_the_change_of_its_start),
    };
    return cmocka_run_group_tests_name("core/provider", tests, NULL, NULL);
}
