/* The recorder keeps the last calls, within bounds that peers cannot exceed. */
#include "../core/stage.h"
#include "admin/recorder.h"

enum { BODY = 16 * 1024, KEPT = BODY + RECORD_MARGIN, CHUNK = 64 * 1024 };

struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
    struct recorder recorder;
};

static void begin(struct fixture *x, size_t keep)
{
    stage_init(&x->stage);
    x->view = view_new("test", NULL);
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    fake_ready(&x->fake, "write read+ro");
    recorder_begin(&x->recorder, x->stage.router, keep, BODY);
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    recorder_end(&x->recorder);
    view_free(x->view);
    stage_fini(&x->stage);
}

static const struct record *nth(const struct fixture *x, size_t n)
{
    const struct record *rec = NULL;

    do
        rec = recorder_next(&x->recorder, rec);
    while (rec && n--);
    return rec;
}

static struct call *open_with(struct fixture *x, const char *name, struct span params)
{
    struct request request = {.op = OP_CALL_TOOL, .name = span_str(name), .params = params};

    return call_open(x->stage.router, &x->ann.peer, x->view, &request, &x->ann);
}

static void test_a_call_from_its_opening_to_its_end(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 1 << 20);
    struct call *c = open_with(&x, "write", SPAN("{\"arguments\":{}}"));
    const struct record *rec = nth(&x, 0);
    assert_int_equal(rec->id, c->handle);
    assert_false(rec->ended);
    assert_span(rec->server, "f");
    assert_span(rec->name, "write");
    assert_span(rec->params.kept, "{\"arguments\":{}}");
    stage_wait(&x.stage, 30);
    finish_call(c, "{\"done\":1}");
    assert_true(rec->ended);
    assert_int_equal(rec->took, 30);
    assert_int_equal(rec->kind, OUTCOME_RESULT);
    assert_span(rec->result.kept, "{\"done\":1}");
    assert_ptr_equal(recorder_find(&x.recorder, rec->id), rec);
    assert_null(nth(&x, 1));
    end(&x);
}

static void test_what_nobody_offers_is_recorded_too(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 1 << 20);
    assert_null(open_with(&x, "nothing", SPAN("{}")));
    const struct record *rec = nth(&x, 0);
    assert_true(rec->ended);
    assert_int_equal(rec->kind, OUTCOME_FAILED);
    assert_int_equal(rec->why, FAIL_UNKNOWN);
    assert_int_equal(rec->server.n, 0);
    assert_span(rec->error, "unknown tool: nothing");
    end(&x);
}

/* Calls to built-in providers without a shown name are not recorded, nor are notifications. */
static void test_what_is_not_recorded(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 1 << 20);
    x.fake.core.built_in = true;
    finish_call(open_with(&x, "write", SPAN("{}")), "{}");
    assert_null(nth(&x, 0));
    x.fake.core.told_as = "pages";
    finish_call(open_with(&x, "write", SPAN("{}")), "{}");
    assert_span(nth(&x, 0)->server, "pages");
    struct request told = {.op = OP_TELL, .name = SPAN("notifications/x")};
    struct call *c = call_open(x.stage.router, &x.ann.peer, x.view, &told, &x.ann);
    finish_call(c, "{}");
    assert_null(nth(&x, 1));
    end(&x);
}

static void test_long_bodies_are_kept_by_their_beginning(void **state)
{
    struct fixture x;
    struct buf long_text = {0};

    (void)state;
    begin(&x, 1 << 20);
    for (int i = 0; i < 3 * KEPT; i++)
        buf_char(&long_text, 'x');
    struct call *c = open_with(&x, "write", buf_view(&long_text));
    finish_call(c, buf_cstr(&long_text));
    const struct record *rec = nth(&x, 0);
    assert_int_equal(rec->params.kept.n, KEPT);
    assert_int_equal(rec->params.whole, 3 * KEPT);
    assert_int_equal(rec->result.kept.n, KEPT);
    assert_int_equal(rec->result.whole, 3 * KEPT);
    buf_fini(&long_text);
    end(&x);
}

static size_t count(const struct fixture *x)
{
    size_t n = 0;

    for (const struct record *rec = NULL; (rec = recorder_next(&x->recorder, rec));)
        n++;
    return n;
}

static void test_the_oldest_go_first(void **state)
{
    struct fixture x;
    char body[1000];

    (void)state;
    memset(body, 'x', sizeof body);
    begin(&x, 4 * CHUNK);
    struct call *first = open_with(&x, "write", span_of(body, sizeof body));
    uint64_t id = first->handle;
    for (int i = 0; i < 1000; i++) {
        struct call *c = open_with(&x, "read", span_of(body, sizeof body));
        assert_int_equal(nth(&x, 0)->id, c->handle);
        finish_call(c, "{}");
        assert_true(nth(&x, 0)->ended);
        assert_in_range(x.recorder.n_chunks, 1, 4);
    }
    assert_null(recorder_find(&x.recorder, id));
    finish_call(first, "it ended after it was forgotten");
    assert_in_range(count(&x), 3 * CHUNK / 1300, 4 * CHUNK / 1000);
    end(&x);
}

/* With one chunk the end of a call may need the memory that holds its beginning. */
static void test_a_call_that_makes_room_for_its_own_end(void **state)
{
    struct fixture x;
    struct buf body = {0};

    (void)state;
    begin(&x, CHUNK);
    for (int i = 0; i < KEPT; i++)
        buf_char(&body, 'x');
    for (int i = 0; i < 20; i++)
        finish_call(open_with(&x, "write", buf_view(&body)), buf_cstr(&body));
    struct call *c = open_with(&x, "write", SPAN("{}"));
    finish_call(c, "{}");
    assert_true(nth(&x, 0)->ended);
    assert_int_equal(x.recorder.n_chunks, 1);
    buf_fini(&body);
    end(&x);
}

static void test_nothing_is_kept_without_room(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 0);
    finish_call(open_with(&x, "write", SPAN("{}")), "{}");
    assert_null(nth(&x, 0));
    end(&x);
}

/* --- the legs: events, questions and answers during a call --- */

static const struct record_leg *leg_at(const struct record *rec, size_t n)
{
    const struct record_leg *leg = rec->legs;

    while (leg && n--)
        leg = leg->next;
    return leg;
}

static void tell_progress(struct call *c, struct span params)
{
    call_event(c, &(struct event){.kind = EVENT_PROGRESS, .params = params});
}

/* A plain call has no legs: the time when it was sent is in the call itself. */
static void test_a_plain_call_has_no_legs(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 1 << 20);
    struct call *c = open_with(&x, "read", SPAN("{}"));
    stage_wait(&x.stage, 10);
    finish_call(c, "{}");
    const struct record *rec = nth(&x, 0);
    assert_null(rec->legs);
    assert_true(rec->sent);
    assert_int_equal(rec->sent_at, rec->opened_at);
    end(&x);
}

static void test_questions_answers_and_the_cancel_are_legs(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 1 << 20);
    struct request request = {.op = OP_CALL_TOOL,
                              .name = SPAN("write"),
                              .answers = ANSWERS_ELICIT_FORM,
                              .wants_progress = true};
    struct call *c = call_open(x.stage.router, &x.ann.peer, x.view, &request, &x.ann);
    tell_progress(c, SPAN("{\"progress\":1}"));
    stage_wait(&x.stage, 5);
    ask_call(c, "k", ANSWERS_ELICIT_FORM);
    ask_call(c, "s", ANSWERS_SAMPLING);
    stage_wait(&x.stage, 5);
    answer_call(c, "k", "{\"yes\":1}");
    call_cancel(c, FAIL_CANCELLED);
    const struct record *rec = nth(&x, 0);
    static const enum leg_kind kinds[] = {LEG_EVENT,  LEG_ASK,    LEG_ASK,       LEG_REFUSED_ANSWER,
                                          LEG_ANSWER, LEG_CANCEL, LEG_CALLED_OFF};
    assert_int_equal(rec->n_legs, COUNT_OF(kinds));
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        assert_int_equal(leg_at(rec, i)->kind, kinds[i]);
    assert_span(leg_at(rec, 0)->body.kept, "{\"progress\":1}");
    assert_int_equal(leg_at(rec, 1)->at - rec->opened_at, 5);
    assert_span(leg_at(rec, 3)->what, "the client cannot answer this");
    assert_span(leg_at(rec, 4)->body.kept, "{\"yes\":1}");
    assert_int_equal(leg_at(rec, 4)->at - rec->opened_at, 10);
    end(&x);
}

static void test_a_call_that_is_repeated_after_a_crash(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, 1 << 20);
    struct call *c = open_with(&x, "read", SPAN("{}"));
    provider_lost(&x.fake.core, "killed by SIGKILL");
    stage_wait(&x.stage, 2000);
    fake_ready(&x.fake, "write read+ro");
    finish_call(c, "{}");
    const struct record *rec = nth(&x, 0);
    assert_int_equal(rec->retried, 1);
    assert_int_equal(leg_at(rec, 0)->kind, LEG_RETRY);
    assert_span(leg_at(rec, 0)->what, "killed by SIGKILL");
    assert_int_equal(leg_at(rec, 1)->kind, LEG_SENT);
    end(&x);
}

/* A server that sends events without end must leave room for later legs and for other calls. */
static void test_legs_are_bounded_in_number_and_in_bytes(void **state)
{
    struct fixture x;
    struct buf body = {0};

    (void)state;
    begin(&x, 1 << 20);
    for (int i = 0; i < KEPT; i++)
        buf_char(&body, 'x');
    struct request request = {.op = OP_CALL_TOOL,
                              .name = SPAN("write"),
                              .answers = ANSWERS_ELICIT_FORM,
                              .wants_progress = true};
    struct call *c = call_open(x.stage.router, &x.ann.peer, x.view, &request, &x.ann);
    uint64_t id = c->handle;
    for (int i = 0; i < 10000; i++)
        tell_progress(c, buf_view(&body));
    for (int i = 0; i < 1000; i++) {
        ask_call(c, "k", ANSWERS_ELICIT_FORM);
        answer_call(c, "k", "{}");
    }
    const struct record *rec = recorder_find(&x.recorder, id);
    assert_non_null(rec);
    assert_int_equal(rec->n_events, RECORD_EVENTS);
    assert_int_equal(rec->n_legs, RECORD_LEGS);
    assert_int_equal(rec->left_out, 10000 + 2000 - RECORD_LEGS);
    assert_in_range(rec->legs_bytes, 4 * BODY, 5 * KEPT);
    assert_int_equal(recorder_shown(&x.recorder, &leg_at(rec, 0)->body), BODY);
    assert_int_equal(recorder_shown(&x.recorder, &leg_at(rec, 60)->body), 0);
    assert_int_equal(leg_at(rec, 60)->body.whole, KEPT);
    finish_call(c, "{}");
    assert_true(nth(&x, 0)->ended);
    buf_fini(&body);
    end(&x);
}

/* With one chunk a leg may need the memory that holds its own record. */
static void test_a_call_that_makes_room_for_its_own_legs(void **state)
{
    struct fixture x;
    struct buf body = {0};

    (void)state;
    begin(&x, CHUNK);
    for (int i = 0; i < KEPT; i++)
        buf_char(&body, 'x');
    struct request request = {.op = OP_CALL_TOOL, .name = SPAN("write"), .wants_progress = true};
    struct call *c = call_open(x.stage.router, &x.ann.peer, x.view, &request, &x.ann);
    for (int i = 0; i < 20; i++)
        tell_progress(c, buf_view(&body));
    finish_call(c, "{}");
    assert_int_equal(x.recorder.n_chunks, 1);
    buf_fini(&body);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_from_its_opening_to_its_end),
        cmocka_unit_test(test_what_nobody_offers_is_recorded_too),
        cmocka_unit_test(test_what_is_not_recorded),
        cmocka_unit_test(test_long_bodies_are_kept_by_their_beginning),
        cmocka_unit_test(test_the_oldest_go_first),
        cmocka_unit_test(test_a_call_that_makes_room_for_its_own_end),
        cmocka_unit_test(test_nothing_is_kept_without_room),
        cmocka_unit_test(test_a_plain_call_has_no_legs),
        cmocka_unit_test(test_questions_answers_and_the_cancel_are_legs),
        cmocka_unit_test(test_a_call_that_is_repeated_after_a_crash),
        cmocka_unit_test(test_legs_are_bounded_in_number_and_in_bytes),
        cmocka_unit_test(test_a_call_that_makes_room_for_its_own_legs),
    };
    return cmocka_run_group_tests_name("admin/recorder", tests, NULL, NULL);
}
