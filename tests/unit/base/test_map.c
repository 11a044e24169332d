#include "../unit.h"

#include "base/map.h"

#include <stdio.h>

static void test_map_basics(void **state)
{
    struct map m = {0};
    int a = 1, b = 2;

    (void)state;
    assert_null(map_get(&m, SPAN("x")));
    assert_null(map_del(&m, SPAN("x")));
    assert_null(map_put(&m, SPAN("x"), &a));
    assert_ptr_equal(map_get(&m, SPAN("x")), &a);
    assert_ptr_equal(map_put(&m, SPAN("x"), &b), &a);
    assert_int_equal(m.n, 1);
    assert_null(map_get(&m, SPAN("X")));
    /* Keys are bytes: an empty one, and ones with NUL in them. */
    assert_null(map_put(&m, SPAN_EMPTY, &a));
    assert_ptr_equal(map_get(&m, SPAN("")), &a);
    assert_null(map_put(&m, SPAN("a\0b"), &a));
    assert_null(map_get(&m, SPAN("a\0c")));
    assert_null(map_get(&m, SPAN("a")));
    assert_ptr_equal(map_del(&m, SPAN("x")), &b);
    assert_null(map_del(&m, SPAN("x")));
    assert_int_equal(m.n, 2);
    map_fini(&m);
    assert_null(map_get(&m, SPAN_EMPTY));
}

static void test_map_copies_keys(void **state)
{
    struct map m = {0};
    char key[] = "key";
    int v;

    (void)state;
    map_put(&m, span_str(key), &v);
    key[0] = 'X';
    assert_ptr_equal(map_get(&m, SPAN("key")), &v);
    map_fini(&m);
}

/* The view's table keeps the names itself: freeing or copying them as well would be seen here by
 * the sanitizer, and by the addresses of the keys. */
static void test_map_borrows_keys(void **state)
{
    char keys[40][8];
    struct map m = {.borrows = true};
    struct span key;
    void *value;
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        snprintf(keys[i], sizeof keys[i], "k%zu", i);
        assert_null(map_put(&m, span_str(keys[i]), keys[i]));
    }
    assert_ptr_equal(map_del(&m, SPAN("k7")), keys[7]);
    assert_ptr_equal(map_get(&m, SPAN("k39")), keys[39]);
    while (map_next(&m, &at, &key, &value))
        assert_ptr_equal(key.p, value);
    map_fini(&m);
}

static void test_map_reserve(void **state)
{
    struct map m = {0};
    int v;

    (void)state;
    map_reserve(&m, 0);
    assert_int_equal(m.cap, 0); /* most tables of most views are empty */
    map_put(&m, SPAN("first"), &v);
    map_reserve(&m, 1000);
    size_t cap = m.cap;
    for (int i = 1; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof text, "key-%d", i);
        map_put(&m, span_str(text), &v);
    }
    assert_int_equal(m.cap, cap);
    assert_ptr_equal(map_get(&m, SPAN("first")), &v);
    map_reserve(&m, 10);
    assert_int_equal(m.cap, cap);
    map_fini(&m);
}

static void test_hash(void **state)
{
    (void)state;
    assert_true(map_hash(SPAN("abcdefgh")) == map_hash(SPAN("abcdefgh")));
    assert_true(map_hash(SPAN("abcdefgh")) != map_hash(SPAN("abcdefgi")));
    assert_true(map_hash(SPAN("")) != map_hash(SPAN("\0")));
    assert_true(map_hash(SPAN("\0")) != map_hash(SPAN("\0\0")));
}

enum { KEYS = 300, ROUNDS = 60000 };

/* Random puts and deletes, compared with an array that has one element for each key. */
static void test_map_against_model(void **state)
{
    static int values[KEYS][2];
    int *model[KEYS] = {0};
    size_t n = 0;
    uint64_t seed = 8;
    struct map m = {0};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t k = unit_below(&seed, KEYS);
        char text[16];
        snprintf(text, sizeof text, "key-%zu", k);
        /* Phases of growth and of decline, so that long runs of used slots form and break up. */
        if (unit_below(&seed, 10) < (round / 5000 % 2 ? 3 : 7)) {
            int *v = &values[k][unit_below(&seed, 2)];
            assert_ptr_equal(map_put(&m, span_str(text), v), model[k]);
            n += !model[k];
            model[k] = v;
        } else {
            assert_ptr_equal(map_del(&m, span_str(text)), model[k]);
            n -= model[k] != NULL;
            model[k] = NULL;
        }
        assert_int_equal(m.n, n);
        k = unit_below(&seed, KEYS);
        snprintf(text, sizeof text, "key-%zu", k);
        assert_ptr_equal(map_get(&m, span_str(text)), model[k]);
    }
    size_t at = 0, seen = 0;
    struct span key;
    void *value;
    while (map_next(&m, &at, &key, &value)) {
        char text[16] = {0};
        memcpy(text, key.p, key.n);
        assert_ptr_equal(model[strtoul(text + 4, NULL, 10)], value);
        seen++;
    }
    assert_int_equal(seen, n);
    map_fini(&m);
}

static void test_idmap_basics(void **state)
{
    struct idmap m = {0};
    int a, b;

    (void)state;
    assert_null(idmap_get(&m, 1));
    assert_null(idmap_take(&m, 1));
    idmap_put(&m, 1, &a);
    idmap_put(&m, UINT64_MAX, &b);
    assert_ptr_equal(idmap_get(&m, 1), &a);
    assert_null(idmap_get(&m, 0));
    assert_null(idmap_take(&m, 0));
    assert_ptr_equal(idmap_take(&m, UINT64_MAX), &b);
    assert_null(idmap_take(&m, UINT64_MAX));
    assert_int_equal(m.n, 1);
    idmap_fini(&m);
    assert_int_equal(m.cap, 0);
}

/* Ids as a connection assigns them (rising, answered in any order), and ids that share low bits. */
static void test_idmap_against_model(void **state)
{
    enum { LIVE = 200 };
    uint64_t seed = 9, next = 1;
    struct {
        uint64_t id;
        int value;
    } model[LIVE] = {0};
    struct idmap m = {0};
    size_t n = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t k = unit_below(&seed, LIVE);
        if (model[k].id) {
            assert_ptr_equal(idmap_get(&m, model[k].id), &model[k].value);
            assert_ptr_equal(idmap_take(&m, model[k].id), &model[k].value);
            assert_null(idmap_get(&m, model[k].id));
            model[k].id = 0;
            n--;
        } else {
            model[k].id = round % 3 ? next : next << 40;
            next++;
            assert_null(idmap_get(&m, model[k].id));
            idmap_put(&m, model[k].id, &model[k].value);
            n++;
        }
        assert_int_equal(m.n, n);
    }
    size_t at = 0, seen = 0;
    uint64_t id;
    void *value;
    while (idmap_next(&m, &at, &id, &value)) {
        assert_ptr_equal(idmap_get(&m, id), value);
        seen++;
    }
    assert_int_equal(seen, n);
    idmap_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_basics),
        cmocka_unit_test(test_map_copies_keys),
        cmocka_unit_test(test_map_borrows_keys),
        cmocka_unit_test(test_map_reserve),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_map_against_model),
        cmocka_unit_test(test_idmap_basics),
        cmocka_unit_test(test_idmap_against_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
