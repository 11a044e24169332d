#include "../unit.h"

#include "base/utf8.h"
#include "base/visible.h"

#include <stdio.h>

static void check(struct span text, unsigned flags, const char *shown)
{
    struct buf out = {0};
    struct span exact = unit_exact(text);

    visible_put(&out, exact, flags);
    assert_span(buf_view(&out), shown);
    unit_free(exact);
    buf_fini(&out);
}

static void test_plain_text_stays(void **state)
{
    (void)state;
    check(SPAN(""), 0, "");
    check(SPAN("{\"path\":\"/etc/motd\"} \\n"), 0, "{\"path\":\"/etc/motd\"} \\n");
    check(SPAN("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x9a\x99\xef\xb8\x8f"), 0,
          "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x9a\x99\xef\xb8\x8f");
}

static void test_controls(void **state)
{
    (void)state;
    check(SPAN("a\0\x1b[2Jb\x7f\r\n\t\xc2\x9b"), 0,
          "a\\u0000\\u001b[2Jb\\u007f\\u000d\\u000a\\u0009\\u009b");
    check(SPAN("a\n\tb\r"), VISIBLE_LINES, "a\n\tb\\u000d");
}

/* Characters that change the text direction or are invisible, from each range. */
static void test_formats(void **state)
{
    static const uint32_t codes[] = {
        0xad,   0x34f,   0x61c,   0x115f,  0x1160,  0x17b4,  0x180e,  0x200b,  0x200f,  0x2028,
        0x202a, 0x202e,  0x2060,  0x2066,  0x2069,  0x206f,  0x3164,  0xfe00,  0xfeff,  0xffa0,
        0xfff9, 0x13430, 0x1bca0, 0x1d173, 0xe0000, 0xe0001, 0xe007f, 0xe0100, 0xe01ef,
    };
    static const uint32_t seen[] = {0x20,   0x7e,   0xa0,   0xac,   0xae,    0x2027, 0x2030,
                                    0x205f, 0x2070, 0xfe0f, 0xfffd, 0xdffff, 0xe1000};
    struct buf out = {0};
    char bytes[4], escape[16];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        uint32_t c = codes[i];
        if (c > 0xffff)
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                     0xdc00 + ((c - 0x10000) & 0x3ff));
        else
            snprintf(escape, sizeof escape, "\\u%04x", c);
        check(span_of(bytes, utf8_put(bytes, c)), VISIBLE_LINES, escape);
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        struct span text = span_of(bytes, utf8_put(bytes, seen[i]));
        out.n = 0;
        visible_put(&out, text, 0);
        assert_true(span_eq(buf_view(&out), text));
    }
    buf_fini(&out);
}

static void test_what_is_no_utf8(void **state)
{
    (void)state;
    check(SPAN("a\xff\xc3"), 0, "a\\xff\\xc3");
    check(SPAN("\xed\xa0\x80"), 0, "\\xed\\xa0\\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_text_stays),
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_what_is_no_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
