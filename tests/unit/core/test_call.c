#include "stage.h"

/* One provider that is up, with a read-only tool and one that is not, and a client. */
struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
    struct policy *policy;
};

static void begin_down(struct fixture *x)
{
    stage_init(&x->stage);
    x->view = view_new("test", "{server}__{tool}");
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    x->policy = &x->fake.core.policy;
}

static void begin(struct fixture *x)
{
    begin_down(x);
    fake_ready(&x->fake, "write read+ro");
    x->stage.account.n = 0;
}

static void end(struct fixture *x)
{
    x->ann.in_done = NULL;
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

/* --- opening and ending --- */

static void test_a_call_is_opened_and_done(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *c = client_open(&x.ann, "f__write");
    assert_account(&x.stage, "f open 1 write\n");
    assert_ptr_equal(router_find(x.stage.router, 1), c);
    assert_ptr_equal(c->consumer_data, &x.ann);
    assert_int_equal(router_call_count(x.stage.router), 1);
    finish_call(c, "{\"x\":1}");
    assert_account(&x.stage, "ann done 1 {\"x\":1}\n");
    assert_null(router_find(x.stage.router, 1));

    c = client_open(&x.ann, "f__write");
    call_done(c, &(struct outcome){.kind = OUTCOME_ERROR, .body = SPAN("{\"code\":1}")});
    assert_account(&x.stage, "f open 2 write\nann done 2 error {\"code\":1}\n");
    end(&x);
}

static void test_an_unknown_name_is_refused_at_once(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    assert_null(client_open(&x.ann, "f__nothing"));
    assert_account(&x.stage, "ann done 1 unknown\n");
    assert_int_equal(router_call_count(x.stage.router), 0);
    assert_int_equal(router_stats(x.stage.router)->failed[FAIL_UNKNOWN], 1);
    end(&x);
}

static void finish_in_open(struct fake *f, struct call *c, const struct request *request)
{
    (void)f, (void)request;
    finish_call(c, "at once");
}

static void test_done_inside_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.in_open = finish_in_open;
    assert_null(client_open(&x.ann, "f__write"));
    assert_account(&x.stage, "f open 1 write\nann done 1 at once\n");
    end(&x);
}

static void check_request(struct fake *f, struct call *c, const struct request *request)
{
    assert_int_equal(request->op, OP_CALL_TOOL);
    assert_span(request->name, "write");
    assert_span(request->params, "{\"name\":\"f__write\",\"_meta\":{}}");
    assert_span(span_cut(request->params, request->name_at.at, request->name_at.n), "\"f__write\"");
    assert_span(span_cut(request->params, request->meta_at.at, request->meta_at.n), "{}");
    assert_span(request->meta_keep, "\"k\":1");
    assert_span(request->log_level, "debug");
    assert_int_equal(request->answers, ANSWERS_ROOTS);
    assert_true(request->wants_progress);
    (void)f, (void)c;
}

/* The provider gets the same request, at once or after the call had to wait in the router. */
static void test_a_request_survives_waiting(void **state)
{
    struct fixture x;

    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        char params[] = "{\"name\":\"f__write\",\"_meta\":{}}", name[] = "f__write";
        char keep[] = "\"k\":1", level[] = "debug";
        begin(&x);
        if (waits)
            provider_lost(&x.fake.core, "gone");
        x.fake.in_open = check_request;
        call_open(x.stage.router, &x.ann.peer, x.view,
                  &(struct request){.op = OP_CALL_TOOL,
                                    .name = span_str(name),
                                    .params = span_str(params),
                                    .name_at = {8, 10},
                                    .meta_at = {27, 2},
                                    .meta_keep = span_str(keep),
                                    .log_level = span_str(level),
                                    .answers = ANSWERS_ROOTS,
                                    .wants_progress = true},
                  NULL);
        memset(params, 'x', sizeof params);
        memset(name, 'x', sizeof name);
        memset(keep, 'x', sizeof keep);
        memset(level, 'x', sizeof level);
        if (waits) {
            stage_wait(&x.stage, 500);
            provider_up(&x.fake.core);
        }
        assert_int_equal(x.fake.core.n_open, 1);
        end(&x);
    }
}

static void test_events_come_before_done(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.wants_progress = true;
    struct call *c = client_open(&x.ann, "f__write");
    call_event(c, &(struct event){.kind = EVENT_PROGRESS, .params = SPAN("{1}")});
    call_event(c, &(struct event){.kind = EVENT_LOG, .params = SPAN("{2}")});
    call_event(c, &(struct event){.kind = EVENT_OTHER, .params = SPAN("{3}")});
    finish_call(c, "end");
    assert_account(&x.stage, "f open 1 write\nann progress 1 {1}\nann log 1 {2}\n"
                             "ann other 1 {3}\nann done 1 end\n");
    end(&x);
}

static void test_progress_only_for_those_who_want_it(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *c = client_open(&x.ann, "f__write");
    call_event(c, &(struct event){.kind = EVENT_PROGRESS});
    call_event(c, &(struct event){.kind = EVENT_LOG});
    finish_call(c, "end");
    assert_account(&x.stage, "f open 1 write\nann log 1\nann done 1 end\n");
    end(&x);
}

/* --- cancel and deadline --- */

static void test_cancel_reaches_the_provider(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    call_cancel(client_open(&x.ann, "f__write"), FAIL_CANCELLED);
    assert_account(&x.stage, "f open 1 write\nf cancel 1 cancelled\nann done 1 cancelled\n");
    end(&x);
}

static void test_cancel_of_one_that_waits_does_not(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    struct call *first = client_open(&x.ann, "f__write");
    call_cancel(client_open(&x.ann, "f__write"), FAIL_CANCELLED);
    finish_call(first, "fine");
    assert_account(&x.stage, "f open 1 write\nann done 2 cancelled\nann done 1 fine\n");
    end(&x);
}

static void test_who_leaves_cancels_everything(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    router_attach(x.stage.router, &x.ann.peer, x.view, 0, NULL);
    client_open(&x.ann, "f__write");
    client_open(&x.ann, "f__write");
    call_cancel_all(&x.ann.peer);
    /* The slot of 2 goes to 3 before 3 is cancelled as well. */
    assert_account(&x.stage, "f open 2 write\nann done 1 cancelled\n"
                             "f cancel 2 cancelled\nann done 2 cancelled\nf open 3 write\n"
                             "f cancel 3 cancelled\nann done 3 cancelled\n");
    assert_int_equal(router_call_count(x.stage.router), 0);
    end(&x);
}

static void test_the_deadline_ends_it(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    client_open(&x.ann, "f__write");
    client_open(&x.ann, "f__read");
    stage_wait(&x.stage, 99);
    assert_account(&x.stage, "f open 1 write\nf open 2 read\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "f cancel 1 timeout\nann done 1 timeout\n"
                             "f cancel 2 timeout\nann done 2 timeout (retryable)\n");
    end(&x);
}

static void test_a_request_may_bring_its_own_deadline(void **state)
{
    struct fixture x;
    struct request request = {
        .op = OP_CALL_TOOL, .name = SPAN("f__write"), .params = SPAN("{}"), .timeout = 300};

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    call_open(x.stage.router, &x.ann.peer, x.view, &request, &x.ann);
    stage_wait(&x.stage, 299);
    assert_account(&x.stage, "f open 1 write\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "f cancel 1 timeout\nann done 1 timeout\n");
    end(&x);
}

static void test_waiting_counts(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    x.policy->concurrency = 1;
    struct call *first = client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 50);
    client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 49);
    finish_call(first, "fine");
    assert_account(&x.stage, "f open 1 write\nann done 1 fine\nf open 2 write\n");
    stage_wait(&x.stage, 51);
    assert_account(&x.stage, "f cancel 2 timeout\nann done 2 timeout\n");
    end(&x);
}

/*
 * Calls that waited for a stuck call reached their deadlines together with it. The slot of the
 * first was given to the next call, whose timer fired right after: its tool was called for nothing,
 * and the call could no longer end as retryable.
 */
static void test_a_late_call_is_not_handed_over(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    x.policy->concurrency = 1;
    client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 1);
    client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 1);
    client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 99); /* the deadlines of the first two pass at once */
    assert_account(&x.stage, "f open 1 write\nf cancel 1 timeout\nann done 1 timeout\n"
                             "ann done 2 timeout (retryable)\nf open 3 write\n");
    end(&x);
}

/* A call that only waited was never sent: retrying it is safe whatever the tool does. */
static void test_a_deadline_in_line_is_retryable(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    provider_unwant(&x.fake.core);
    client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 100);
    assert_account(&x.stage, "f stop\nann done 1 timeout (retryable)\n");
    end(&x);
}

static void test_progress_may_extend_the_deadline(void **state)
{
    struct fixture x;

    (void)state;
    for (int extends = 0; extends < 2; extends++) {
        begin(&x);
        x.policy->timeout = 100;
        x.policy->progress_extends = extends;
        struct call *c = client_open(&x.ann, "f__write");
        stage_wait(&x.stage, 60);
        call_event(c, &(struct event){.kind = EVENT_PROGRESS});
        stage_wait(&x.stage, 60);
        assert_int_equal(router_call_count(x.stage.router), extends ? 1 : 0);
        stage_wait(&x.stage, 40);
        assert_int_equal(router_call_count(x.stage.router), 0);
        end(&x);
    }
}

/* Progress extends the deadline only up to timeout_max. */
static void test_progress_extends_up_to_a_bound(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    x.policy->progress_extends = true;
    x.policy->timeout_max = 250;
    struct call *c = client_open(&x.ann, "f__write");
    for (int i = 0; i < 4; i++) {
        stage_wait(&x.stage, 60);
        call_event(c, &(struct event){.kind = EVENT_PROGRESS});
    }
    assert_int_equal(router_call_count(x.stage.router), 1);
    stage_wait(&x.stage, 10);
    assert_int_equal(router_call_count(x.stage.router), 0);
    end(&x);
}

static void test_no_deadline(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 0;
    client_open(&x.ann, "f__write");
    stage_wait(&x.stage, 1000ull * 1000 * 1000);
    assert_int_equal(router_call_count(x.stage.router), 1);
    end(&x);
}

/* --- slots and the queue --- */

static void test_no_more_at_once_than_allowed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 2;
    struct call *calls[4];
    for (int i = 0; i < 4; i++)
        calls[i] = client_open(&x.ann, "f__write");
    assert_account(&x.stage, "f open 1 write\nf open 2 write\n");
    assert_int_equal(x.fake.core.n_waiting, 2);
    finish_call(calls[1], "b");
    assert_account(&x.stage, "ann done 2 b\nf open 3 write\n");
    call_cancel(calls[0], FAIL_CANCELLED);
    assert_account(&x.stage, "f cancel 1 cancelled\nann done 1 cancelled\nf open 4 write\n");
    finish_call(calls[2], "c");
    finish_call(calls[3], "d");
    assert_account(&x.stage, "ann done 3 c\nann done 4 d\n");
    end(&x);
}

static void test_a_full_queue_refuses(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    x.policy->queue = 2;
    for (int i = 0; i < 4; i++)
        client_open(&x.ann, "f__write");
    assert_account(&x.stage, "f open 1 write\nann done 4 busy (retryable)\n");
    assert_int_equal(x.fake.core.n_waiting, 2);
    end(&x);
}

/*
 * With `queue: 0` no call may wait, not even for the start, so a lazy server without a queue was
 * never started: every call was refused before it could start the server.
 */
static void test_without_a_queue_a_call_still_wakes(void **state)
{
    struct fixture x;

    (void)state;
    begin_down(&x);
    x.policy->queue = 0;
    fake_publish(&x.fake, "write");
    client_open(&x.ann, "f__write");
    assert_account(&x.stage, "ann done 1 busy (retryable)\nf start\n");
    provider_up(&x.fake.core);
    client_open(&x.ann, "f__write");
    assert_account(&x.stage, "f open 2 write\n");
    end(&x);
}

/*
 * When a provider answered inside `open`, the next waiting call was opened from inside the end of
 * the previous one, and so on: a long queue overflowed the stack.
 */
static void test_a_long_queue_is_not_a_deep_stack(void **state)
{
    enum { CALLS = 100 * 1000 };
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    x.policy->queue = CALLS;
    struct call *first = client_open(&x.ann, "f__write");
    for (int i = 0; i < CALLS; i++)
        client_open(&x.ann, "f__write");
    x.fake.in_open = finish_in_open;
    finish_call(first, "go");
    assert_int_equal(router_call_count(x.stage.router), 0);
    assert_int_equal(x.fake.core.stats.results, CALLS + 1);
    end(&x);
}

static void open_in_done(struct client *c, const struct outcome *outcome)
{
    (void)outcome;
    c->in_done = NULL;
    client_open(c, "f__read");
}

/* A call opened inside `done` comes after the calls that already waited. */
static void test_open_inside_done(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    struct call *first = client_open(&x.ann, "f__write");
    client_open(&x.ann, "f__write");
    x.ann.in_done = open_in_done;
    finish_call(first, "a");
    assert_account(&x.stage, "f open 1 write\nann done 1 a\nf open 2 write\n");
    assert_int_equal(x.fake.core.n_waiting, 1);
    end(&x);
}

static void test_the_sole_call(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    assert_null(ask_sole_call(&x.fake.core));
    struct call *a = client_open(&x.ann, "f__write");
    assert_ptr_equal(ask_sole_call(&x.fake.core), a);
    struct call *b = client_open(&x.ann, "f__write");
    assert_null(ask_sole_call(&x.fake.core));
    finish_call(a, "");
    assert_ptr_equal(ask_sole_call(&x.fake.core), b);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_is_opened_and_done),
        cmocka_unit_test(test_an_unknown_name_is_refused_at_once),
        cmocka_unit_test(test_done_inside_open),
        cmocka_unit_test(test_a_request_survives_waiting),
        cmocka_unit_test(test_events_come_before_done),
        cmocka_unit_test(test_progress_only_for_those_who_want_it),
        cmocka_unit_test(test_cancel_reaches_the_provider),
        cmocka_unit_test(test_cancel_of_one_that_waits_does_not),
        cmocka_unit_test(test_who_leaves_cancels_everything),
        cmocka_unit_test(test_the_deadline_ends_it),
        cmocka_unit_test(test_a_request_may_bring_its_own_deadline),
        cmocka_unit_test(test_waiting_counts),
        cmocka_unit_test(test_a_late_call_is_not_handed_over),
        cmocka_unit_test(test_a_deadline_in_line_is_retryable),
        cmocka_unit_test(test_progress_may_extend_the_deadline),
        cmocka_unit_test(test_progress_extends_up_to_a_bound),
        cmocka_unit_test(test_no_deadline),
        cmocka_unit_test(test_no_more_at_once_than_allowed),
        cmocka_unit_test(test_a_full_queue_refuses),
        cmocka_unit_test(test_without_a_queue_a_call_still_wakes),
        cmocka_unit_test(test_a_long_queue_is_not_a_deep_stack),
        cmocka_unit_test(test_open_inside_done),
        cmocka_unit_test(test_the_sole_call),
    };
    return cmocka_run_group_tests_name("core/call", tests, NULL, NULL);
}
