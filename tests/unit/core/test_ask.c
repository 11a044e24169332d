#include "stage.h"

/* One provider that is up, with a read-only tool and one that is not, and a client. */
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
    x->view = view_new("test", "{server}__{tool}");
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    x->policy = &x->fake.core.policy;
    fake_ready(&x->fake, "write read+ro");
    x->stage.account.n = 0;
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

static void test_ask_and_answer(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM | ANSWERS_ROOTS;
    struct call *c = client_open(&x.ann, "f__write");
    ask_call(c, "5", ANSWERS_ELICIT_FORM);
    ask_call(c, "\"5\"", 0);
    ask_call(c, "6", ANSWERS_ROOTS);
    answer_call(c, "\"5\"", "b");
    answer_call(c, "\"5\"", "again"); /* already answered */
    answer_call(c, "7", "nobody asked");
    answer_call(c, "5", "a");
    finish_call(c, "with 6 open");
    assert_account(&x.stage, "f open 1 write\nann ask 1 5\nann ask 1 \"5\"\nann ask 1 6\n"
                             "f answer 1 \"5\" b\nf answer 1 5 a\nann done 1 with 6 open\n");
    end(&x);
}

static void test_what_a_client_cannot_answer_is_refused(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__write");
    ask_call(c, "1", ANSWERS_SAMPLING);
    ask_call(c, "2", ANSWERS_ELICIT_FORM | ANSWERS_SAMPLING);
    assert_account(&x.stage, "f open 1 write\nf answer 1 1 refused\nf answer 1 2 refused\n");
    assert_true(list_empty(&c->asks));
    assert_int_equal(c->lacks, ANSWERS_SAMPLING); /* for messages that say what was missing */
    end(&x);
}

static struct call *open_for(struct fixture *x, struct client *client, uint64_t party)
{
    struct request request = {
        .op = OP_CALL_TOOL, .name = SPAN("f__write"), .answers = ~0u, .party = party};

    return call_open(x->stage.router, &client->peer, x->view, &request, client);
}

/*
 * A server on pipes does not say for which call it asks. If a call had asked and its client never
 * answered, no later question could be assigned to a call, so no client could be asked any more.
 */
static void test_a_call_that_waits_for_an_answer_does_not_ask(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *forgotten = open_for(&x, &x.ann, 7);
    ask_call(forgotten, "1", 0);
    assert_ptr_equal(ask_sole_call(&x.fake.core), forgotten); /* a call may ask twice at once */
    struct call *running = open_for(&x, &x.ann, 7);
    assert_ptr_equal(ask_sole_call(&x.fake.core), running);
    struct call *third = open_for(&x, &x.ann, 7);
    assert_null(ask_sole_call(&x.fake.core));
    ask_call(third, "2", 0);
    assert_ptr_equal(ask_sole_call(&x.fake.core), running);
    finish_call(running, "");
    assert_null(ask_sole_call(&x.fake.core));
    answer_call(third, "2", "");
    assert_ptr_equal(ask_sole_call(&x.fake.core), third);
    end(&x);
}

/* A wrong guess would show one person another person's question. */
static void test_calls_of_two_parties_leave_the_question_open(void **state)
{
    struct fixture x;
    struct client bob;

    (void)state;
    begin(&x);
    client_init(&bob, &x.stage, "bob", x.view);
    struct call *forgotten = open_for(&x, &x.ann, 7);
    ask_call(forgotten, "1", 0);
    struct call *other_party = open_for(&x, &x.ann, 8);
    assert_null(ask_sole_call(&x.fake.core));
    finish_call(other_party, "");
    open_for(&x, &bob, 7);
    assert_null(ask_sole_call(&x.fake.core));
    call_cancel_all(&bob.peer);
    assert_ptr_equal(ask_sole_call(&x.fake.core), forgotten);
    end(&x);
}

static void test_people_have_time(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    x.policy->ask_timeout = 1000;
    x.policy->progress_extends = true;
    struct call *c = client_open(&x.ann, "f__read");
    ask_call(c, "1", 0);
    stage_wait(&x.stage, 999);
    call_event(c, &(struct event){.kind = EVENT_PROGRESS}); /* does not count as an answer */
    answer_call(c, "1", "yes");
    stage_wait(&x.stage, 99);
    ask_call(c, "2", 0);
    stage_wait(&x.stage, 999);
    assert_account(&x.stage, "f open 1 read\nann ask 1 1\nf answer 1 1 yes\nann ask 1 2\n");
    stage_wait(&x.stage, 1);
    /* A person was asked, so repeating the call would not be safe: it is not retryable. */
    assert_account(&x.stage, "f cancel 1 timeout\nann done 1 timeout\n");
    end(&x);
}

static void test_after_the_answer_the_deadline_is_back(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    x.policy->ask_timeout = 1000;
    struct call *c = client_open(&x.ann, "f__write");
    ask_call(c, "1", 0);
    ask_call(c, "2", 0);
    answer_call(c, "1", "yes");
    stage_wait(&x.stage, 500);
    answer_call(c, "2", "yes");
    stage_wait(&x.stage, 99);
    assert_int_equal(router_call_count(x.stage.router), 1);
    stage_wait(&x.stage, 1);
    assert_int_equal(router_call_count(x.stage.router), 0);
    end(&x);
}

static void answer_in_ask(struct client *c, struct call *call, const struct ask *ask)
{
    (void)c, (void)ask;
    answer_call(call, "1", "at once");
}

static void finish_in_answer(struct fake *f, struct call *c)
{
    (void)f;
    finish_call(c, "then");
}

static void ask_in_open(struct fake *f, struct call *c, const struct request *request)
{
    (void)f, (void)request;
    ask_call(c, "1", 0);
}

static void test_everything_inside_open(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.in_open = ask_in_open;
    x.fake.in_answer = finish_in_answer;
    x.ann.in_ask = answer_in_ask;
    assert_null(client_open(&x.ann, "f__write"));
    assert_account(&x.stage,
                   "f open 1 write\nann ask 1 1\nf answer 1 1 at once\nann done 1 then\n");
    end(&x);
}

static void cancel_in_ask(struct client *c, struct call *call, const struct ask *ask)
{
    (void)c, (void)ask;
    call_cancel(call, FAIL_CANCELLED);
}

static void test_cancel_inside_ask(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.in_open = ask_in_open;
    x.ann.in_ask = cancel_in_ask;
    assert_null(client_open(&x.ann, "f__write"));
    assert_account(&x.stage, "f open 1 write\nann ask 1 1\nf cancel 1 cancelled\n"
                             "ann done 1 cancelled\n");
    end(&x);
}

/*
 * A server could ask without bound on one call: each question was stored, and each restarted the
 * deadline.
 */
static void test_open_questions_are_bounded(void **state)
{
    struct fixture x;
    char key[16];

    (void)state;
    begin(&x);
    struct call *c = client_open(&x.ann, "f__write");
    for (int i = 0; i < 64; i++) {
        snprintf(key, sizeof key, "%d", i);
        ask_call(c, key, 0);
    }
    x.stage.account.n = 0;
    ask_call(c, "more", 0);
    assert_account(&x.stage, "f answer 1 more busy\n");
    answer_call(c, "7", "yes");
    ask_call(c, "more", 0);
    assert_account(&x.stage, "f answer 1 7 yes\nann ask 1 more\n");
    end(&x);
}

/* When a server took its question back, the client still showed it until the call ended. */
static void test_what_is_taken_back_is_not_answered(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 100;
    x.policy->ask_timeout = 1000;
    struct call *c = client_open(&x.ann, "f__write");
    ask_call(c, "1", 0);
    ask_call(c, "2", 0);
    assert_true(ask_take_back(c, SPAN("1")));
    assert_false(ask_take_back(c, SPAN("1")));
    assert_true(ask_take_back_any(&x.fake.core, SPAN("2"), NULL));
    assert_false(ask_take_back_any(&x.fake.core, SPAN("2"), NULL));
    answer_call(c, "1", "too late");
    assert_account(&x.stage, "f open 1 write\nann ask 1 1\nann ask 1 2\nann unasked 1 1\n"
                             "ann unasked 1 2\n");
    stage_wait(&x.stage, 100); /* no question is open, so the call's own timeout applies */
    assert_account(&x.stage, "f cancel 1 timeout\nann done 1 timeout\n");
    end(&x);
}

static void test_the_same_on_a_standing_call(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *c = router_attach(x.stage.router, &x.ann.peer, x.view, 0, &x.ann);
    assert_true(ask_put_standing(&x.fake.core, &(struct ask){.key = SPAN("7")}));
    assert_false(
        ask_take_back_any(&x.fake.core, SPAN("f/7"), NULL)); /* "f/7" is the client's key */
    assert_true(ask_take_back_any(&x.fake.core, SPAN("7"), NULL));
    answer_call(c, "f/7", "too late");
    assert_account(&x.stage, "ann ask 1 f/7\nann unasked 1 f/7\n");
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken_back_is_not_answered),
        cmocka_unit_test(test_the_same_on_a_standing_call),
        cmocka_unit_test(test_ask_and_answer),
        cmocka_unit_test(test_what_a_client_cannot_answer_is_refused),
        cmocka_unit_test(test_a_call_that_waits_for_an_answer_does_not_ask),
        cmocka_unit_test(test_calls_of_two_parties_leave_the_question_open),
        cmocka_unit_test(test_people_have_time),
        cmocka_unit_test(test_after_the_answer_the_deadline_is_back),
        cmocka_unit_test(test_everything_inside_open),
        cmocka_unit_test(test_cancel_inside_ask),
        cmocka_unit_test(test_open_questions_are_bounded),
    };
    return cmocka_run_group_tests_name("core/ask", tests, NULL, NULL);
}
