/* What happens to calls when their provider crashes, fails to start or is stopped. */
#include "stage.h"

struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
    struct policy *policy;
};

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->view = view_new("test", NULL);
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    x->policy = &x->fake.core.policy;
    fake_ready(&x->fake, "write read+ro r:file:///a");
    stage_wait(&x->stage, 1000);
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

static void test_a_harmless_call_is_sent_again(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "read");
    client_request(&x.ann, OP_READ_RESOURCE, "file:///a");
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 read\nf open 2 file:///a\nf start\n");
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f open 1 read\nf open 2 file:///a\n");
    finish_call(x.ann.last, "fine");
    assert_account(&x.stage, "ann done 2 fine\n");
    assert_int_equal(x.fake.core.stats.retried, 2);
    end(&x);
}

static void test_but_only_once(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "read");
    provider_lost(&x.fake.core, "exited with 1");
    provider_up(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 2");
    assert_account(&x.stage, "f open 1 read\nf start\nf open 1 read\n"
                             "ann done 1 crashed (retryable)\n");
    end(&x);
}

static void test_others_fail(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "write");
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 write\nann done 1 crashed\n");
    end(&x);
}

static void test_so_does_one_that_asked(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    ask_call(client_open(&x.ann, "read"), "1", 0);
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 read\nann ask 1 1\nann done 1 crashed\n");
    end(&x);
}

/* A refused question reached no client: the call may still be repeated. */
static void test_unless_nobody_was_asked(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    ask_call(client_open(&x.ann, "read"), "1", ANSWERS_ROOTS);
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 read\nf answer 1 1 refused\nf start\n");
    end(&x);
}

static void test_who_only_waited_goes_on_waiting(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    client_open(&x.ann, "write");
    client_open(&x.ann, "write");
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 write\nann done 1 crashed\nf start\n");
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f open 2 write\n");
    end(&x);
}

static void test_a_call_starts_its_provider(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    provider_unwant(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 0");
    client_open(&x.ann, "write");
    client_open(&x.ann, "read");
    assert_account(&x.stage, "f stop\nf stopped\nf start\n");
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f open 1 write\nf open 2 read\n");
    end(&x);
}

static void test_a_start_that_fails_ends_who_waits(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "read");
    provider_lost(&x.fake.core, "exited with 1");
    client_open(&x.ann, "write");
    provider_lost(&x.fake.core, "exited with 2");
    assert_account(&x.stage, "f open 1 read\nf start\nann done 1 unavailable (retryable)\n"
                             "ann done 2 unavailable (retryable)\n");
    end(&x);
}

static void test_a_start_that_is_too_slow_ends_who_waits(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->start_timeout = 100;
    provider_unwant(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 0");
    client_open(&x.ann, "write");
    stage_wait(&x.stage, 100);
    assert_account(&x.stage, "f stop\nf stopped\nf start\nf stop\n");
    provider_lost(&x.fake.core, "killed");
    assert_account(&x.stage, "ann done 1 unavailable (retryable)\n");
    end(&x);
}

/*
 * When a server was stopped, all its open calls ended as retryable, also those that may already
 * have had an effect.
 */
static void test_stopping_cancels_what_is_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 2;
    client_open(&x.ann, "write");
    client_open(&x.ann, "read");
    client_open(&x.ann, "write");
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "f open 1 write\nf open 2 read\n"
                             "f cancel 1 shutdown\nf cancel 2 shutdown\n"
                             "ann done 1 shutdown\nann done 2 shutdown (retryable)\n"
                             "ann done 3 shutdown (retryable)\nf stop\n");
    end(&x);
}

static void test_giving_up_ends_who_waits(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    provider_lost(&x.fake.core, "exited with 1");
    client_open(&x.ann, "write");
    assert_account(&x.stage, "f start\n");
    provider_lost(&x.fake.core, "exited with 1"); /* ends call 1 */
    client_open(&x.ann, "write");
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "ann done 1 unavailable (retryable)\n"
                             "ann done 2 shutdown (retryable)\nf stopped\n");
    end(&x);
}

/* --- what a consumer does inside `done` --- */

static void leave_in_done(struct client *c, const struct outcome *outcome)
{
    (void)outcome;
    c->in_done = NULL;
    call_cancel_all(&c->peer);
}

/*
 * A server crashed with two calls open. The client's connection broke inside `done` of the first,
 * so the second was cancelled: the provider was told to cancel a call of an instance that had
 * ended, whose request it had already freed.
 */
static void test_leaving_inside_a_crash(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "write");
    client_open(&x.ann, "write");
    client_open(&x.ann, "read");
    x.ann.in_done = leave_in_done;
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 write\nf open 2 write\nf open 3 read\n"
                             "ann done 1 crashed\nann done 2 cancelled\nann done 3 cancelled\n");
    end(&x);
}

static void answer_in_done(struct client *c, const struct outcome *outcome)
{
    struct call *other = router_find(c->stage->router, 2);

    (void)outcome;
    c->in_done = NULL;
    assert_non_null(other);
    answer_call(other, "1", "too late");
}

/* The same with an answer inside `done`: it must not reach an instance that has ended, or a call
 * that was cancelled. */
static void test_answering_inside_a_crash(void **state)
{
    struct fixture x;

    (void)state;
    for (int crash = 0; crash < 2; crash++) {
        begin(&x);
        client_open(&x.ann, "write");
        ask_call(client_open(&x.ann, "write"), "1", 0);
        x.stage.account.n = 0;
        x.ann.in_done = answer_in_done;
        if (crash) {
            provider_lost(&x.fake.core, "exited with 1");
            assert_account(&x.stage, "ann done 1 crashed\nann done 2 crashed\n");
        } else {
            provider_unwant(&x.fake.core);
            assert_account(&x.stage, "f cancel 1 shutdown\nf cancel 2 shutdown\n"
                                     "ann done 1 shutdown\nann done 2 shutdown\nf stop\n");
        }
        end(&x);
    }
}

static void open_in_done(struct client *c, const struct outcome *outcome)
{
    (void)outcome;
    c->in_done = NULL;
    client_open(c, "write");
}

/*
 * A client opened a new call inside `done` of a call that a crash had ended. That started the
 * provider, which was up at once and was sent the call; then the crash handling went on to end all
 * open calls, and ended the new one as well without telling the new instance.
 */
static void test_a_new_call_inside_a_crash_lives(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.up_in_start = true;
    client_open(&x.ann, "write");
    client_open(&x.ann, "write");
    x.ann.in_done = open_in_done;
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "f open 1 write\nf open 2 write\nann done 1 crashed\n"
                             "f start\nf open 3 write\nann done 2 crashed\n");
    assert_int_equal(x.fake.core.n_open, 1);
    finish_call(x.ann.last, "fine");
    assert_account(&x.stage, "ann done 3 fine\n");
    end(&x);
}

static void lose_in_open(struct fake *f, struct call *c, const struct request *request)
{
    (void)c, (void)request;
    f->in_open = NULL;
    provider_lost(&f->core, "broken pipe");
}

static void test_lost_inside_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.in_open = lose_in_open;
    assert_null(client_open(&x.ann, "write"));
    assert_account(&x.stage, "f open 1 write\nann done 1 crashed\n");
    end(&x);
    begin(&x);
    x.fake.in_open = lose_in_open;
    assert_non_null(client_open(&x.ann, "read"));
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f open 1 read\nf start\nf open 1 read\n");
    end(&x);
}

static void lose_in_answer(struct fake *f, struct call *c)
{
    (void)c;
    provider_lost(&f->core, "broken pipe");
}

static void test_lost_inside_answer(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.in_answer = lose_in_answer;
    struct call *c = client_open(&x.ann, "read");
    ask_call(c, "1", 0);
    answer_call(c, "1", "yes");
    assert_account(&x.stage, "f open 1 read\nann ask 1 1\nf answer 1 1 yes\nann done 1 crashed\n");
    end(&x);
}

/* --- counting --- */

static void test_what_is_counted(void **state)
{
    struct fixture x;
    const struct stats *all, *own = &x.fake.core.stats;

    (void)state;
    begin(&x);
    all = router_stats(x.stage.router);
    x.policy->concurrency = 2;
    struct call *a = client_open(&x.ann, "write");
    struct call *b = client_open(&x.ann, "read");
    client_open(&x.ann, "write");
    assert_int_equal(own->opened, 3);
    assert_int_equal(own->in_flight, 2);
    assert_int_equal(own->queued, 1);
    assert_int_equal(all->in_flight, 2);
    assert_int_equal(all->queued, 1);
    call_event(a, &(struct event){.kind = EVENT_LOG});
    ask_call(a, "1", 0);
    assert_int_equal(own->events, 1);
    assert_int_equal(all->events, 1);
    assert_int_equal(own->asks, 1);
    finish_call(a, "");
    call_done(b, &(struct outcome){.kind = OUTCOME_ERROR});
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(own->results, 1);
    assert_int_equal(own->errors, 1);
    assert_int_equal(own->failed[FAIL_CRASHED], 1);
    assert_int_equal(own->starts, 1);
    assert_int_equal(own->crashes, 1);
    assert_int_equal(own->in_flight + own->queued + all->in_flight + all->queued, 0);
    assert_int_equal(all->opened, 3);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_harmless_call_is_sent_again),
        cmocka_unit_test(test_but_only_once),
        cmocka_unit_test(test_others_fail),
        cmocka_unit_test(test_so_does_one_that_asked),
        cmocka_unit_test(test_unless_nobody_was_asked),
        cmocka_unit_test(test_who_only_waited_goes_on_waiting),
        cmocka_unit_test(test_a_call_starts_its_provider),
        cmocka_unit_test(test_a_start_that_fails_ends_who_waits),
        cmocka_unit_test(test_a_start_that_is_too_slow_ends_who_waits),
        cmocka_unit_test(test_stopping_cancels_what_is_open),
        cmocka_unit_test(test_giving_up_ends_who_waits),
        cmocka_unit_test(test_leaving_inside_a_crash),
        cmocka_unit_test(test_answering_inside_a_crash),
        cmocka_unit_test(test_a_new_call_inside_a_crash_lives),
        cmocka_unit_test(test_lost_inside_open),
        cmocka_unit_test(test_lost_inside_answer),
        cmocka_unit_test(test_what_is_counted),
    };
    return cmocka_run_group_tests_name("core/crash", tests, NULL, NULL);
}
