#include "../unit.h"
#include "mcp/agent/event_store.h"

static struct timers timers;
static struct holdings holdings;

static void add(struct event_store *s, uint64_t stream, size_t n, char fill, bool missed)
{
    struct buf event = {0};

    memset(buf_room(&event, n), fill, n);
    event.n = n;
    event_store_add(s, event_store_next(s, stream), buf_view(&event), missed);
    buf_fini(&event);
}

#define assert_replayed(s, stream, after, n, text)                                                 \
    do {                                                                                           \
        struct buf replayed = {0};                                                                 \
        assert_int_equal(event_store_replay((s), (struct event_id){(stream), (after)}, &replayed), \
                         (n));                                                                     \
        assert_span(buf_view(&replayed), (text));                                                  \
        buf_fini(&replayed);                                                                       \
    } while (0)

static void test_a_stream_gets_its_own_later_events(void **state)
{
    (void)state;
    struct event_store s;
    event_store_init(&s, &holdings);
    add(&s, 0, 1, 'a', false); /* number 1 */
    add(&s, 7, 1, 'b', false);
    add(&s, 0, 1, 'c', true);
    add(&s, 7, 1, 'd', false);
    assert_replayed(&s, 0, 0, 2, "ac");
    assert_replayed(&s, 0, 1, 1, "c");
    assert_replayed(&s, 7, 1, 2, "bd");
    assert_replayed(&s, 7, 3, 1, "d");
    assert_replayed(&s, 7, 4, 0, "");
    assert_replayed(&s, 3, 0, 0, "");
    event_store_fini(&s);
}

static void test_ids_go_out_and_come_back(void **state)
{
    (void)state;
    struct event_store s, other;
    struct event_id id;
    struct buf text = {0};
    event_store_init(&s, &holdings);
    event_store_init(&other, &holdings);
    for (int i = 0; i < 12; i++) {
        text.n = 0;
        event_store_put_id(&s, &text, event_store_next(&s, 5));
        event_store_next(&other, 5);
    }
    assert_true(event_store_parse(&s, buf_view(&text), &id));
    assert_int_equal(id.stream, 5);
    assert_int_equal(id.number, 12);
    assert_false(event_store_parse(&other, buf_view(&text), &id)); /* of another session */
    for (size_t n = 0; n + 2 < text.n; n++)
        assert_false(event_store_parse(&s, span_cut(buf_view(&text), 0, n), &id));
    static const char *const tails[] = {"x", "-", "0", "000000000000000000000", "\n", "\n1"};
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        struct buf longer = {0};
        buf_span(&longer, buf_view(&text));
        buf_str(&longer, tails[i]);
        assert_false(event_store_parse(&s, buf_view(&longer), &id));
        buf_fini(&longer);
    }
    assert_false(event_store_parse(&s, SPAN_EMPTY, &id));
    buf_fini(&text);
    event_store_fini(&s);
    event_store_fini(&other);
}

static void test_the_oldest_go_first(void **state)
{
    (void)state;
    struct event_store s;
    event_store_init(&s, &holdings);
    for (int i = 0; i < EVENT_STORE_EVENTS + 10; i++)
        add(&s, 1, 1, (char)('a' + i % 26), false);
    assert_int_equal(s.n, EVENT_STORE_EVENTS);
    struct buf all = {0};
    assert_int_equal(event_store_replay(&s, (struct event_id){1, 0}, &all), EVENT_STORE_EVENTS);
    assert_int_equal(all.p[0], 'a' + 10);
    buf_fini(&all);
    for (int i = 0; i < 10; i++)
        add(&s, 2, EVENT_STORE_BYTES / 4, 'x', false);
    assert_int_equal(s.n, 4);
    assert_true(s.bytes <= EVENT_STORE_BYTES);
    event_store_fini(&s);
    assert_int_equal(s.bytes, 0);
}

/* An event over the limit is dropped if the client has received it, but kept if it has not. */
static void test_one_that_is_too_large(void **state)
{
    (void)state;
    struct event_store s;
    event_store_init(&s, &holdings);
    add(&s, 1, 10, 'a', false);
    add(&s, 1, EVENT_STORE_BYTES + 1, 'b', false);
    assert_replayed(&s, 1, 0, 1, "aaaaaaaaaa");
    add(&s, 1, EVENT_STORE_BYTES + 1, 'c', true);
    assert_int_equal(s.n, 1);
    assert_true(s.bytes > EVENT_STORE_BYTES);
    add(&s, 1, 1, 'd', false);
    assert_replayed(&s, 1, 0, 1, "d");
    event_store_fini(&s);
}

/* A large answer that waited for its client was dropped when another daemon took over. */
static void test_another_daemon_gets_all_of_it(void **state)
{
    (void)state;
    struct event_store s, after;
    struct buf text = {0};
    event_store_init(&s, &holdings);
    event_store_init(&after, &holdings);
    add(&s, 1, EVENT_STORE_BYTES + 1, 'a', true);
    buf_char(&text, '{');
    event_store_export(&s, &text);
    buf_char(&text, '}');
    event_store_import(&after, buf_view(&text));
    assert_int_equal(after.n, 1);
    assert_int_equal(after.bytes, EVENT_STORE_BYTES + 1);
    assert_true(after.last > s.last);
    buf_fini(&text);
    event_store_fini(&s);
    event_store_fini(&after);
}

/* There are many sessions: each store is bounded, and so is the sum of all stores. */
static void test_all_stores_together_are_bounded(void **state)
{
    (void)state;
    struct event_store old, young;
    event_store_init(&old, &holdings);
    event_store_init(&young, &holdings);
    holdings.limit = 100;
    add(&old, 1, 40, 'a', false);
    timers.now += 10;
    add(&young, 1, 60, 'b', false);
    assert_int_equal(holdings.bytes, 100);
    assert_int_equal(old.n, 1);
    timers.now += 10;
    add(&young, 1, 10, 'c', false);
    assert_int_equal(old.n, 0);
    assert_int_equal(young.n, 2);
    add(&young, 1, 50, 'd', true); /* the sum is over the limit: the whole store is dropped */
    assert_int_equal(young.n, 0);
    assert_int_equal(holdings.bytes, 0);
    add(&young, 1, 5, 'e', true);
    assert_replayed(&young, 1, 0, 1, "eeeee");
    event_store_fini(&old);
    event_store_fini(&young);
    assert_int_equal(holdings.bytes, 0);
}

int main(void)
{
    holdings_init(&holdings, &timers);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_gets_its_own_later_events),
        cmocka_unit_test(test_ids_go_out_and_come_back),
        cmocka_unit_test(test_the_oldest_go_first),
        cmocka_unit_test(test_one_that_is_too_large),
        cmocka_unit_test(test_another_daemon_gets_all_of_it),
        cmocka_unit_test(test_all_stores_together_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
