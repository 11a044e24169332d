#include "../unit.h"

#include "base/buf.h"

static void test_append(void **state)
{
    struct buf b = {0};

    (void)state;
    assert_int_equal(buf_view(&b).n, 0);
    buf_room(&b, 0);
    assert_int_equal(b.cap, 0);
    buf_str(&b, "ab");
    buf_char(&b, 'c');
    buf_bytes(&b, "de", 1);
    buf_bytes(&b, NULL, 0);
    buf_span(&b, SPAN_EMPTY);
    buf_u64(&b, 0);
    buf_u64(&b, UINT64_MAX);
    buf_printf(&b, "-%s%d", "x", -5);
    buf_printf(&b, "%s", "");
    assert_string_equal(buf_cstr(&b), "abcd018446744073709551615-x-5");
    assert_int_equal(b.n, strlen("abcd018446744073709551615-x-5"));
    buf_fini(&b);
    assert_null(b.p);
    assert_int_equal(b.cap, 0);
}

static void test_printf_longer_than_room(void **state)
{
    struct buf b = {0};
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    buf_printf(&b, "<%s>", text);
    assert_int_equal(b.n, 1001);
    assert_int_equal(b.p[0], '<');
    assert_int_equal(b.p[1000], '>');
    buf_fini(&b);
}

static void test_room(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_str(&b, "head");
    memset(buf_room(&b, 5000), 'y', 5000);
    b.n += 5000;
    assert_true(b.cap >= b.n);
    assert_memory_equal(b.p, "heady", 5);
    buf_fini(&b);
}

static void test_drop_and_reset(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_drop(&b, 3);
    assert_int_equal(b.n, 0);
    buf_str(&b, "abcdef");
    buf_drop(&b, 0);
    assert_span(buf_view(&b), "abcdef");
    buf_drop(&b, 2);
    assert_span(buf_view(&b), "cdef");
    buf_drop(&b, 99);
    assert_int_equal(b.n, 0);

    buf_str(&b, "small");
    size_t cap = b.cap;
    buf_reset(&b, cap);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.cap, cap);
    buf_reset(&b, cap - 1);
    assert_int_equal(b.cap, 0);
    assert_null(b.p);
}

static void test_take(void **state)
{
    struct buf b = {0};

    (void)state;
    char *empty = buf_take(&b);
    assert_string_equal(empty, "");
    mem_free(empty);
    buf_str(&b, "mine");
    char *s = buf_take(&b);
    assert_string_equal(s, "mine");
    assert_int_equal(b.n, 0);
    assert_null(b.p);
    mem_free(s);
}

/* Texts of every length around the room left: fits, fits without its NUL, does not fit. */
static void test_printf_every_length(void **state)
{
    (void)state;
    for (int before = 0; before < 70; before++) {
        for (int n = 0; n < 70; n++) {
            struct buf b = {0};
            for (int i = 0; i < before; i++)
                buf_char(&b, 'x');
            buf_printf(&b, "%0*d", n, 7);
            assert_int_equal(b.n, before + (n ? n : 1));
            assert_int_equal(b.p[b.n - 1], '7');
            assert_true(b.n <= b.cap);
            buf_fini(&b);
        }
    }
}

/* Random appends and drops against a plain array. */
static void test_against_model(void **state)
{
    static char model[200000];
    size_t n = 0;
    uint64_t seed = 5;
    struct buf b = {0};

    (void)state;
    for (int round = 0; round < 3000; round++) {
        char chunk[300];
        size_t len = unit_below(&seed, sizeof chunk);
        if (unit_below(&seed, 3) && n + len < sizeof model) {
            for (size_t i = 0; i < len; i++)
                chunk[i] = (char)unit_random(&seed);
            buf_bytes(&b, chunk, len);
            memcpy(model + n, chunk, len);
            n += len;
        } else {
            len = len < n ? len : n;
            buf_drop(&b, len);
            memmove(model, model + len, n - len);
            n -= len;
        }
        assert_int_equal(b.n, n);
        if (n)
            assert_memory_equal(b.p, model, n);
    }
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),         cmocka_unit_test(test_printf_longer_than_room),
        cmocka_unit_test(test_room),           cmocka_unit_test(test_printf_every_length),
        cmocka_unit_test(test_drop_and_reset), cmocka_unit_test(test_take),
        cmocka_unit_test(test_against_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
