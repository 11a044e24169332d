/* Calls that are held until a person approves them: the part of approvals that is in the core. */
#include "core/approval.h"
#include "core/principal.h"
#include "core/tap.h"
#include "stage.h"

#include <inttypes.h>

/* One provider that is up, two tools that need approval and one that does not, and a client. */
struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
    struct policy *policy;
};

static const struct span patterns[] = {{"delete*", 7}, {"format", 6}};

static void put_question(struct buf *out, const struct call *c)
{
    buf_printf(out, "may %s?", c->name);
}

static enum consent read_answer(const struct outcome *answer)
{
    if (answer->kind != OUTCOME_RESULT)
        return CONSENT_UNASKED;
    return span_is(answer->body, "yes") ? CONSENT_GIVEN : CONSENT_DENIED;
}

static const struct verdict yes = {true, "the operator (test)", "the operator"};
static const struct verdict no = {false, "the operator (test)", "the operator"};

static const struct approver operated = {put_question, read_answer, true};
static const struct approver alone = {put_question, read_answer, false};

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    approval_set_approver(x->stage.router, &operated);
    x->view = view_new("test", "{server}__{tool}");
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    x->policy = &x->fake.core.policy;
    x->policy->approve = patterns;
    x->policy->n_approve = COUNT_OF(patterns);
    x->policy->approve_timeout = 60 * 1000;
    x->policy->approve_by = APPROVE_BY_EITHER;
    fake_ready(&x->fake, "read delete_file+ro Format");
    x->stage.account.n = 0;
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

/* The text of the last `done`, which the account leaves out. */
static char last_text[256];

static void note_text(struct client *c, const struct outcome *outcome)
{
    (void)c;
    snprintf(last_text, sizeof last_text, SPAN_FMT, SPAN_ARG(outcome->text));
}

static void test_only_named_tools_are_held(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    finish_call(client_open(&x.ann, "f__read"), "read");
    struct call *held = client_open(&x.ann, "f__Format"); /* patterns ignore case */
    assert_int_equal(held->state, CALL_HELD);
    assert_account(&x.stage, "f open 1 read\nann done 1 read\n");
    assert_ptr_equal(approval_next(x.stage.router, NULL), held);
    assert_null(approval_next(x.stage.router, held));
    assert_false(approval_is_with_consumer(held));
    end(&x);
}

/* --- the client is asked --- */

static void test_accepted_by_the_client(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__delete_file");
    assert_account(&x.stage, "ann ask 1 approval\n");
    assert_true(approval_is_with_consumer(c));
    answer_call(c, "approval", "yes");
    answer_call(c, "approval", "no"); /* too late */
    finish_call(c, "deleted");
    assert_account(&x.stage, "f open 1 delete_file\nann done 1 deleted\n");
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED_UNKNOWN);
    end(&x);
}

static void test_declined_by_the_client(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    x.ann.in_done = note_text;
    struct call *c = client_open(&x.ann, "f__delete_file");
    answer_call(c, "approval", "no");
    assert_account(&x.stage, "ann ask 1 approval\nann done 1 refused\n");
    assert_string_equal(last_text, "the call of 'delete_file' on server 'f' was refused by the "
                                   "person at the client");
    assert_int_equal(x.fake.core.stats.failed[FAIL_REFUSED], 1);
    end(&x);
}

static void say_yes(struct client *c, struct call *call, const struct ask *ask)
{
    (void)c;
    ask_answer(call, ask->key, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("yes")});
}

static void say_no(struct client *c, struct call *call, const struct ask *ask)
{
    (void)c;
    ask_answer(call, ask->key, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("no")});
}

static void test_answered_inside_the_ask(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    x.ann.in_ask = say_no;
    assert_null(client_open(&x.ann, "f__delete_file"));
    x.ann.in_ask = say_yes;
    assert_int_equal(client_open(&x.ann, "f__delete_file")->state, CALL_OPEN);
    assert_account(&x.stage, "ann ask 1 approval\nann done 1 refused\n"
                             "ann ask 2 approval\nf open 2 delete_file\n");
    end(&x);
}

/* The client declared elicitation but answers with an error: the operator can still decide. */
static void test_a_client_that_cannot_ask_after_all(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__delete_file");
    ask_answer(c, SPAN("approval"), &(struct outcome){.kind = OUTCOME_ERROR, .body = SPAN("{}")});
    assert_int_equal(c->state, CALL_HELD);
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED);
    assert_account(&x.stage, "ann ask 1 approval\nf open 1 delete_file\n");
    end(&x);
}

/* After the approval the server's own questions are asked on the same call, not by a retry. */
static void test_one_consent_is_for_one_call(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM | ANSWERS_BY_RETRY;
    x.ann.in_ask = say_yes;
    struct call *c = client_open(&x.ann, "f__delete_file");
    assert_false(c->answers & ANSWERS_BY_RETRY);
    assert_false(c->kept.request.answers & ANSWERS_BY_RETRY);
    ask_call(c, "7", ANSWERS_ELICIT_FORM);
    assert_account(&x.stage, "ann ask 1 approval\nf open 1 delete_file\nann ask 1 7\n"
                             "f answer 1 7 yes\n");
    end(&x);
}

/* --- the operator is asked --- */

static void test_decided_by_the_operator(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.in_done = note_text;
    client_open(&x.ann, "f__delete_file");
    client_open(&x.ann, "f__Format");
    assert_int_equal(approval_decide(x.stage.router, 3, &yes), DECIDED_UNKNOWN);
    assert_int_equal(approval_decide(x.stage.router, 2, &no), DECIDED);
    assert_string_equal(last_text,
                        "the call of 'Format' on server 'f' was refused by the operator");
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED);
    assert_account(&x.stage, "ann done 2 refused\nf open 1 delete_file\n");
    end(&x);
}

static void test_nobody_to_ask(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.in_done = note_text;
    approval_set_approver(x.stage.router, &alone);
    assert_null(client_open(&x.ann, "f__Format"));
    approval_set_approver(x.stage.router, NULL);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    assert_null(client_open(&x.ann, "f__Format"));
    assert_account(&x.stage, "ann done 1 refused\nann done 2 refused\n");
    assert_string_equal(last_text, "the call of 'Format' on server 'f' needs a person's approval, "
                                   "and there is nobody to ask");
    end(&x);
}

/* --- whose decision counts --- */

/* A tap that records who decided. */
struct clerk {
    struct tap tap;
    char noted[256];
};

static const char *pass_opened(struct tap *self, const struct call *c,
                               const struct request *request)
{
    (void)self, (void)c, (void)request;
    return NULL;
}

static const char *pass_ended(struct tap *self, const struct call *c, const struct outcome *outcome)
{
    (void)self, (void)c, (void)outcome;
    return NULL;
}

static const char *note_decided(struct tap *self, const struct call *c, bool allowed,
                                struct span by)
{
    struct clerk *clerk = CONTAINER_OF(self, struct clerk, tap);
    size_t n = strlen(clerk->noted);

    snprintf(clerk->noted + n, sizeof clerk->noted - n, "%" PRIu64 " %s " SPAN_FMT "\n", c->handle,
             allowed ? "yes" : "no", SPAN_ARG(by));
    return NULL;
}

static const struct tap clerk_tap = {
    .opened = pass_opened, .ended = pass_ended, .decided = note_decided};

/*
 * A client that declares elicitation need not have a person: a program around the agent answered
 * the question whether the agent may delete a file, and the call ran.
 */
static void test_by_the_operator_alone(void **state)
{
    struct clerk clerk = {.tap = clerk_tap};
    struct fixture x;

    (void)state;
    begin(&x);
    tap_add(x.stage.router, &clerk.tap);
    x.policy->approve_by = APPROVE_BY_OPERATOR;
    x.ann.answers = ANSWERS_ELICIT_FORM;
    x.ann.in_ask = say_yes;
    struct call *c = client_open(&x.ann, "f__delete_file");
    assert_account(&x.stage, "");
    answer_call(c, "approval", "yes"); /* the client was not asked */
    assert_int_equal(c->state, CALL_HELD);
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED);
    assert_account(&x.stage, "f open 1 delete_file\n");
    assert_string_equal(clerk.noted, "1 yes the operator (test)\n");
    x.ann.in_done = note_text;
    approval_set_approver(x.stage.router, &alone);
    assert_null(client_open(&x.ann, "f__delete_file"));
    assert_string_equal(last_text, "the call of 'delete_file' on server 'f' needs an operator's "
                                   "approval, and there is nobody to ask");
    tap_remove(&clerk.tap);
    end(&x);
}

static void test_by_the_client_alone(void **state)
{
    struct clerk clerk = {.tap = clerk_tap};
    struct fixture x;

    (void)state;
    begin(&x);
    tap_add(x.stage.router, &clerk.tap);
    x.policy->approve_by = APPROVE_BY_CLIENT;
    x.ann.in_done = note_text;
    assert_null(client_open(&x.ann, "f__delete_file"));
    assert_string_equal(last_text, "the call of 'delete_file' on server 'f' needs the approval of "
                                   "the person at the client (approve_by), and this client cannot "
                                   "put a form before its user");
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__delete_file");
    assert_int_equal(approval_decide(x.stage.router, 2, &yes), DECIDED_ELSEWHERE);
    ask_answer(c, SPAN("approval"), &(struct outcome){.kind = OUTCOME_ERROR});
    assert_account(&x.stage, "ann done 1 refused\nann ask 2 approval\nann done 2 refused\n");
    assert_string_equal(clerk.noted, "");
    x.ann.peer.principal = principal_new("ann");
    answer_call(client_open(&x.ann, "f__delete_file"), "approval", "yes");
    answer_call(client_open(&x.ann, "f__delete_file"), "approval", "no");
    assert_string_equal(clerk.noted, "3 yes the client (token ann)\n4 no the client (token ann)\n");
    tap_remove(&clerk.tap);
    principal_release(x.ann.peer.principal);
    end(&x);
}

static void test_by_either_the_first_word_counts(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__delete_file");
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED);
    answer_call(c, "approval", "no"); /* too late */
    assert_account(&x.stage, "ann ask 1 approval\nann unasked 1 approval\nf open 1 delete_file\n");
    client_open(&x.ann, "f__delete_file");
    assert_int_equal(approval_decide(x.stage.router, 2, &no), DECIDED);
    assert_account(&x.stage, "ann ask 2 approval\nann unasked 2 approval\nann done 2 refused\n");
    end(&x);
}

static void leave_on_event(struct client *c, struct call *call, const struct event *event)
{
    (void)c, (void)event;
    call_cancel(call, FAIL_CANCELLED);
}

static void test_a_client_that_leaves_when_the_question_is_taken_back(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    x.ann.in_event = leave_on_event;
    client_open(&x.ann, "f__delete_file");
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED);
    assert_account(&x.stage, "ann ask 1 approval\nann unasked 1 approval\nann done 1 cancelled\n");
    end(&x);
}

/* In the stateless era the question is the response to a request, and the answer comes with a
 * retry. A result before the retry would be lost, so the call continues only then. */
static void test_the_operator_decides_for_one_that_comes_back(void **state)
{
    static const struct {
        const struct verdict *first;
        const char *then, *account;
    } rows[] = {
        {&yes, "yes", "f open 1 delete_file\n"},
        {&yes, "no", "ann done 1 refused\n"},
        {&no, "yes", "ann done 1 refused\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture x;
        begin(&x);
        x.ann.answers = ANSWERS_ELICIT_FORM | ANSWERS_BY_RETRY;
        struct call *c = client_open(&x.ann, "f__delete_file");
        assert_int_equal(approval_decide(x.stage.router, 1, rows[i].first), DECIDED);
        assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED_UNKNOWN);
        assert_null(approval_next(x.stage.router, NULL));
        assert_account(&x.stage, "ann ask 1 approval\n");
        answer_call(c, "approval", rows[i].then);
        assert_account(&x.stage, rows[i].account);
        end(&x);
    }
}

/* The configuration changed while the client was asked: the client's answer no longer counts. */
static void test_an_answer_that_came_too_late_to_count(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__delete_file");
    x.policy->approve_by = APPROVE_BY_OPERATOR;
    answer_call(c, "approval", "yes");
    assert_int_equal(c->state, CALL_HELD);
    assert_int_equal(approval_decide(x.stage.router, 1, &no), DECIDED);
    assert_account(&x.stage, "ann ask 1 approval\nann done 1 refused\n");
    end(&x);
}

/* --- time and ends --- */

static void test_silence_is_a_no(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.in_done = note_text;
    x.policy->timeout = 100; /* does not apply while a person is asked */
    client_open(&x.ann, "f__delete_file");
    x.ann.answers = ANSWERS_ELICIT_FORM;
    stage_wait(&x.stage, 1);
    client_open(&x.ann, "f__delete_file");
    stage_wait(&x.stage, 59998);
    assert_account(&x.stage, "ann ask 2 approval\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "ann done 1 refused\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "ann done 2 refused\n");
    assert_string_equal(last_text,
                        "nobody approved the call of 'delete_file' on server 'f' within 60 s");
    end(&x);
}

static void test_the_deadline_counts_from_the_consent(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->timeout = 1000;
    client_open(&x.ann, "f__delete_file");
    stage_wait(&x.stage, 50 * 1000);
    assert_int_equal(approval_decide(x.stage.router, 1, &yes), DECIDED);
    stage_wait(&x.stage, 999);
    assert_account(&x.stage, "f open 1 delete_file\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "f cancel 1 timeout\nann done 1 timeout\n");
    assert_int_equal(x.fake.core.stats.latency_sum_ms, 1000);
    end(&x);
}

/* A held call takes no slot, so other calls overtake it. */
static void test_a_held_call_takes_no_slot(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.policy->concurrency = 1;
    client_open(&x.ann, "f__delete_file");
    struct call *read = client_open(&x.ann, "f__read");
    approval_decide(x.stage.router, 1, &yes); /* now the call waits for a slot */
    assert_account(&x.stage, "f open 2 read\n");
    finish_call(read, "read");
    assert_account(&x.stage, "ann done 2 read\nf open 1 delete_file\n");
    end(&x);
}

static void test_taken_back_while_held(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.ann.answers = ANSWERS_ELICIT_FORM;
    struct call *c = client_open(&x.ann, "f__delete_file");
    call_cancel(c, FAIL_CANCELLED);
    /* The provider was never sent the call, so it gets no cancel. */
    assert_account(&x.stage, "ann ask 1 approval\nann done 1 cancelled\n");
    assert_null(approval_next(x.stage.router, NULL));
    end(&x);
}

static void test_a_crash_does_not_concern_it(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "f__delete_file");
    provider_lost(&x.fake.core, "exited with 1");
    assert_int_equal(x.fake.core.state, PROVIDER_BACKOFF);
    assert_account(&x.stage, "");
    approval_decide(x.stage.router, 1, &yes);
    stage_wait(&x.stage, 1000);
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f start\nf open 1 delete_file\n");
    /* The tool is read-only, but a person allowed one run: the call is not repeated. */
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "ann done 1 crashed\n");
    end(&x);
}

static void test_stopping_ends_it(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "f__delete_file");
    provider_unwant(&x.fake.core);
    provider_lost(&x.fake.core, "");
    assert_account(&x.stage, "ann done 1 shutdown (retryable)\nf stop\nf stopped\n");
    /* Also when the provider is already down: no held call may be left when it is removed. */
    client_open(&x.ann, "f__delete_file");
    assert_int_equal(x.fake.core.state, PROVIDER_DOWN);
    provider_unwant(&x.fake.core);
    assert_account(&x.stage, "ann done 2 shutdown (retryable)\nf stopped\n");
    end(&x);
}

static void test_held_calls_of_several_providers(void **state)
{
    struct fixture x;
    struct fake idle, other;
    uint64_t seen = 0;

    (void)state;
    begin(&x);
    fake_init(&idle, &x.stage, "idle");
    fake_init(&other, &x.stage, "g");
    view_add(x.view, &other.core, NULL);
    other.core.policy = *x.policy;
    fake_ready(&other, "format");
    client_open(&x.ann, "f__delete_file");
    client_open(&x.ann, "g__format");
    client_open(&x.ann, "f__Format");
    for (struct call *c = NULL; (c = approval_next(x.stage.router, c));)
        seen = seen * 10 + c->handle;
    assert_int_equal(seen, 123);
    call_cancel_all(&x.ann.peer);
    fake_fini(&other);
    fake_fini(&idle);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_named_tools_are_held),
        cmocka_unit_test(test_accepted_by_the_client),
        cmocka_unit_test(test_declined_by_the_client),
        cmocka_unit_test(test_answered_inside_the_ask),
        cmocka_unit_test(test_a_client_that_cannot_ask_after_all),
        cmocka_unit_test(test_one_consent_is_for_one_call),
        cmocka_unit_test(test_decided_by_the_operator),
        cmocka_unit_test(test_nobody_to_ask),
        cmocka_unit_test(test_by_the_operator_alone),
        cmocka_unit_test(test_by_the_client_alone),
        cmocka_unit_test(test_by_either_the_first_word_counts),
        cmocka_unit_test(test_a_client_that_leaves_when_the_question_is_taken_back),
        cmocka_unit_test(test_the_operator_decides_for_one_that_comes_back),
        cmocka_unit_test(test_an_answer_that_came_too_late_to_count),
        cmocka_unit_test(test_silence_is_a_no),
        cmocka_unit_test(test_the_deadline_counts_from_the_consent),
        cmocka_unit_test(test_a_held_call_takes_no_slot),
        cmocka_unit_test(test_taken_back_while_held),
        cmocka_unit_test(test_a_crash_does_not_concern_it),
        cmocka_unit_test(test_stopping_ends_it),
        cmocka_unit_test(test_held_calls_of_several_providers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
