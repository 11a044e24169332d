#include "../unit.h"

#include "base/timers.h"

enum { TIMERS = 60 };

/* A timer that records when it fired, and may set itself or set or clear another one. */
struct probe {
    struct timer timer;
    struct timers *all;
    unsigned fired;
    uint64_t when;
    struct probe *also; /* the timer that is set when this one fires */
    uint64_t delay;     /* the delay that `also` is set to */
    struct probe *clear;
};

static uint64_t last_at;

static void on_fire(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    assert_false(timer_is_set(t));
    assert_true(t->at >= last_at && t->at <= p->all->now);
    last_at = t->at;
    p->fired++;
    p->when = p->all->now;
    if (p->clear)
        timer_clear(p->all, &p->clear->timer);
    if (p->also)
        timer_set(p->all, &p->also->timer, p->delay);
}

static struct probe probe_of(struct timers *all)
{
    return (struct probe){.timer = {.fire = on_fire}, .all = all};
}

static int reset(void **state)
{
    (void)state;
    last_at = 0;
    return 0;
}

static void test_fires_when_due(void **state)
{
    struct timers ts = {0};
    struct probe a = probe_of(&ts), b = probe_of(&ts);

    (void)state;
    assert_true(timers_next(&ts) == UINT64_MAX);
    timers_advance(&ts, 100);
    timer_set(&ts, &a.timer, 50);
    timer_set(&ts, &b.timer, 20);
    assert_int_equal(timers_next(&ts), 120);
    timers_advance(&ts, 119);
    assert_int_equal(a.fired + b.fired, 0);
    timers_advance(&ts, 120);
    assert_int_equal(b.fired, 1);
    timer_set(&ts, &a.timer, 100); /* set again, to a later time */
    timers_advance(&ts, 150);
    assert_int_equal(a.fired, 0);
    timers_advance(&ts, 10); /* the clock never goes back */
    assert_int_equal(ts.now, 150);
    timers_advance(&ts, 220);
    assert_int_equal(a.fired, 1);
    timer_clear(&ts, &a.timer); /* not set: nothing happens */
    assert_int_equal(ts.n, 0);
    timer_set(&ts, &a.timer, 5);
    timers_fini(&ts);
    assert_false(timer_is_set(&a.timer));
}

static void test_callbacks_change_timers(void **state)
{
    struct timers ts = {0};
    struct probe a = probe_of(&ts), b = probe_of(&ts), c = probe_of(&ts);

    (void)state;
    a.also = &c;
    a.delay = 10;
    a.clear = &b;
    timer_set(&ts, &a.timer, 1);
    timer_set(&ts, &b.timer, 2);
    timers_advance(&ts, 5); /* both are due, but the first clears the second */
    assert_int_equal(b.fired, 0);
    assert_int_equal(timers_next(&ts), 15);
    timers_advance(&ts, 15);
    assert_int_equal(c.fired, 1);
    timers_fini(&ts);
}

/* A timer that sets itself to 0 whenever it fires once kept timers_advance from ever returning. */
static void test_zero_delay_in_callback(void **state)
{
    struct timers ts = {0};
    struct probe a = probe_of(&ts);

    (void)state;
    a.also = &a;
    a.delay = 0;
    timer_set(&ts, &a.timer, 0);
    timers_advance(&ts, 0);
    assert_int_equal(a.fired, 1);
    assert_int_equal(timers_next(&ts), 1);
    timers_advance(&ts, 1);
    assert_int_equal(a.fired, 2);
    timers_fini(&ts);
}

/* now + UINT64_MAX once wrapped around: "never" fired at once. */
static void test_never(void **state)
{
    struct timers ts = {0};
    struct probe a = probe_of(&ts);

    (void)state;
    timers_advance(&ts, 1000);
    timer_set(&ts, &a.timer, UINT64_MAX);
    timers_advance(&ts, 1000000);
    assert_int_equal(a.fired, 0);
    assert_true(timers_next(&ts) == UINT64_MAX);
    timers_fini(&ts);
}

/* Random sets, clears and steps, compared with an array that is searched from end to end. */
static void test_against_model(void **state)
{
    struct timers ts = {0};
    struct probe probes[TIMERS];
    uint64_t due[TIMERS], fired_before[TIMERS], seed = 21;

    (void)state;
    for (size_t i = 0; i < TIMERS; i++) {
        probes[i] = probe_of(&ts);
        due[i] = UINT64_MAX;
    }
    for (int round = 0; round < 50000; round++) {
        size_t k = unit_below(&seed, TIMERS);
        uint64_t step = unit_below(&seed, 30), earliest = UINT64_MAX;
        switch (unit_below(&seed, 4)) {
        case 0:
            timer_clear(&ts, &probes[k].timer);
            due[k] = UINT64_MAX;
            break;
        case 1:
            for (size_t i = 0; i < TIMERS; i++)
                fired_before[i] = probes[i].fired;
            last_at = 0;
            timers_advance(&ts, ts.now + step);
            for (size_t i = 0; i < TIMERS; i++) {
                bool was_due = due[i] <= ts.now;
                assert_int_equal(probes[i].fired - fired_before[i], was_due);
                due[i] = was_due ? UINT64_MAX : due[i];
            }
            break;
        default:
            timer_set(&ts, &probes[k].timer, step);
            due[k] = ts.now + step;
        }
        for (size_t i = 0; i < TIMERS; i++) {
            assert_int_equal(timer_is_set(&probes[i].timer), due[i] != UINT64_MAX);
            earliest = due[i] < earliest ? due[i] : earliest;
        }
        assert_true(timers_next(&ts) == earliest);
    }
    timers_fini(&ts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_fires_when_due, reset),
        cmocka_unit_test_setup(test_callbacks_change_timers, reset),
        cmocka_unit_test_setup(test_zero_delay_in_callback, reset),
        cmocka_unit_test_setup(test_never, reset),
        cmocka_unit_test_setup(test_against_model, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
