#include "../unit.h"

#include "base/holdings.h"

#include <stdio.h>

static struct timers clock_;
static struct holdings all;

/* An object with a holding, and what was reported to `let_go`. */
struct thing {
    struct holding held;
    int let_go;
    char why[200];
    struct thing *grows; /* becomes larger inside this thing's `let_go` */
};

static void on_let_go(struct holding *h, const char *why)
{
    struct thing *t = CONTAINER_OF(h, struct thing, held);

    assert_int_equal(h->bytes, 0);
    t->let_go++;
    snprintf(t->why, sizeof t->why, "%s", why);
    if (t->grows)
        holding_set(&t->grows->held, t->grows->held.bytes + 30);
}

static void begin(struct thing *things, size_t n, size_t limit)
{
    clock_.now = 1000;
    holdings_init(&all, &clock_);
    all.limit = limit;
    for (size_t i = 0; i < n; i++) {
        things[i] = (struct thing){0};
        holding_init(&things[i].held, &all, on_let_go);
    }
}

static void test_the_sum(void **state)
{
    (void)state;
    struct thing t[2];
    begin(t, 2, 100);
    holding_set(&t[0].held, 60);
    holding_set(&t[1].held, 40);
    assert_int_equal(all.bytes, 100);
    holding_set(&t[0].held, 10);
    holding_set(&t[1].held, 0);
    assert_int_equal(all.bytes, 10);
    holding_set(&t[0].held, 0);
    assert_int_equal(all.bytes, 0);
    assert_true(list_empty(&all.all));
    assert_int_equal(t[0].let_go + t[1].let_go, 0);
}

/* The largest is let go of first, but not one that shrank recently: its peer is still reading. */
static void test_the_worst_goes_first(void **state)
{
    (void)state;
    struct thing t[3];
    begin(t, 3, 100);
    holding_set(&t[0].held, 30);
    holding_set(&t[1].held, 60);
    clock_.now += 100;
    holding_set(&t[1].held, 59);
    holding_set(&t[2].held, 20);
    assert_int_equal(t[0].let_go, 1);
    assert_int_equal(t[1].let_go + t[2].let_go, 0);
    assert_non_null(strstr(t[0].why, "limits.memory"));
    assert_int_equal(all.bytes, 79);
    holding_set(&t[2].held, 80); /* of the same age as t[1]: the larger one is let go of */
    assert_int_equal(t[2].let_go, 1);
    assert_int_equal(t[1].let_go, 0);
    assert_int_equal(all.bytes, 59);
}

static void test_some_stay_whatever_happens(void **state)
{
    (void)state;
    struct thing t[2];
    begin(t, 2, 100);
    t[0].held.let_go = NULL;
    holding_set(&t[0].held, 90);
    holding_set(&t[1].held, 20);
    assert_int_equal(t[1].let_go, 1);
    holding_set(&t[0].held, 200);
    assert_int_equal(all.bytes, 200);
    assert_false(holdings_fit(&all, 0));
    holding_set(&t[0].held, 0);
    assert_true(holdings_fit(&all, 100));
    assert_false(holdings_fit(&all, 101));
}

/* Holdings are let go of to make room, but none for a size that could never fit. */
static void test_room_is_made(void **state)
{
    (void)state;
    struct thing t[2];
    begin(t, 2, 100);
    holding_set(&t[0].held, 50);
    holding_set(&t[1].held, 40);
    assert_false(holdings_fit(&all, 101));
    assert_int_equal(t[0].let_go + t[1].let_go, 0);
    assert_true(holdings_fit(&all, 30));
    assert_int_equal(t[0].let_go, 1);
    assert_int_equal(t[1].let_go, 0);
}

/* A peer that is cut off may be sent a last message, which makes another queue longer. */
static void test_growing_while_letting_go(void **state)
{
    (void)state;
    struct thing t[3];
    begin(t, 3, 100);
    holding_set(&t[1].held, 20);
    holding_set(&t[2].held, 45);
    t[0].grows = &t[2];
    holding_set(&t[0].held, 80);
    assert_int_equal(t[0].let_go, 1);
    assert_int_equal(t[2].let_go, 0);
    assert_int_equal(all.bytes, 95);
    holding_set(&t[0].held, 90);
    assert_int_equal(t[0].let_go, 2);
    assert_int_equal(t[2].let_go, 1);
    assert_int_equal(all.bytes, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_sum),
        cmocka_unit_test(test_the_worst_goes_first),
        cmocka_unit_test(test_some_stay_whatever_happens),
        cmocka_unit_test(test_room_is_made),
        cmocka_unit_test(test_growing_while_letting_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
