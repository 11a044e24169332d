/* The word for the state of a server, from its start to its end; and instances counted as one
 * server. */
#include "../core/stage.h"
#include "admin/inside.h"

static const char *word_of(const struct fake *f)
{
    return health_word(health_of(&f->core));
}

static void test_a_server_from_start_to_end(void **state)
{
    struct stage stage;
    struct fake fake;
    struct provider *p = &fake.core;

    (void)state;
    stage_init(&stage);
    fake_init(&fake, &stage, "a");
    provider_want(p);
    assert_string_equal(word_of(&fake), "starting");
    provider_up(p);
    assert_string_equal(word_of(&fake), "up");
    provider_lost(p, "exited with 1");
    assert_string_equal(word_of(&fake), "failing");
    stage_wait(&stage, 1000);
    assert_int_equal(p->state, PROVIDER_STARTING);
    assert_string_equal(word_of(&fake), "failing"); /* until the new start succeeds */
    provider_up(p);
    provider_halt(p);
    assert_string_equal(word_of(&fake), "stopped");
    provider_resume(p);
    assert_string_equal(word_of(&fake), "starting"); /* again, once it has stopped */
    fake_fini(&fake);
    stage_fini(&stage);
}

/* A server that is stopped while idle does not count as down: the next call starts it. */
static void test_idle(void **state)
{
    struct stage stage;
    struct fake lazy, resting;

    (void)state;
    stage_init(&stage);
    fake_init(&lazy, &stage, "lazy");
    lazy.core.policy.eager = false;
    assert_string_equal(word_of(&lazy), "idle");
    fake_init(&resting, &stage, "resting");
    resting.core.policy.idle_stop = 1000;
    fake_ready(&resting, "read");
    stage_wait(&stage, 1000);
    assert_string_equal(word_of(&resting), "idle");
    provider_lost(&resting.core, "");
    assert_string_equal(word_of(&resting), "idle");
    fake_fini(&lazy);
    fake_fini(&resting);
    stage_fini(&stage);
}

/* Instances of one server for single sessions count as that server. */
static void test_instances_are_added_up(void **state)
{
    struct stage stage;
    struct fake fakes[2];
    struct view *views[2];
    struct client ann;

    (void)state;
    stage_init(&stage);
    for (size_t i = 0; i < 2; i++) {
        fake_init(&fakes[i], &stage, "a");
        fake_ready(&fakes[i], "read");
        views[i] = view_new(i ? "own" : "a", NULL);
        view_add(views[i], &fakes[i].core, NULL);
    }
    client_init(&ann, &stage, "ann", views[0]);
    finish_call(client_open(&ann, "read"), "shared");
    ann.view = views[1];
    client_open(&ann, "read");
    const struct admin admin = {.router = stage.router};
    struct stats stats = status_stats(&admin, &fakes[0].core);
    assert_int_equal(stats.opened, 2);
    assert_int_equal(stats.in_flight, 1);
    assert_int_equal(stats.starts, 2);
    call_cancel_all(&ann.peer);
    for (size_t i = 0; i < 2; i++) {
        fake_fini(&fakes[i]);
        view_free(views[i]);
    }
    stage_fini(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_from_start_to_end),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_instances_are_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
