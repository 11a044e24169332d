#include "wire/webform.h"

#include "../unit.h"
#include "base/mem.h"

static void test_written(void **state)
{
    struct buf out = {0};

    (void)state;
    webform_put(&out, "grant_type", SPAN("authorization_code"));
    webform_put(&out, "redirect_uri", SPAN("http://127.0.0.1:1/a b?c=d&e=%\xc3\xa4~"));
    webform_put(&out, "empty", SPAN_EMPTY);
    assert_string_equal(buf_cstr(&out),
                        "grant_type=authorization_code&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fa+"
                        "b%3Fc%3Dd%26e%3D%25%C3%A4%7E&empty=");
    out.n = 0;
    buf_str(&out, "https://as.example/authorize?");
    webform_put(&out, "a", SPAN("1"));
    assert_string_equal(buf_cstr(&out), "https://as.example/authorize?a=1");
    buf_fini(&out);
}

static void test_read(void **state)
{
    static const char *const names[] = {"code", "state", "iss"};
    static const struct {
        const char *text;
        int code;
        const char *values[3];
    } rows[] = {
        {"code=a&state=b&iss=c", 0, {"a", "b", "c"}},
        {"iss=%68ttps%3A%2F%2Fas&x=1&x=2&code=a+b", 0, {"a b", NULL, "https://as"}},
        {"c%6fde=1", 0, {"1", NULL, NULL}},
        {"code", 0, {"", NULL, NULL}},
        {"code=&=&&state=", 0, {"", "", NULL}},
        {"", 0, {NULL, NULL, NULL}},
        {"Code=1&codes=2&cod=3", 0, {NULL, NULL, NULL}},
        {"other=%zz&state=1", 0, {NULL, "1", NULL}},
        {"code=1&code=1", ERR_DUPLICATE, {NULL}},
        {"code=1&c%6Fde=2", ERR_DUPLICATE, {NULL}},
        {"state=%", ERR_SYNTAX, {NULL}},
        {"state=%4", ERR_SYNTAX, {NULL}},
        {"state=a%zzb", ERR_SYNTAX, {NULL}},
        {"code=a%00b", ERR_SYNTAX, {NULL}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf scratch = {0};
        struct span values[3];
        assert_int_equal(webform_read(span_str(rows[i].text), names, 3, values, &scratch),
                         rows[i].code);
        for (size_t k = 0; k < 3 && !rows[i].code; k++) {
            assert_int_equal(values[k].p != NULL, rows[i].values[k] != NULL);
            assert_true(span_is(values[k], rows[i].values[k]));
        }
        buf_fini(&scratch);
    }
}

/* For our own pages and commands: malformed escapes are kept as they are, and of several fields
 * with the same name the first counts. */
static void test_lenient(void **state)
{
    struct buf scratch = {0};

    (void)state;
    assert_true(span_is(webform_get(SPAN("a=1&b=x%zz&b=2"), "b", &scratch), "x%zz"));
    assert_null(webform_get(SPAN("a=1"), "b", &scratch).p);
    assert_non_null(webform_get(SPAN("b="), "b", &scratch).p);
    buf_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_lenient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
