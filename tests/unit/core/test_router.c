/* The graph of providers and views, and what belongs to no request: standing calls, broadcasts,
 * list changes. */
#include "stage.h"

/* Two providers, a view of both, a view of the first alone, and a client at each. */
struct fixture {
    struct stage stage;
    struct view *both, *one;
    struct fake a, b;
    struct client ann, bob;
};

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->both = view_new("both", "{server}__{tool}");
    x->one = view_new("one", NULL);
    fake_init(&x->a, &x->stage, "a");
    fake_init(&x->b, &x->stage, "b");
    view_add(x->both, &x->a.core, NULL);
    view_add(x->both, &x->b.core, NULL);
    view_add(x->one, &x->a.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->both);
    client_init(&x->bob, &x->stage, "bob", x->one);
}

static void attach(struct client *c)
{
    router_attach(c->stage->router, &c->peer, c->view, c->answers, c);
}

static void end(struct fixture *x)
{
    x->ann.in_event = x->bob.in_event = NULL;
    call_cancel_all(&x->ann.peer);
    call_cancel_all(&x->bob.peer);
    fake_fini(&x->a);
    fake_fini(&x->b);
    view_free(x->both);
    view_free(x->one);
    stage_fini(&x->stage);
}

static void test_providers_in_order(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct router *r = x.stage.router;
    assert_ptr_equal(router_provider(r, SPAN("a")), &x.a.core);
    assert_ptr_equal(router_provider(r, SPAN("b")), &x.b.core);
    assert_null(router_provider(r, SPAN("c")));
    assert_ptr_equal(router_next_provider(r, NULL), &x.a.core);
    assert_ptr_equal(router_next_provider(r, &x.a.core), &x.b.core);
    assert_null(router_next_provider(r, &x.b.core));
    end(&x);
}

static void test_changes_are_told_to_those_who_see_them(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    attach(&x.bob);
    fake_ready(&x.b, "read");
    assert_account(&x.stage, "b start\nann changed 1 tools\n");
    fake_ready(&x.a, "read p:greet r:file:///a t:file:///{x}");
    assert_account(&x.stage, "a start\nann changed 1 tools resources templates prompts\n"
                             "bob changed 2 tools resources templates prompts\n");
    fake_publish(&x.a, "read p:greet p:bye r:file:///a t:file:///{x}");
    assert_account(&x.stage, "ann changed 1 prompts\nbob changed 2 prompts\n");
    provider_lost(&x.b.core, "exited with 1");
    assert_account(&x.stage, "ann changed 1 tools\n");
    end(&x);
}

static void test_nothing_new_is_told_to_nobody(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    fake_ready(&x.a, "");
    fake_ready(&x.b, "read write");
    x.stage.account.n = 0;
    fake_publish(&x.b, "read write");
    provider_lost(&x.a.core, "it had nothing to show");
    assert_account(&x.stage, "");
    fake_publish(&x.b, "write read"); /* the order is part of the list */
    assert_account(&x.stage, "ann changed 1 tools\n");
    end(&x);
}

static void test_what_is_seen_at_first_is_no_change(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.a, "read");
    attach(&x.ann);
    fake_publish(&x.a, "read");
    assert_account(&x.stage, "a start\n");
    end(&x);
}

static const struct event line = {.kind = EVENT_LOG, .params = {"{1}", 3}};

/*
 * A log line that a server sent while calls of two sessions were open went to both sessions. So one
 * session got a path from the other's call, of a tool that it could not even see.
 */
static void test_a_line_goes_to_the_one_party_it_can_be_of(void **state)
{
    static const struct span deny[] = {{"secret", 6}};
    static const struct narrowing less = {.filters = {[ITEM_TOOL] = {NULL, 0, deny, 1}}};
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    attach(&x.bob);
    fake_ready(&x.a, "read secret");
    x.stage.account.n = 0;
    struct call *first = client_open(&x.ann, "a__secret");
    struct call *second = client_open(&x.ann, "a__read");
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line); /* both calls are ann's */
    assert_account(&x.stage, "ann log 3 {1}\n");
    struct call *other = client_open(&x.bob, "read");
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line); /* both see the whole server */
    assert_account(&x.stage, "ann log 1 {1}\nbob log 2 {1}\n");
    finish_call(other, "");
    view_narrow(x.one, NULL, &less);
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line); /* only ann has calls again */
    assert_account(&x.stage, "ann log 3 {1}\n");
    other = client_open(&x.bob, "read");
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line);
    assert_account(&x.stage, "");
    /* Nor if the client with the narrowed view has no standing call. */
    call_cancel_all(&x.bob.peer);
    other = client_open(&x.bob, "read");
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line);
    assert_account(&x.stage, "");
    finish_call(other, "");
    finish_call(first, "");
    finish_call(second, "");
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line); /* no open call: only clients that see the whole server get it */
    assert_account(&x.stage, "ann log 1 {1}\n");
    attach(&x.bob);
    x.stage.account.n = 0;
    router_tell(&x.a.core, &line);
    assert_account(&x.stage, "");
    end(&x);
}

static void test_broadcasts_reach_who_sees_the_provider(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    attach(&x.bob);
    attach(&x.ann);
    router_broadcast(&x.b.core, &(struct event){.kind = EVENT_LOG, .params = SPAN("{1}")});
    assert_account(&x.stage, "ann log 1 {1}\nann log 3 {1}\n");
    router_broadcast(&x.a.core, &(struct event){.kind = EVENT_OTHER, .params = SPAN("{2}")});
    assert_account(&x.stage, "ann other 1 {2}\nbob other 2 {2}\nann other 3 {2}\n");
    assert_int_equal(x.b.core.stats.events, 1);
    assert_int_equal(router_stats(x.stage.router)->events, 5);
    end(&x);
}

static void test_a_standing_call_ends_by_cancel(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    stage_wait(&x.stage, 1000ull * 1000 * 1000);
    call_cancel(router_find(x.stage.router, 1), FAIL_CANCELLED);
    assert_account(&x.stage, "ann done 1 cancelled\n");
    fake_ready(&x.a, "read");
    assert_account(&x.stage, "a start\n");
    assert_int_equal(router_stats(x.stage.router)->opened, 0);
    end(&x);
}

static void leave(struct client *c, struct call *call, const struct event *event)
{
    (void)call, (void)event;
    c->in_event = NULL;
    call_cancel_all(&c->peer);
}

static void test_leaving_while_being_told(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    attach(&x.ann);
    attach(&x.bob);
    x.ann.in_event = leave;
    fake_ready(&x.a, "read");
    assert_account(&x.stage, "a start\nann changed 1 tools\nann done 1 cancelled\n"
                             "ann done 2 cancelled\nbob changed 3 tools\n");
    end(&x);
}

/* --- reading a list does not lose the change for others --- */

static struct view *const *peek_at;

static void peek(struct client *c, struct call *call, const struct event *event)
{
    (void)call, (void)event;
    c->in_event = NULL;
    (void)view_list(*peek_at, ITEM_TOOL);
}

/*
 * The first client that got a change read the list of another view. That brought the other view up
 * to date, so its own clients, which were next, were not told of the change.
 */
static void test_peeking_while_being_told(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    attach(&x.ann);
    attach(&x.bob);
    peek_at = &x.one;
    x.ann.in_event = peek;
    fake_ready(&x.a, "read");
    assert_account(&x.stage, "a start\nann changed 1 tools\nbob changed 2 tools\n");
    end(&x);
}

static struct client *late;

static void invite(struct client *c, struct call *call, const struct event *event)
{
    (void)call, (void)event;
    c->in_event = NULL;
    attach(late);
}

/* The same with a client that attaches while another is being told. */
static void test_attaching_while_others_are_being_told(void **state)
{
    struct fixture x;
    struct client eve;

    (void)state;
    begin(&x);
    client_init(&eve, &x.stage, "eve", x.one);
    attach(&x.ann);
    attach(&x.bob);
    late = &eve;
    x.ann.in_event = invite;
    fake_ready(&x.a, "read"); /* for eve, who attaches inside, it is no change */
    assert_account(&x.stage, "a start\nann changed 1 tools\nbob changed 2 tools\n");
    call_cancel_all(&eve.peer);
    end(&x);
}

static struct fake *other;

static void publish_more(struct client *c, struct call *call, const struct event *event)
{
    (void)call, (void)event;
    c->in_event = NULL;
    fake_publish(other, "read write");
}

/* A change inside a change: the second client is told only once, and then reads the newest list. */
static void test_a_change_inside_a_change_is_told_once(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.bob.view = x.both;
    attach(&x.ann);
    attach(&x.bob);
    other = &x.a;
    x.ann.in_event = publish_more;
    fake_ready(&x.a, "read");
    assert_account(&x.stage,
                   "a start\nann changed 1 tools\nann changed 1 tools\nbob changed 2 tools\n");
    end(&x);
}

/* --- changing the graph --- */

/*
 * A lazy server that is down is listed. When it was removed from the configuration, clients were
 * not told of the list change; nor when a running server was added to a view or removed from it.
 */
static void test_removing_is_a_change(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.a.core.policy.eager = false;
    fake_publish(&x.a, "read");
    fake_ready(&x.b, "read");
    attach(&x.ann);
    attach(&x.bob);
    x.stage.account.n = 0;
    router_remove_provider(x.stage.router, &x.a.core);
    assert_account(&x.stage, "ann changed 1 tools\nbob changed 2 tools\n");
    assert_null(router_provider(x.stage.router, SPAN("a")));
    assert_false(view_has(x.both, &x.a.core));
    router_add_provider(x.stage.router, &x.a.core);

    view_add(x.one, &x.b.core, NULL);
    router_tell_changes(x.stage.router, &x.b.core);
    assert_account(&x.stage, "bob changed 2 tools\n");
    view_remove(x.one, &x.b.core);
    router_tell_changes(x.stage.router, &x.b.core);
    assert_account(&x.stage, "bob changed 2 tools\n");
    end(&x);
}

/*
 * Stopping a server by hand removes it from the lists, and starting it by hand adds it again.
 * Clients were told of that if it ran, but not if it was idle, where its state does not change.
 */
static void test_halting_one_that_rests_is_a_change(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    x.a.core.policy.eager = false;
    fake_publish(&x.a, "read");
    attach(&x.ann);
    provider_halt(&x.a.core);
    assert_account(&x.stage, "a stopped\nann changed 1 tools\n");
    assert_span(view_list(x.both, ITEM_TOOL), "[]");
    provider_resume(&x.a.core);
    assert_account(&x.stage, "a start\nann changed 1 tools\n");
    end(&x);
}

/*
 * While a server that was to be removed was stopping, a call could still find it in a view and
 * started it again: the reload waited for ever. It is now withdrawn from the views first.
 */
static void test_a_withdrawn_provider_is_not_found(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.a, "read");
    fake_ready(&x.b, "read");
    attach(&x.ann);
    struct call *c = client_open(&x.ann, "b__read");
    x.stage.account.n = 0;
    router_withdraw_provider(x.stage.router, &x.b.core);
    assert_account(&x.stage, "ann changed 1 tools\n");
    client_open(&x.ann, "b__read");
    assert_account(&x.stage, "ann done 3 unknown\n");
    finish_call(c, "calls that are open go on");
    assert_account(&x.stage, "ann done 2 calls that are open go on\n");
    provider_unwant(&x.b.core);
    provider_lost(&x.b.core, "exited with 0");
    assert_account(&x.stage, "b stop\nb stopped\n");
    end(&x);
}

/* Views and providers may end in any order. */
static void test_a_view_or_a_provider_that_ended_is_left_alone(void **state)
{
    struct fixture x;
    struct fake third;
    struct view *gone = view_new("gone", NULL), *left = view_new("left", NULL);

    (void)state;
    begin(&x);
    attach(&x.bob);
    fake_init(&third, &x.stage, "third");
    view_add(gone, &x.a.core, NULL);
    view_add(left, &x.a.core, NULL);
    view_add(left, &third.core, NULL);
    view_add(left, &third.core, NULL);
    view_set_fallback(left, &third.core);
    view_free(gone);
    x.stage.account.n = 0;
    fake_ready(&x.a, "read");
    assert_account(&x.stage, "a start\nbob changed 1 tools\n");
    provider_fini(&third.core);
    assert_ptr_equal(view_member(left, 0), &x.a.core);
    assert_null(view_member(left, 1));
    assert_null(view_fallback(left));
    fake_fini(&third);
    end(&x);
    assert_null(view_member(left, 0));
    view_free(left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_providers_in_order),
        cmocka_unit_test(test_changes_are_told_to_those_who_see_them),
        cmocka_unit_test(test_nothing_new_is_told_to_nobody),
        cmocka_unit_test(test_what_is_seen_at_first_is_no_change),
        cmocka_unit_test(test_a_line_goes_to_the_one_party_it_can_be_of),
        cmocka_unit_test(test_broadcasts_reach_who_sees_the_provider),
        cmocka_unit_test(test_a_standing_call_ends_by_cancel),
        cmocka_unit_test(test_leaving_while_being_told),
        cmocka_unit_test(test_peeking_while_being_told),
        cmocka_unit_test(test_attaching_while_others_are_being_told),
        cmocka_unit_test(test_a_change_inside_a_change_is_told_once),
        cmocka_unit_test(test_removing_is_a_change),
        cmocka_unit_test(test_halting_one_that_rests_is_a_change),
        cmocka_unit_test(test_a_withdrawn_provider_is_not_found),
        cmocka_unit_test(test_a_view_or_a_provider_that_ended_is_left_alone),
    };
    return cmocka_run_group_tests_name("core/router", tests, NULL, NULL);
}
