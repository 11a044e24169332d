#include "../unit.h"

#include "wire/json_merge.h"

static void the_second_has_the_last_word(void **state)
{
    static const struct {
        const char *given, *over, *merged;
    } rows[] = {
        {"{\"a\": 1.50, \"b\":2}", "{\"b\" : [3]}", "{\"a\": 1.50,\"b\" : [3]}"},
        {"{\"\\u0062\":2,\"B\":4}", "{\"b\":3}", "{\"B\":4,\"b\":3}"},
        {"{\"a\" : 1}", "", "{\"a\" : 1}"},
        {"[1,2]", "", "[1,2]"},
        {"", "", "{}"},
        {"", "{\"a\":1}", "{\"a\":1}"},
        {"[1,2]", "{\"a\":1}", "{\"a\":1}"},
        {"null", "{}", "{}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_SCOPED out = {0};
        json_merge_put(&out, span_str(rows[i].given), span_str(rows[i].over));
        assert_string_equal(buf_cstr(&out), rows[i].merged);
    }
}

static void names_are_compared_as_they_are_read(void **state)
{
    (void)state;
    assert_true(json_merge_has(SPAN("{\"ab\":1}"), SPAN("\"\\u0061b\""), json_string_is));
    assert_false(json_merge_has(SPAN("{\"ab\":1}"), SPAN("\"AB\""), json_string_is));
    assert_true(json_merge_has(SPAN("{\"ab\":1}"), SPAN("\"AB\""), json_string_resembles));
    assert_false(json_merge_has(SPAN_EMPTY, SPAN("\"a\""), json_string_is));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_has_the_last_word),
        cmocka_unit_test(names_are_compared_as_they_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
