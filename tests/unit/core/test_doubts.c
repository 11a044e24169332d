/* Questions of a provider that does not say on which call it asks (core/doubts.h). */
#include "stage.h"

#include "core/doubts.h"

/* One provider that is up, with a read-only tool and one that is not, and three clients. */
struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann, bob, eve;
};

static void begin(struct fixture *x)
{
    struct client *const clients[] = {&x->ann, &x->bob, &x->eve};
    static const char *const names[] = {"ann", "bob", "eve"};

    stage_init(&x->stage);
    x->view = view_new("test", "{server}__{tool}");
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        client_init(clients[i], &x->stage, names[i], x->view);
        clients[i]->answers = ~0u;
    }
    fake_ready(&x->fake, "write read+ro");
    x->stage.account.n = 0;
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    call_cancel_all(&x->bob.peer);
    call_cancel_all(&x->eve.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

static bool ask(struct fixture *x, const char *key)
{
    return doubts_put(&x->fake.core, &(struct ask){.key = span_str(key),
                                                   .method = SPAN("elicitation/create"),
                                                   .params = SPAN("{}"),
                                                   .needs = ANSWERS_ELICIT_FORM});
}

static void fail_call(struct call *c)
{
    call_done(c, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}"), .is_error = true});
}

/*
 * With calls of two clients open, a question was answered with an error. Now the question waits
 * until one of the calls ends, and calls that come in the meantime wait as well.
 */
static void test_it_waits_until_one_client_is_left(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *of_ann = client_open(&x.ann, "f__write");
    struct call *of_bob = client_open(&x.bob, "f__write");
    assert_true(ask(&x, "q"));
    client_open(&x.eve, "f__write");
    client_open(&x.bob, "f__write"); /* if it were sent, ann's call would never be the only one */
    assert_account(&x.stage, "f open 1 write\nf open 2 write\n");
    finish_call(of_bob, "b");
    assert_account(&x.stage, "bob done 2 b\nann ask 1 q\n");
    answer_call(of_ann, "q", "yes");
    finish_call(of_ann, "a");
    assert_account(&x.stage, "f answer 1 q yes\nann done 1 a\nf open 3 write\n");
    end(&x);
}

/* The cancelled call may be the one that asked: no other client gets its question. */
static void test_the_question_of_a_call_given_up_reaches_nobody(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "f__write");
    struct call *of_bob = client_open(&x.bob, "f__write");
    assert_true(ask(&x, "q"));
    x.stage.account.n = 0;
    call_cancel(of_bob, FAIL_CANCELLED);
    assert_account(&x.stage,
                   "f cancel 2 cancelled\nbob done 2 cancelled\nf answer 0 q cancelled\n");
    end(&x);
}

/* Both calls wait for a person: the later question is refused as busy, and the call that then fails
 * is the one that had asked it. */
static void test_two_that_wait_for_each_other(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *of_ann = client_open(&x.ann, "f__write");
    struct call *of_bob = client_open(&x.bob, "f__write");
    ask(&x, "qa");
    ask(&x, "qb");
    assert_account(&x.stage, "f open 1 write\nf open 2 write\nf answer 0 qb busy\n");
    fail_call(of_bob);
    assert_account(&x.stage, "bob done 2 busy (retryable)\nann ask 1 qa\n");
    answer_call(of_ann, "qa", "yes");
    fail_call(of_ann); /* an error of the call itself */
    assert_account(&x.stage, "f answer 1 qa yes\nann done 1 {}\n");
    end(&x);
}

/* The call whose question was refused is repeated after the other one, if that is safe. */
static void test_what_may_be_repeated_is(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *of_ann = client_open(&x.ann, "f__read");
    struct call *of_bob = client_open(&x.bob, "f__read");
    ask(&x, "qa");
    ask(&x, "qb");
    x.stage.account.n = 0;
    fail_call(of_bob);
    assert_account(&x.stage, "ann ask 1 qa\n");
    answer_call(of_ann, "qa", "yes");
    finish_call(of_ann, "a");
    ask(&x, "again");
    assert_account(&x.stage, "f answer 1 qa yes\nann done 1 a\nf open 2 read\nbob ask 2 again\n");
    end(&x);
}

static void test_turns(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.takes_turns = true;
    struct call *of_ann = client_open(&x.ann, "f__write");
    struct call *of_bob = client_open(&x.bob, "f__write");
    client_open(&x.ann, "f__read"); /* comes after bob's call */
    ask(&x, "q");
    assert_account(&x.stage, "f open 1 write\nann ask 1 q\n");
    finish_call(of_ann, "a");
    assert_account(&x.stage, "ann done 1 a\nf open 2 write\n");
    finish_call(of_bob, "b");
    assert_account(&x.stage, "bob done 2 b\nf open 3 read\n");
    end(&x);
}

/* If all calls are of one client, that client is asked on any of them; if that call ends first, the
 * question moves to another. */
static void test_a_client_that_is_alone_is_asked_on_any_call(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *first = client_open(&x.ann, "f__write");
    struct call *second = client_open(&x.ann, "f__write");
    ask(&x, "q");
    ask(&x, "r");
    assert_account(&x.stage, "f open 1 write\nf open 2 write\nann ask 2 q\nann ask 1 r\n");
    finish_call(second, "b");
    assert_account(&x.stage, "ann done 2 b\nann ask 1 q\n");
    answer_call(first, "q", "yes");
    finish_call(first, "a"); /* no call is left on which `r` could be answered */
    assert_account(&x.stage, "f answer 1 q yes\nann done 1 a\nf answer 0 r cancelled\n");
    end(&x);
}

static struct call *open_as_anybody(struct fixture *x)
{
    return call_open(
        x->stage.router, &x->ann.peer, x->view,
        &(struct request){
            .op = OP_CALL_TOOL, .name = SPAN("f__write"), .answers = ~0u, .anybody = true},
        &x->ann);
}

/* Agents without a token cannot be told apart: two running calls count as those of two clients. */
static void test_agents_that_look_alike(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *one = open_as_anybody(&x);
    struct call *other = open_as_anybody(&x);
    ask(&x, "q");
    assert_account(&x.stage, "f open 1 write\nf open 2 write\n");
    finish_call(one, "a");
    open_as_anybody(&x); /* is sent: the other call waits for its answer, perhaps for minutes */
    assert_account(&x.stage, "ann done 1 a\nann ask 2 q\nf open 3 write\n");
    open_as_anybody(&x); /* is sent: such calls are mostly of one agent */
    assert_account(&x.stage, "f open 4 write\n");
    finish_call(other, "b");
    end(&x);
}

static void test_people_have_time(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.core.policy.timeout = 100;
    x.fake.core.policy.ask_timeout = 1000;
    client_open(&x.ann, "f__write");
    struct call *of_bob = client_open(&x.bob, "f__write");
    ask(&x, "q");
    stage_wait(&x.stage, 500);
    finish_call(of_bob, "b");
    stage_wait(&x.stage, 999);
    assert_int_equal(router_call_count(x.stage.router), 1);
    stage_wait(&x.stage, 1);
    assert_int_equal(router_call_count(x.stage.router), 0);
    end(&x);
}

/* A held question is dropped when its instance ends or when the provider takes it back. */
static void test_it_ends_with_its_provider_or_is_taken_back(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *of_ann = client_open(&x.ann, "f__write");
    client_open(&x.bob, "f__write");
    ask(&x, "q");
    ask(&x, "r");
    assert_true(ask_take_back_any(&x.fake.core, SPAN("q"), NULL));
    x.stage.account.n = 0;
    finish_call(of_ann, "a");
    assert_account(&x.stage, "ann done 1 a\n");
    client_open(&x.ann, "f__write"); /* waits for bob's call */
    provider_lost(&x.fake.core, "exited");
    assert_false(doubts_held(&x.fake.core));
    assert_null(strstr(buf_cstr(&x.stage.account), "ask"));
    end(&x);
}

static void test_there_is_an_end_to_questions(void **state)
{
    struct fixture x;
    char key[16];

    (void)state;
    begin(&x);
    client_open(&x.ann, "f__write");
    client_open(&x.ann, "f__write");
    struct call *of_bob = client_open(&x.bob, "f__write");
    assert_true(ask(&x, "q"));
    for (int i = 0; i < 62; i++) {
        snprintf(key, sizeof key, "%d", i);
        ask(&x, key); /* deadlocks are resolved at once, so few questions are held */
    }
    finish_call(of_bob, "b");
    assert_int_equal(router_call_count(x.stage.router), 2);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_waits_until_one_client_is_left),
        cmocka_unit_test(test_the_question_of_a_call_given_up_reaches_nobody),
        cmocka_unit_test(test_two_that_wait_for_each_other),
        cmocka_unit_test(test_what_may_be_repeated_is),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_a_client_that_is_alone_is_asked_on_any_call),
        cmocka_unit_test(test_agents_that_look_alike),
        cmocka_unit_test(test_people_have_time),
        cmocka_unit_test(test_it_ends_with_its_provider_or_is_taken_back),
        cmocka_unit_test(test_there_is_an_end_to_questions),
    };
    return cmocka_run_group_tests_name("core/doubts", tests, NULL, NULL);
}
