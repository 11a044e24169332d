#include "io_test.h"

#include <signal.h>
#include <unistd.h>

struct probe {
    struct loop *loop;
    struct timer timer;
    struct deferred deferred;
    int n;
    uint64_t at;
    char *log;
    char mark;
};

static void on_timer(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);
    p->n++;
    p->at = loop_now(p->loop);
    if (p->log)
        strncat(p->log, &p->mark, 1);
}

static void probe_set(struct probe *p, uint64_t delay)
{
    p->timer.fire = on_timer;
    timer_set(loop_timers(p->loop), &p->timer, delay);
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    loop_run(l);
    loop_step(l, 10000); /* does not wait when nothing is pending */
    loop_free(l);
}

static void test_timers_fire_in_order_and_in_time(void **state)
{
    (void)state;
    char log[8] = "";
    struct loop *l = loop_new();
    struct probe a = {.loop = l, .log = log, .mark = 'a'};
    struct probe b = {.loop = l, .log = log, .mark = 'b'};
    struct probe c = {.loop = l, .log = log, .mark = 'c'};
    uint64_t start = loop_now(l);
    probe_set(&a, 60);
    probe_set(&b, 20);
    probe_set(&c, 40);
    loop_run(l); /* only the pending timers keep the loop running */
    assert_string_equal(log, "bca");
    assert_true(a.at >= start + 60 && b.at >= start + 20 && c.at >= start + 40);
    assert_true(b.at < start + 60);
    loop_free(l);
}

static void on_timer_sooner(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);
    struct probe *other = (struct probe *)(void *)p->log;
    p->n++;
    probe_set(other, 10);
}

/* libuv's one timer is armed for the earliest deadline: an earlier one must re-arm it, whether it
 * is set before the loop runs or from inside a turn. */
static void test_an_earlier_timer_is_not_late(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct probe late = {.loop = l}, first = {.loop = l}, second = {.loop = l};
    probe_set(&late, 60000);
    loop_step(l, 0); /* arms libuv's timer for `late` */
    first.log = (char *)(void *)&second;
    first.timer.fire = on_timer_sooner;
    timer_set(loop_timers(l), &first.timer, 10);
    WAIT_MS(l, second.n == 1, 5000);
    assert_int_equal(first.n, 1);
    assert_int_equal(late.n, 0);
    timer_clear(loop_timers(l), &late.timer);
    loop_run(l); /* a cleared timer does not keep the loop running, though libuv's is armed */
    loop_free(l);
}

/* A program may work for long before the loop runs: delays count from when the timer is set. */
static void test_a_timer_set_outside_of_a_turn_counts_from_now(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct probe p = {.loop = l};
    usleep(60000);
    probe_set(&p, 50);
    loop_step(l, 20);
    assert_int_equal(p.n, 0);
    WAIT(l, p.n == 1);
    loop_free(l);
}

static void on_deferred(struct deferred *d)
{
    struct probe *p = CONTAINER_OF(d, struct probe, deferred);
    p->n++;
    if (p->log)
        strncat(p->log, &p->mark, 1);
}

static void test_deferred_run_once_in_order(void **state)
{
    (void)state;
    char log[8] = "";
    struct loop *l = loop_new();
    struct probe a = {.log = log, .mark = 'a'}, b = {.log = log, .mark = 'b'};
    struct probe c = {.log = log, .mark = 'c'}, d = {0};
    loop_defer(l, &a.deferred, on_deferred);
    loop_defer(l, &b.deferred, on_deferred);
    loop_defer(l, &c.deferred, on_deferred);
    loop_defer(l, &a.deferred, on_deferred); /* already queued */
    loop_undefer(&b.deferred);
    loop_undefer(&d.deferred); /* was never queued */
    loop_run(l);
    assert_string_equal(log, "ac");
    loop_undefer(&a.deferred); /* has already run */
    loop_defer(l, &a.deferred, on_deferred);
    loop_step(l, 0);
    assert_string_equal(log, "aca");
    loop_free(l);
}

static void on_deferred_again(struct deferred *d)
{
    struct probe *p = CONTAINER_OF(d, struct probe, deferred);
    if (++p->n < 5)
        loop_defer(p->loop, d, on_deferred_again);
}

static void on_deferred_takes_back(struct deferred *d)
{
    struct probe *p = CONTAINER_OF(d, struct probe, deferred);
    p->n++;
    loop_undefer((struct deferred *)(void *)p->log);
}

/* Deferred work that defers itself again must not starve the loop, nor wait for a timer. */
static void test_deferred_from_deferred_is_next_turn(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct probe p = {.loop = l};
    loop_defer(l, &p.deferred, on_deferred_again);
    loop_step(l, 0);
    assert_in_range(p.n, 1, 4);
    loop_run(l);
    assert_int_equal(p.n, 5);

    /* The same while the loop has a timer that it could sleep for. */
    struct probe far = {.loop = l};
    probe_set(&far, 60000);
    uint64_t start = loop_now(l);
    p.n = 0;
    loop_defer(l, &p.deferred, on_deferred_again);
    while (p.n < 5)
        loop_step(l, 10000);
    assert_true(loop_now(l) - start < 5000);
    timer_clear(loop_timers(l), &far.timer);

    struct probe victim = {0}, taker = {.log = (char *)(void *)&victim.deferred};
    loop_defer(l, &taker.deferred, on_deferred_takes_back);
    loop_defer(l, &victim.deferred, on_deferred);
    loop_run(l);
    assert_int_equal(taker.n, 1);
    assert_int_equal(victim.n, 0);
    loop_free(l);
}

static void on_timer_stop(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct probe, timer)->loop);
}

static void test_stop(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct probe far = {.loop = l}, stopper = {.loop = l};
    probe_set(&far, 100000);
    loop_stop(l); /* stopping before the loop runs counts as well */
    loop_run(l);
    stopper.timer.fire = on_timer_stop;
    timer_set(loop_timers(l), &stopper.timer, 5);
    loop_run(l);
    assert_int_equal(far.n, 0);
    timer_clear(loop_timers(l), &far.timer);
    loop_free(l);
}

static void on_slow(struct deferred *d)
{
    (void)d;
    usleep(30 * 1000);
}

/*
 * When the work of a turn took longer than the wait of loop_step, the timer that ends the wait had
 * fired before the wait began, and the loop slept until something else happened. On a busy machine
 * a unit test hung for ever.
 */
static void test_a_step_after_slow_work_does_not_oversleep(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct probe later = {.loop = l};
    struct deferred slow = {0};
    probe_set(&later, 2000);
    loop_defer(l, &slow, on_slow);
    loop_step(l, 5);
    assert_int_equal(later.n, 0);
    timer_clear(loop_timers(l), &later.timer);
    loop_free(l);
}

static void on_signal(void *arg, int signo)
{
    *(int *)arg = signo;
}

static void test_signals(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    int seen = 0, other = 0;
    assert_int_equal(loop_on_signal(l, SIGUSR1, on_signal, &other), 0);
    assert_int_equal(loop_on_signal(l, SIGUSR1, on_signal, &seen), 0); /* replaces the first */
    assert_true(loop_on_signal(l, SIGKILL, on_signal, &seen) < 0);
    loop_run(l); /* waiting for a signal does not keep the loop running */
    struct probe alive = {.loop = l};
    probe_set(&alive, 60000);
    kill(getpid(), SIGUSR1);
    WAIT(l, seen == SIGUSR1);
    assert_int_equal(other, 0);
    kill(getpid(), SIGPIPE); /* must be ignored, else it kills the test */
    timer_clear(loop_timers(l), &alive.timer);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_timers_fire_in_order_and_in_time),
        cmocka_unit_test(test_an_earlier_timer_is_not_late),
        cmocka_unit_test(test_a_timer_set_outside_of_a_turn_counts_from_now),
        cmocka_unit_test(test_deferred_run_once_in_order),
        cmocka_unit_test(test_deferred_from_deferred_is_next_turn),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_a_step_after_slow_work_does_not_oversleep),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
