/* Subscriptions and log levels, which outlive a provider's instances, and asks that belong to no
 * call. */
#include "core/subscriptions.h"
#include "stage.h"

struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann, bob;
};

static void publish(struct fixture *x, const char *words)
{
    struct catalog *c = catalog_of_words(words);

    c->offers = OFFERS_SUBSCRIBE | OFFERS_LOGGING;
    provider_publish(&x->fake.core, c);
}

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->view = view_new("test", NULL);
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    client_init(&x->bob, &x->stage, "bob", x->view);
    provider_want(&x->fake.core);
    publish(x, "read r:file:///a r:file:///b");
    provider_up(&x->fake.core);
    stage_wait(&x->stage, 1000);
    x->stage.account.n = 0;
}

static struct call *attach(struct client *c)
{
    return router_attach(c->stage->router, &c->peer, c->view, c->answers, c);
}

static void end(struct fixture *x)
{
    x->fake.in_open = NULL;
    x->fake.in_answer = NULL;
    call_cancel_all(&x->ann.peer);
    call_cancel_all(&x->bob.peer);
    fake_fini(&x->fake);
    view_free(x->view);
    stage_fini(&x->stage);
}

static void finish_open(struct fixture *x)
{
    while (!list_empty(&x->fake.core.open))
        finish_call(LIST_FIRST(&x->fake.core.open, struct call, in_provider), "{}");
}

static void updated(struct fixture *x, const char *uri)
{
    router_broadcast(&x->fake.core, &(struct event){.kind = EVENT_UPDATED, .name = span_str(uri)});
}

/* --- subscriptions --- */

static void test_a_provider_is_told_once(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    assert_true(subscriptions_add(a, SPAN("file:///a")));
    assert_true(subscriptions_add(b, SPAN("file:///a")));
    assert_true(subscriptions_add(b, SPAN("file:///b")));
    assert_account(&x.stage, "f open 3 file:///a\nf open 4 file:///b\n");
    assert_true(subscriptions_pending(a) && subscriptions_pending(b));
    finish_open(&x);
    assert_account(&x.stage, "ann settled 1\nbob settled 2\n");
    assert_false(subscriptions_pending(a) || subscriptions_pending(b));
    updated(&x, "file:///a");
    updated(&x, "file:///b");
    updated(&x, "file:///c");
    assert_account(&x.stage, "ann updated 1\nbob updated 2\nbob updated 2\n");
    assert_false(subscriptions_remove(a, SPAN("file:///a")));
    assert_true(subscriptions_remove(b, SPAN("file:///a")));
    updated(&x, "file:///a");
    assert_account(&x.stage, "");
    end(&x);
}

static void refuse_open(struct fixture *x)
{
    while (!list_empty(&x->fake.core.open))
        call_done(LIST_FIRST(&x->fake.core.open, struct call, in_provider),
                  &(struct outcome){.kind = OUTCOME_ERROR, .body = SPAN("{\"code\":-32603}")});
}

/*
 * A subscription that the server had refused stayed remembered: it was acknowledged, and the server
 * was not asked for any later consumer.
 */
static void test_what_the_provider_refuses_is_forgotten(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    assert_true(subscriptions_add(a, SPAN("file:///a")));
    assert_true(subscriptions_add(b, SPAN("file:///a")));
    x.stage.account.n = 0;
    refuse_open(&x);
    assert_account(&x.stage, "ann settled 1\nbob settled 2\n");
    assert_false(subscriptions_any(&x.fake.core));
    assert_true(subscriptions_add(b, SPAN("file:///a")));
    assert_account(&x.stage, "f open 4 file:///a\n");
    finish_open(&x);
    x.stage.account.n = 0;
    /* One that the provider had, and that its next instance refuses. */
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 500);
    provider_up(&x.fake.core);
    assert_true(subscriptions_any(&x.fake.core));
    refuse_open(&x);
    assert_false(subscriptions_any(&x.fake.core));
    /* One that the provider could not answer is told to its next instance. */
    assert_true(subscriptions_add(a, SPAN("file:///a")));
    provider_lost(&x.fake.core, "exited with 1");
    assert_true(subscriptions_any(&x.fake.core));
    end(&x);
}

/* An agent that ends its subscription ended another one's, whose request was on its way. */
static void test_the_last_is_not_who_comes_before_another(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann);
    subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    client_request(&x.bob, OP_SUBSCRIBE, "file:///a");
    assert_false(subscriptions_remove(a, SPAN("file:///a")));
    assert_false(subscriptions_remove(a, SPAN("file:///a")));
    client_request(&x.ann, OP_SUBSCRIBE, "file:///b");
    assert_true(subscriptions_remove(a, SPAN("file:///b"))); /* its own does not count */
    finish_open(&x);
    end(&x);
}

static void test_not_everybody_offers_it(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann);
    fake_publish(&x.fake, "r:file:///a");
    assert_false(subscriptions_add(a, SPAN("file:///a")));
    fake_publish(&x.fake, "");
    assert_false(subscriptions_add(a, SPAN("file:///a")));
    assert_int_equal(x.fake.core.n_open, 0);
    end(&x);
}

static void test_a_new_instance_is_told_again(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    subscriptions_note(b, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 500);
    x.stage.account.n = 0;
    provider_up(&x.fake.core);
    assert_account(&x.stage, "ann changed 1 tools resources\nbob changed 2 tools resources\n"
                             "f open 3 file:///a\n");
    end(&x);
}

/* A call that waited for a restart may depend on a subscription at the last instance. It is sent
 * when the new instance has confirmed the subscription, or after a timeout. */
static void test_calls_wait_for_confirmation(void **state)
{
    for (int answers = 0; answers < 2; answers++) {
        struct fixture x;
        (void)state;
        begin(&x);
        struct call *a = attach(&x.ann);
        subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
        provider_lost(&x.fake.core, "exited with 1");
        client_open(&x.bob, "read");
        stage_wait(&x.stage, 500);
        x.stage.account.n = 0;
        provider_up(&x.fake.core);
        assert_account(&x.stage, "ann changed 1 tools resources\nf open 3 file:///a\n");
        if (answers)
            finish_call(LIST_FIRST(&x.fake.core.open, struct call, in_provider), "{}");
        else
            stage_wait(&x.stage, 2000);
        assert_account(&x.stage, "f open 2 read\n");
        end(&x);
    }
}

static void test_the_last_to_leave_unsubscribes(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    subscriptions_note(b, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    call_cancel(a, FAIL_CANCELLED);
    assert_account(&x.stage, "ann done 1 cancelled\n");
    call_cancel(b, FAIL_CANCELLED);
    assert_account(&x.stage, "bob done 2 cancelled\nf open 3 file:///a\n");
    end(&x);
}

/*
 * A subscription pointed to its provider until its consumer ended. When a reload had removed the
 * provider, the end of the consumer used freed memory to unsubscribe.
 */
static void test_a_removed_provider_is_forgotten(void **state)
{
    struct fixture x;
    struct fake *gone = MEM_NEW(struct fake);

    (void)state;
    begin(&x);
    fake_init(gone, &x.stage, "gone");
    view_add(x.view, &gone->core, NULL);
    struct call *a = attach(&x.ann);
    subscriptions_note(a, &gone->core, SPAN("other://1"), SPAN("other://1"));
    subscriptions_note(a, &gone->core, SPAN("other://2"), SPAN("other://2"));
    subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    fake_fini(gone);
    mem_free(gone);
    call_cancel(a, FAIL_CANCELLED);
    assert_account(&x.stage, "ann done 1 cancelled\nf open 2 file:///a\n");
    end(&x);
}

/* A server is replaced by another one: consumers that see the other one notice nothing. */
static void test_a_successor_is_told_what_the_one_before_knew(void **state)
{
    struct fixture x;
    struct fake *next = MEM_NEW(struct fake);
    struct view *own = view_new("own", NULL);

    (void)state;
    begin(&x);
    fake_init(next, &x.stage, "next");
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    struct call *c = router_attach(x.stage.router, &x.bob.peer, own, 0, &x.bob);
    view_add(own, &x.fake.core, NULL);
    subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    subscriptions_note(b, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    subscriptions_note(c, &x.fake.core, SPAN("file:///b"), SPAN("file:///b"));
    subscriptions_want_log(x.stage.router, x.view, 1, "info");
    provider_want(&next->core);
    provider_up(&next->core);
    view_add(x.view, &next->core, NULL);
    stage_wait(&x.stage, 1000);
    finish_open(&x);
    x.stage.account.n = 0;

    subscriptions_hand_over(&x.fake.core, &next->core);
    assert_account(&x.stage, "next open 5 info\nnext open 6 file:///a\n");
    assert_false(subscriptions_uri(a, &x.fake.core, SPAN("file:///a")).p);
    assert_true(subscriptions_uri(a, &next->core, SPAN("file:///a")).p);
    assert_true(subscriptions_uri(b, &next->core, SPAN("file:///a")).p);
    assert_false(subscriptions_uri(c, &next->core, SPAN("file:///b")).p); /* does not see it */
    subscriptions_hand_over(&x.fake.core, &next->core);
    assert_account(&x.stage, "");

    while (!list_empty(&next->core.open))
        finish_call(LIST_FIRST(&next->core.open, struct call, in_provider), "{}");
    call_cancel_all(&x.ann.peer);
    call_cancel_all(&x.bob.peer);
    x.stage.account.n = 0;
    fake_fini(next);
    mem_free(next);
    view_free(own);
    end(&x);
}

static struct client *leaver;

static void make_leave(struct fake *f, struct call *c, const struct request *request)
{
    (void)f, (void)c, (void)request;
    if (leaver)
        call_cancel_all(&leaver->peer);
    leaver = NULL;
}

/*
 * Subscriptions were sent to a new instance while iterating over them. If sending one ended a
 * consumer (the instance broke, and the consumer left with it), the iteration went on in freed
 * memory.
 */
static void test_a_consumer_leaves_while_its_subscriptions_are_told(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    subscriptions_note(a, &x.fake.core, SPAN("file:///a"), SPAN("file:///a"));
    subscriptions_note(b, &x.fake.core, SPAN("file:///b"), SPAN("file:///b"));
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 500);
    x.fake.in_open = make_leave;
    leaver = &x.ann;
    provider_up(&x.fake.core);
    assert_int_equal(x.fake.core.stats.opened, 3); /* two subscribes and one unsubscribe */
    end(&x);
}

/* One agent had 80 subscriptions to URIs of 10 MB, and the memory for them was never counted. */
static void test_what_one_consumer_may_subscribe_to_is_limited(void **state)
{
    struct fixture x;
    BUF_SCOPED uri = {0};

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann), *b = attach(&x.bob);
    for (size_t i = 0; i < 9000; i++)
        buf_char(&uri, 'u');
    assert_non_null(subscriptions_refuse(a, buf_view(&uri)));
    assert_false(subscriptions_add(a, buf_view(&uri)));
    for (unsigned i = 0; i < 1000; i++) {
        buf_reset(&uri, SIZE_MAX);
        buf_printf(&uri, "file:///%u", i);
        assert_true(subscriptions_add(a, buf_view(&uri)));
        finish_open(&x);
    }
    assert_false(subscriptions_add(a, SPAN("file:///more")));
    assert_true(subscriptions_add(a, SPAN("file:///7")));
    assert_true(subscriptions_add(b, SPAN("file:///more")));
    subscriptions_remove(a, SPAN("file:///7"));
    assert_true(subscriptions_add(a, SPAN("file:///more")));
    end(&x);
}

/* --- log levels --- */

static void test_log_levels_only_get_more_verbose(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    subscriptions_want_log(x.stage.router, x.view, 4, "error");
    subscriptions_want_log(x.stage.router, x.view, 6, "alert");
    subscriptions_want_log(x.stage.router, x.view, 1, "info");
    finish_open(&x);
    assert_account(&x.stage, "f open 1 error\nf open 2 info\n");
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 500);
    provider_up(&x.fake.core);
    assert_account(&x.stage, "f start\nf open 3 info\n");
    end(&x);
}

/* --- what the router opens itself --- */

static void ask_in_open(struct fake *f, struct call *c, const struct request *request)
{
    (void)f, (void)request;
    ask_call(c, "1", 0);
}

/*
 * A server asked a question on a subscription that the router itself had sent. The router as a
 * consumer had no `ask` callback, so such a server crashed the program.
 */
static void test_the_router_itself_answers_nothing(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.fake.in_open = ask_in_open;
    struct call *a = attach(&x.ann);
    subscriptions_add(a, SPAN("file:///a"));
    assert_account(&x.stage, "f open 2 file:///a\nf answer 2 1 refused\n");
    finish_open(&x);
    end(&x);
}

static void test_own_calls_are_counted_like_others(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    subscriptions_want_log(x.stage.router, x.view, 1, "info");
    finish_open(&x);
    const struct stats *all = router_stats(x.stage.router);
    assert_int_equal(all->opened, 1);
    assert_int_equal(all->results, 1);
    end(&x);
}

/* --- asks that belong to no call --- */

static bool ask_standing(struct fixture *x, const char *key, unsigned needs)
{
    return ask_put_standing(
        &x->fake.core,
        &(struct ask){.key = span_str(key), .method = SPAN("roots/list"), .needs = needs});
}

static void test_an_ask_of_nobody_goes_to_the_only_one(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    assert_false(ask_standing(&x, "1", 0));
    x.ann.answers = ANSWERS_ROOTS;
    struct call *a = attach(&x.ann);
    assert_true(ask_standing(&x, "1", ANSWERS_ROOTS));
    assert_true(ask_standing(&x, "2", ANSWERS_SAMPLING));
    assert_account(&x.stage, "ann ask 1 f/1\nf answer 1 2 refused\n");
    stage_wait(&x.stage, 1000ull * 1000 * 1000);
    answer_call(a, "f/1", "[]");
    answer_call(a, "f/1", "[]");
    assert_account(&x.stage, "f answer 1 1 []\n");
    attach(&x.bob);
    assert_false(ask_standing(&x, "3", 0)); /* two consumers: it could be for either */
    end(&x);
}

/*
 * Two servers of one session asked at the same time, both with id 1. Keys are unique on a call, but
 * on a standing call several servers ask: the first answer went to the server that had asked first.
 */
static void test_two_ask_with_one_key(void **state)
{
    struct fixture x;
    struct fake g;

    (void)state;
    begin(&x);
    fake_init(&g, &x.stage, "g");
    view_add(x.view, &g.core, NULL);
    fake_ready(&g, "");
    struct call *a = attach(&x.ann);
    x.stage.account.n = 0;
    assert_true(ask_standing(&x, "1", 0));
    assert_true(ask_put_standing(&g.core, &(struct ask){.key = SPAN("1")}));
    answer_call(a, "g/1", "for g");
    answer_call(a, "f/1", "for f");
    assert_account(&x.stage, "ann ask 1 f/1\nann ask 1 g/1\n"
                             "g answer 1 1 for g\nf answer 1 1 for f\n");
    fake_fini(&g);
    end(&x);
}

/* A provider that is stopping cannot be answered, and the next instance did not ask. */
static void test_a_stopping_provider_asks_nothing(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    provider_unwant(&x.fake.core);
    x.stage.account.n = 0;
    assert_false(ask_standing(&x, "1", 0));
    assert_account(&x.stage, "");
    end(&x);
}

/* An answer must not reach an instance that did not ask, and the consumer is told that none is
 * wanted any more: it went on asking its user. */
static void test_a_standing_ask_ends_with_its_instance(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *a = attach(&x.ann);
    ask_standing(&x, "1", 0);
    ask_standing(&x, "2", 0);
    client_open(&x.ann, "read");
    x.stage.account.n = 0;
    provider_lost(&x.fake.core, "exited with 1");
    assert_account(&x.stage, "ann done 2 crashed\nann unasked 1 f/1\nann unasked 1 f/2\n"
                             "ann changed 1 tools resources\n");
    stage_wait(&x.stage, 500);
    provider_up(&x.fake.core);
    x.stage.account.n = 0;
    answer_call(a, "f/1", "[]");
    assert_account(&x.stage, "");
    end(&x);
}

/*
 * The consumer left while a server waited for its answer on the standing call. Standing calls have
 * no `cancel`, so the server waited for ever: it must be told that no answer will come.
 */
static void test_a_standing_ask_ends_with_its_consumer(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    ask_standing(&x, "1", 0);
    ask_standing(&x, "2", 0);
    call_cancel_all(&x.ann.peer);
    assert_account(&x.stage, "ann ask 1 f/1\nann ask 1 f/2\nann done 1 cancelled\n"
                             "f answer 1 1 cancelled\nf answer 1 2 cancelled\n");
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_provider_is_told_once),
        cmocka_unit_test(test_what_the_provider_refuses_is_forgotten),
        cmocka_unit_test(test_the_last_is_not_who_comes_before_another),
        cmocka_unit_test(test_not_everybody_offers_it),
        cmocka_unit_test(test_a_new_instance_is_told_again),
        cmocka_unit_test(test_calls_wait_for_confirmation),
        cmocka_unit_test(test_the_last_to_leave_unsubscribes),
        cmocka_unit_test(test_a_removed_provider_is_forgotten),
        cmocka_unit_test(test_a_successor_is_told_what_the_one_before_knew),
        cmocka_unit_test(test_a_consumer_leaves_while_its_subscriptions_are_told),
        cmocka_unit_test(test_what_one_consumer_may_subscribe_to_is_limited),
        cmocka_unit_test(test_log_levels_only_get_more_verbose),
        cmocka_unit_test(test_the_router_itself_answers_nothing),
        cmocka_unit_test(test_own_calls_are_counted_like_others),
        cmocka_unit_test(test_an_ask_of_nobody_goes_to_the_only_one),
        cmocka_unit_test(test_two_ask_with_one_key),
        cmocka_unit_test(test_a_stopping_provider_asks_nothing),
        cmocka_unit_test(test_a_standing_ask_ends_with_its_instance),
        cmocka_unit_test(test_a_standing_ask_ends_with_its_consumer),
    };
    return cmocka_run_group_tests_name("core/subscriptions", tests, NULL, NULL);
}
