#include "../unit.h"
#include "mcp/header_value.h"

static void expect_coded(const char *text, const char *header)
{
    struct buf out = {0}, back = {0};

    header_value_put(&out, span_str(text));
    assert_string_equal(buf_cstr(&out), header);
    assert_true(header_value_decode(buf_view(&out), &back));
    assert_string_equal(buf_cstr(&back), text);
    buf_fini(&out);
    buf_fini(&back);
}

static void test_plain_and_encoded(void **state)
{
    (void)state;
    expect_coded("echo", "echo");
    expect_coded("a b", "a b");
    expect_coded("", "");
    expect_coded("t/\xc3\xa9", "=?base64?dC/DqQ==?=");
    expect_coded(" lead", "=?base64?IGxlYWQ=?=");
    expect_coded("tab\there", "=?base64?dGFiCWhlcmU=?=");
    /* A value that looks encoded must be encoded, or it would be decoded to another value. */
    expect_coded("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
    expect_coded("=?base64?half", "=?base64?half");
}

static void test_strict_decoding(void **state)
{
    static const char *const bad[] = {
        "=?base64?YQ=?=",   /* too little padding */
        "=?base64?YQ===?=", /* too much padding */
        "=?base64?Y Q=?=",  /* blank */
        "=?base64?Y-Q=?=",  /* the URL-safe alphabet */
        "=?base64?=YQ=?=",  /* padding in front */
        "=?base64?/w==?=",  /* not UTF-8 */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct buf out = {0};
        assert_false(header_value_decode(span_str(bad[i]), &out));
        buf_fini(&out);
    }
    struct buf empty = {0};
    assert_true(header_value_decode(SPAN("=?base64?"
                                         "?="),
                                    &empty));
    assert_int_equal(empty.n, 0);
    buf_fini(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_and_encoded),
        cmocka_unit_test(test_strict_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
