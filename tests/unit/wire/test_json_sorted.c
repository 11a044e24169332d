#include "../unit.h"

#include "wire/json_sorted.h"

static void members_are_sorted_and_nothing_else_changes(void **state)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"{ \"b\" : 1.50 , \"a\" : [ 3 , {\"z\":null,\"y\":true} ] }",
         "{\"a\":[3,{\"y\":true,\"z\":null}],\"b\":1.50}"},
        {"{\"ab\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"ab\":1}"},
        {"{\"\\u0062\":1,\"a\":\"\\u00e9\\/\"}", "{\"a\":\"\xc3\xa9/\",\"b\":1}"},
        {"{\"a\":2,\"a\":1}", "{\"a\":2,\"a\":1}"},
        {"12345678901234567890", "12345678901234567890"},
        {"{}", "{}"},
        {"[]", "[]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_SCOPED out = {0};
        json_sorted_put(&out, span_str(rows[i].from));
        assert_string_equal(buf_cstr(&out), rows[i].to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_sorted_and_nothing_else_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
