#include "../unit.h"

#include "base/utf8.h"

/* Every code point, written and measured: all except the surrogates are valid UTF-8. */
static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        size_t n = utf8_put(bytes, code);
        bool good = code < 0xd800 || code > 0xdfff;
        assert_int_equal(utf8_length(bytes, bytes + n), good ? n : 0);
        if (n > 1) /* cut short */
            assert_int_equal(utf8_length(bytes, bytes + n - 1), 0);
    }
}

static void test_refuses(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf8\x88\x80\x80",
        "\xff",
        "\xc3(",
        "\xe2\x82(",
        "\xe2(\xac",
        "\xf0\x9f\x98(",
        "\xc3",
        "\xf0\x9f\x98",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        for (size_t before = 0; before < 20; before++) {
            char text[32];
            size_t n = strlen(bad[i]);
            memset(text, 'x', sizeof text);
            memcpy(text + before, bad[i], n);
            struct span last = unit_exact(span_of(text, before + n));
            struct span inside = unit_exact(span_of(text, before + n + 8));
            assert_false(utf8_valid(last));
            assert_false(utf8_valid(inside));
            unit_free(last);
            unit_free(inside);
        }
    }
}

static void test_accepts(void **state)
{
    (void)state;
    assert_true(utf8_valid(SPAN_EMPTY));
    assert_true(utf8_valid(SPAN("plain ASCII of some length, \0 and \x7f")));
    assert_true(utf8_valid(SPAN("\xc3\xa4 1234567 \xe2\x82\xac 12345678 \xf0\x9f\x98\x80")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_accepts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
