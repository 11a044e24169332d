/* core/tasks: the owner of a task, its ids, and when it is forgotten. */
#include "stage.h"

#include "core/tasks.h"

struct table {
    struct timers timers;
    struct tasks *tasks;
    int changes;
};

static void on_change(void *arg)
{
    ((struct table *)arg)->changes++;
}

static void setup_table(struct table *x)
{
    *x = (struct table){0};
    x->tasks = tasks_new(&x->timers);
    tasks_set_epoch(x->tasks, 1000);
    tasks_on_change(x->tasks, on_change, x);
}

static void end_table(struct table *x)
{
    tasks_free(x->tasks);
    assert_int_equal(x->timers.n, 0);
    timers_fini(&x->timers);
}

#define LONG_ID "a-long-id-of-a-server"

static struct task *add(struct table *x, const char *own, const char *owner, uint64_t party)
{
    return tasks_add(x->tasks, &(struct task_facts){.server = SPAN("s"),
                                                    .own = span_str(own),
                                                    .state = SPAN("state"),
                                                    .owner = owner,
                                                    .party = party,
                                                    .plain = true});
}

static void test_only_its_owner_finds_a_task(void **state)
{
    struct table x;

    (void)state;
    setup_table(&x);
    const char *id = add(&x, LONG_ID, "ann", 1)->id;
    assert_non_null(tasks_find(x.tasks, span_str(id), "ann", 2));
    assert_null(tasks_find(x.tasks, span_str(id), "bob", 1));
    assert_null(tasks_find(x.tasks, span_str(id), NULL, 1));
    assert_null(tasks_find(x.tasks, SPAN("other"), "ann", 1));
    end_table(&x);
}

/* Callers without a name: a task belongs to the session that created it, or that last used its id.
 */
static void test_the_session_that_named_it_last_has_it_in_its_list(void **state)
{
    struct table x;

    (void)state;
    setup_table(&x);
    const struct task *t = add(&x, LONG_ID, NULL, 1);
    assert_true(task_is_of(t, NULL, 1));
    assert_false(task_is_of(t, NULL, 2));
    assert_false(task_is_of(t, "ann", 1));
    assert_non_null(tasks_find(x.tasks, span_str(t->id), NULL, 2));
    assert_false(task_is_of(t, NULL, 1));
    assert_true(task_is_of(t, NULL, 2));
    const struct task *named = add(&x, LONG_ID "2", "ann", 1);
    assert_true(task_is_of(named, "ann", 7));
    assert_false(task_is_of(named, NULL, 1));
    end_table(&x);
}

static void test_an_id_is_kept_if_it_is_free_and_cannot_be_guessed(void **state)
{
    struct table x;
    const struct task_facts other = {
        .server = SPAN("other"), .own = SPAN(LONG_ID), .state = SPAN("state"), .plain = true};

    (void)state;
    setup_table(&x);
    assert_string_equal(add(&x, LONG_ID, "ann", 1)->id, LONG_ID);
    assert_string_not_equal(add(&x, "1", "ann", 1)->id, "1");
    const struct task *second = tasks_add(x.tasks, &other);
    assert_string_not_equal(second->id, LONG_ID);
    assert_string_equal(second->own, LONG_ID);
    assert_ptr_equal(tasks_find_own(x.tasks, SPAN("other"), 0, SPAN(LONG_ID)), second);
    end_table(&x);
}

/* If a server uses an id twice, the id means the second task: the first caller must not reach that.
 */
static void test_an_id_that_is_given_again_is_another_task(void **state)
{
    struct table x;

    (void)state;
    setup_table(&x);
    char *id = mem_str(add(&x, "7", "ann", 1)->id);
    const struct task *bobs = add(&x, "7", "bob", 2);
    assert_null(tasks_find(x.tasks, span_str(id), "ann", 1));
    assert_ptr_equal(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN("7")), bobs);
    mem_free(id);
    end_table(&x);
}

static void test_a_task_ends_with_its_process(void **state)
{
    struct table x;
    struct task_facts facts = {
        .server = SPAN("s"), .own = SPAN(LONG_ID), .state = SPAN("state"), .instance = 5};

    (void)state;
    setup_table(&x);
    tasks_add(x.tasks, &facts);
    facts.instance = 6;
    const struct task *other = tasks_add(x.tasks, &facts);
    add(&x, LONG_ID, NULL, 1);
    tasks_forget_instance(x.tasks, 5);
    tasks_forget_instance(x.tasks, 0); /* 0 means no process */
    assert_null(tasks_find_own(x.tasks, SPAN("s"), 5, SPAN(LONG_ID)));
    assert_ptr_equal(tasks_find_own(x.tasks, SPAN("s"), 6, SPAN(LONG_ID)), other);
    assert_non_null(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN(LONG_ID)));
    end_table(&x);
}

static void test_a_process_with_a_task_is_at_work_until_the_task_ends(void **state)
{
    struct table x;
    const struct task_facts facts = {
        .server = SPAN("s"), .own = SPAN("1"), .state = SPAN("state"), .instance = 5};

    (void)state;
    setup_table(&x);
    add(&x, LONG_ID, NULL, 1); /* without an instance: of a server that we do not run */
    assert_false(tasks_at_work(x.tasks, "s"));
    struct task *t = tasks_add(x.tasks, &facts);
    assert_true(tasks_at_work(x.tasks, "s"));
    assert_false(tasks_at_work(x.tasks, "other"));
    task_note(x.tasks, t, SPAN("later"), false);
    assert_true(tasks_at_work(x.tasks, "s"));
    task_note(x.tasks, t, SPAN("later"), true);
    assert_false(tasks_at_work(x.tasks, "s"));
    end_table(&x);
}

static void test_a_task_is_forgotten_when_its_time_is_over(void **state)
{
    struct table x;
    struct task_facts facts = {
        .server = SPAN("s"), .own = SPAN("1"), .state = SPAN("state"), .life = 500};

    (void)state;
    setup_table(&x);
    tasks_add(x.tasks, &facts);
    const struct task *lasting = add(&x, LONG_ID, NULL, 1);
    assert_int_equal(lasting->expires, 1000 + TASK_LIFE_MAX);
    timers_advance(&x.timers, 499);
    assert_non_null(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN("1")));
    timers_advance(&x.timers, 500);
    assert_null(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN("1")));
    assert_int_equal(x.changes, 3);
    timers_advance(&x.timers, TASK_LIFE_MAX);
    assert_null(tasks_next(x.tasks, NULL));
    end_table(&x);
}

static void test_an_owner_with_too_many_loses_its_oldest(void **state)
{
    struct table x;
    char own[24];
    size_t n = 0;

    (void)state;
    setup_table(&x);
    add(&x, "of-bob", "bob", 0);
    for (int i = 0; i < TASKS_BY_ONE + 1; i++) {
        snprintf(own, sizeof own, "%d", i);
        add(&x, own, "ann", 0);
    }
    for (struct task *t = NULL; (t = tasks_next(x.tasks, t));)
        n++;
    assert_int_equal(n, TASKS_BY_ONE + 1);
    assert_null(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN("0")));
    assert_non_null(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN("1")));
    assert_non_null(tasks_find_own(x.tasks, SPAN("s"), 0, SPAN("of-bob")));
    end_table(&x);
}

static void test_what_is_too_long_is_not_kept(void **state)
{
    struct table x;
    struct buf big = {0};

    (void)state;
    setup_table(&x);
    for (size_t i = 0; i < TASK_RESULT_MAX + 1; i++)
        buf_char(&big, 'x');
    struct task_facts facts = {.server = SPAN("s"), .own = span_of(big.p, TASK_ID_MAX + 1)};
    assert_null(tasks_add(x.tasks, &facts));
    facts.own = SPAN("a\0b");
    assert_null(tasks_add(x.tasks, &facts));
    facts.own = SPAN("1");
    facts.result = buf_view(&big);
    assert_null(tasks_add(x.tasks, &facts));
    size_t n = 0;
    facts.own = SPAN_EMPTY; /* so that each call adds another task */
    facts.result.n--;
    while (tasks_add(x.tasks, &facts))
        n++;
    assert_int_equal(n, TASKS_RESULTS_MAX / TASK_RESULT_MAX);
    buf_fini(&big);
    end_table(&x);
}

static void test_what_a_file_has_is_found_again(void **state)
{
    struct table x;
    const struct task_facts facts = {
        .server = SPAN("s"), .own = SPAN("1"), .state = SPAN("state"), .owner = "ann"};

    (void)state;
    setup_table(&x);
    tasks_restore(x.tasks, SPAN("over"), &facts, 1000, false);
    tasks_restore(x.tasks, SPAN("here"), &facts, 1001, true);
    tasks_restore(x.tasks, SPAN("here"), &facts, 9000, false); /* twice in the file */
    tasks_restore(x.tasks, SPAN("long"), &facts, UINT64_MAX, false);
    assert_null(tasks_find(x.tasks, SPAN("over"), "ann", 1));
    const struct task *t = tasks_find(x.tasks, SPAN("here"), "ann", 1);
    assert_true(t && t->cancelled && t->expires == 1001);
    assert_int_equal(tasks_find(x.tasks, SPAN("long"), "ann", 1)->expires, 1000 + TASK_LIFE_MAX);
    assert_int_equal(x.changes, 0);
    end_table(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_its_owner_finds_a_task),
        cmocka_unit_test(test_the_session_that_named_it_last_has_it_in_its_list),
        cmocka_unit_test(test_an_id_is_kept_if_it_is_free_and_cannot_be_guessed),
        cmocka_unit_test(test_an_id_that_is_given_again_is_another_task),
        cmocka_unit_test(test_a_task_ends_with_its_process),
        cmocka_unit_test(test_a_process_with_a_task_is_at_work_until_the_task_ends),
        cmocka_unit_test(test_a_task_is_forgotten_when_its_time_is_over),
        cmocka_unit_test(test_an_owner_with_too_many_loses_its_oldest),
        cmocka_unit_test(test_what_is_too_long_is_not_kept),
        cmocka_unit_test(test_what_a_file_has_is_found_again),
    };

    return cmocka_run_group_tests_name("core/tasks", tests, NULL, NULL);
}
