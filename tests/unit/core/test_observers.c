/*
 * Code that waited for a provider had to poll it every few milliseconds. Now observers are called:
 * once for all changes, from the loop, and the callback may do anything.
 */
#include "stage.h"

#include <stdlib.h>

struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
};

/* An observer that writes the state of the fake into the account and calls a hook. */
struct onlooker {
    struct observer observer;
    struct fixture *x;
    const char *name;
    void (*inside)(struct onlooker *self);
    struct onlooker *other;
};

static void on_changed(struct observer *o)
{
    struct onlooker *self = CONTAINER_OF(o, struct onlooker, observer);

    buf_printf(&self->x->stage.account, "%s sees %s\n", self->name,
               provider_state_name(self->x->fake.core.state));
    if (self->inside)
        self->inside(self);
}

static struct onlooker onlooker_of(struct fixture *x, const char *name)
{
    return (struct onlooker){.observer.changed = on_changed, .x = x, .name = name};
}

static void add(struct onlooker *o)
{
    observers_add(router_observers(o->x->stage.router), &o->observer);
}

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->view = view_new("test", NULL);
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    if (x->fake.core.router)
        fake_fini(&x->fake);
    view_free(x->view);
    stage_wait(&x->stage, 5);
    stage_fini(&x->stage);
}

/* Begins with one observer, which has had its first call. */
static void begin_with(struct fixture *x, struct onlooker *o)
{
    begin(x);
    *o = onlooker_of(x, "a");
    add(o);
    stage_wait(&x->stage, 0);
    assert_account(&x->stage, "a sees down\n");
}

static void test_told_once_of_several_changes_and_not_inside(void **state)
{
    struct fixture x;
    struct onlooker a;

    (void)state;
    begin_with(&x, &a);
    fake_ready(&x.fake, "read");
    assert_account(&x.stage, "f start\n");
    stage_wait(&x.stage, 0);
    assert_account(&x.stage, "a sees ready\n");
    stage_wait(&x.stage, 1000);
    assert_account(&x.stage, "");
    fake_publish(&x.fake, "read write");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "a sees ready\n");
    observer_remove(&a.observer);
    observer_remove(&a.observer); /* a second time does nothing */
    end(&x);
}

/* A new observer is called once for the current state; adding it twice has no further effect. */
static void test_told_when_added_though_nothing_changes(void **state)
{
    struct fixture x;
    struct onlooker a, b;

    (void)state;
    begin_with(&x, &a);
    b = onlooker_of(&x, "b");
    add(&b);
    add(&b);
    add(&a);
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "b sees down\n");
    observer_remove(&a.observer);
    observer_remove(&b.observer);
    end(&x);
}

static void remove_both(struct onlooker *self)
{
    observer_remove(&self->observer);
    observer_remove(&self->other->observer);
}

static void test_one_removes_itself_and_another_inside(void **state)
{
    struct fixture x;
    struct onlooker a, b;

    (void)state;
    begin_with(&x, &a);
    b = onlooker_of(&x, "b");
    a.inside = remove_both;
    a.other = &b;
    add(&b);
    provider_want(&x.fake.core);
    stage_wait(&x.stage, 0);
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "f start\na sees starting\n");
    end(&x);
}

/* Frees the observer inside its own callback. */
static void free_itself(struct onlooker *self)
{
    observer_remove(&self->observer);
    free(self);
}

static void test_one_frees_itself_inside(void **state)
{
    struct fixture x;
    struct onlooker *a = malloc(sizeof *a);

    (void)state;
    begin(&x);
    *a = onlooker_of(&x, "a");
    a->inside = free_itself;
    add(a);
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "a sees down\n");
    end(&x);
}

static void remove_provider(struct onlooker *self)
{
    if (self->x->fake.core.state == PROVIDER_BACKOFF)
        fake_fini(&self->x->fake);
}

static void test_one_removes_the_provider_inside(void **state)
{
    struct fixture x;
    struct onlooker a;

    (void)state;
    begin_with(&x, &a);
    a.inside = remove_provider;
    provider_want(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 1");
    stage_wait(&x.stage, 0);
    assert_null(x.fake.core.router);
    assert_account(&x.stage, "f start\na sees backoff\n");
    observer_remove(&a.observer);
    end(&x);
}

static void want(struct onlooker *self)
{
    provider_want(&self->x->fake.core);
}

/* `a` changes the provider: `b` sees the new state at once and is not called again, `a` is called
 * later. */
static void test_changes_while_telling(void **state)
{
    struct fixture x;
    struct onlooker a, b;

    (void)state;
    begin(&x);
    a = onlooker_of(&x, "a");
    b = onlooker_of(&x, "b");
    a.inside = want;
    add(&a);
    add(&b);
    stage_wait(&x.stage, 0);
    assert_account(&x.stage, "a sees down\nf start\nb sees starting\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "a sees starting\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "");
    observer_remove(&a.observer);
    observer_remove(&b.observer);
    end(&x);
}

static void add_again(struct onlooker *self)
{
    observer_remove(&self->observer);
    add(self);
}

/* Such an observer is called in each turn of the loop, but does not block the loop. */
static void test_one_that_adds_itself_again_inside(void **state)
{
    struct fixture x;
    struct onlooker a;

    (void)state;
    begin_with(&x, &a);
    a.inside = add_again;
    fake_ready(&x.fake, "read");
    stage_wait(&x.stage, 0);
    assert_account(&x.stage, "f start\na sees ready\n");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "a sees ready\n");
    observer_remove(&a.observer);
    end(&x);
}

static void test_the_last_call_of_one_that_drains(void **state)
{
    struct fixture x;
    struct onlooker a;

    (void)state;
    begin_with(&x, &a);
    fake_ready(&x.fake, "read");
    stage_wait(&x.stage, 1);
    x.stage.account.n = 0;
    finish_call(client_open(&x.ann, "read"), "1"); /* usually observers are not told of calls */
    struct call *first = client_open(&x.ann, "read"), *second = client_open(&x.ann, "read");
    stage_wait(&x.stage, 1);
    x.fake.core.draining = true; /* now they are told of the last call's end */
    x.stage.account.n = 0;
    finish_call(first, "2");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "ann done 2 2\n");
    finish_call(second, "3");
    stage_wait(&x.stage, 1);
    assert_account(&x.stage, "ann done 3 3\na sees ready\n");
    observer_remove(&a.observer);
    end(&x);
}

/* --- room --- */

/* Has room for one of two providers. */
struct house {
    struct provider_room room;
    struct fixture *x;
};

static const char *ask(struct provider_room *room, bool *soon)
{
    enum provider_state other = CONTAINER_OF(room, struct house, room)->x->fake.core.state;

    *soon = other == PROVIDER_STOPPING;
    return other == PROVIDER_DOWN ? NULL : "the house is full";
}

/* A provider that was held back polled every 20 ms whether there was room. */
static void test_one_that_is_held_back_starts_when_there_is_room(void **state)
{
    struct fixture x;
    struct fake second;
    struct house house = {{ask}, &x};

    (void)state;
    begin(&x);
    fake_init(&second, &x.stage, "g");
    second.core.room = &house.room;
    second.core.policy.eager = false;
    fake_publish(&second, "write");
    view_add(x.view, &second.core, NULL);
    fake_ready(&x.fake, "read");
    client_open(&x.ann, "write");
    assert_account(&x.stage, "f start\nann done 1 busy (retryable)\n");
    provider_unwant(&x.fake.core);
    client_open(&x.ann, "write");
    stage_wait(&x.stage, 1000);
    assert_account(&x.stage, "f stop\n");
    assert_int_equal(second.core.state, PROVIDER_DOWN);
    provider_lost(&x.fake.core, "exited with 0");
    stage_wait(&x.stage, 0);
    assert_account(&x.stage, "f stopped\ng start\n");
    provider_up(&second.core);
    assert_account(&x.stage, "g open 2 write\n");
    finish_call(x.ann.last, "done");
    fake_fini(&second);
    end(&x);
}

/* If no call waits any more, the provider is not started when there is room. */
static void test_one_that_is_held_back_and_given_up(void **state)
{
    struct fixture x;
    struct fake second;
    struct house house = {{ask}, &x};

    (void)state;
    begin(&x);
    fake_init(&second, &x.stage, "g");
    second.core.room = &house.room;
    second.core.policy.eager = false;
    fake_publish(&second, "write");
    view_add(x.view, &second.core, NULL);
    fake_ready(&x.fake, "read");
    provider_unwant(&x.fake.core);
    client_open(&x.ann, "write");
    call_cancel_all(&x.ann.peer);
    x.stage.account.n = 0;
    provider_lost(&x.fake.core, "exited with 0");
    stage_wait(&x.stage, 0);
    assert_account(&x.stage, "f stopped\n");
    fake_fini(&second);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told_once_of_several_changes_and_not_inside),
        cmocka_unit_test(test_told_when_added_though_nothing_changes),
        cmocka_unit_test(test_one_removes_itself_and_another_inside),
        cmocka_unit_test(test_one_frees_itself_inside),
        cmocka_unit_test(test_one_removes_the_provider_inside),
        cmocka_unit_test(test_changes_while_telling),
        cmocka_unit_test(test_one_that_adds_itself_again_inside),
        cmocka_unit_test(test_the_last_call_of_one_that_drains),
        cmocka_unit_test(test_one_that_is_held_back_starts_when_there_is_room),
        cmocka_unit_test(test_one_that_is_held_back_and_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
