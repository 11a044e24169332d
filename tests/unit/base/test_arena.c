#include "../unit.h"

#include "base/arena.h"

static void test_empty(void **state)
{
    struct arena a = {0};

    (void)state;
    arena_fini(&a);
    struct span s = arena_span(&a, SPAN_EMPTY);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.p[0], '\0');
    arena_fini(&a);
    assert_null(a.blocks);
}

/* Pieces of many sizes, small and larger than a block: zeroed, aligned, and none overlaps. */
static void test_pieces(void **state)
{
    enum { PIECES = 2000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    uint64_t seed = 2;
    struct arena a = {0};

    (void)state;
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = unit_below(&seed, 50) ? unit_below(&seed, 200) : unit_below(&seed, 20000);
        pieces[i] = arena_alloc(&a, sizes[i]);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)(i % 251) + 1, sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(pieces[i][j], i % 251 + 1);
    arena_fini(&a);
}

static void test_span_is_a_copy(void **state)
{
    struct arena a = {0};
    char text[] = "text";

    (void)state;
    struct span s = arena_span(&a, span_of(text, 3));
    text[0] = 'X';
    assert_string_equal(s.p, "tex");
    assert_int_equal(s.n, 3);
    int *numbers = ARENA_ARRAY(&a, int, 10);
    assert_int_equal(numbers[9], 0);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_span_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
