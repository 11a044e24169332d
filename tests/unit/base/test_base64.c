#include "base/base64.h"

#include "../unit.h"
#include "base/mem.h"

static void test_both_alphabets(void **state)
{
    static const struct {
        struct span bytes;
        const char *plain, *url;
    } rows[] = {
        {{"", 0}, "", ""},
        {{"f", 1}, "Zg==", "Zg"},
        {{"fo", 2}, "Zm8=", "Zm8"},
        {{"foo", 3}, "Zm9v", "Zm9v"},
        {{"\xfb\xff\xbf\0", 4}, "+/+/AA==", "-_-_AA"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf plain = {0}, url = {0}, back = {0};
        base64_put(&plain, rows[i].bytes);
        base64_put_url(&url, rows[i].bytes);
        assert_string_equal(buf_cstr(&plain), rows[i].plain);
        assert_string_equal(buf_cstr(&url), rows[i].url);
        assert_int_equal(base64_read(&back, buf_view(&plain)), 0);
        assert_int_equal(base64_read_url(&back, buf_view(&url)), 0);
        assert_true(span_eq(span_cut(buf_view(&back), 0, rows[i].bytes.n), rows[i].bytes));
        assert_true(span_eq(span_from(buf_view(&back), rows[i].bytes.n), rows[i].bytes));
        buf_fini(&plain);
        buf_fini(&url);
        buf_fini(&back);
    }
}

static void test_strict(void **state)
{
    static const char *const plain[] = {
        "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm9v\n", "-_-_", "Zm 9"};
    static const char *const url[] = {"Z", "Zg==", "Zh", "Zm9vZ", "+/+/", "Zm8=", "Zm 9"};
    struct buf out = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        assert_int_equal(base64_read(&out, span_str(plain[i])), ERR_SYNTAX);
    for (size_t i = 0; i < COUNT_OF(url); i++)
        assert_int_equal(base64_read_url(&out, span_str(url[i])), ERR_SYNTAX);
    assert_int_equal(base64_read_url(&out, span_of("Z\0", 2)), ERR_SYNTAX);
    assert_int_equal(out.n, 0);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_alphabets),
        cmocka_unit_test(test_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
