#include "../unit.h"

#include "base/log.h"
#include "wire/json_out.h"

static void commas_stand_between(void **state)
{
    BUF_SCOPED out = {0};

    (void)state;
    json_out_open(&out, NULL, '{');
    json_out_text(&out, "text", SPAN("a \"b\"{"));
    json_out_str(&out, "str", "");
    json_out_number(&out, "number", UINT64_MAX);
    json_out_open(&out, "list", '[');
    json_out_open(&out, NULL, '[');
    buf_char(&out, ']');
    json_out_bool(&out, NULL, true);
    json_out_raw(&out, NULL, SPAN("{}"));
    buf_char(&out, ']');
    json_out(&out, "own");
    json_out_open(&out, NULL, '{');
    buf_str(&out, "}}");
    assert_string_equal(buf_cstr(&out),
                        "{\"text\":\"a \\\"b\\\"{\",\"str\":\"\",\"number\":18446744073709551615,"
                        "\"list\":[[],true,{}],\"own\":{}}");
}

static void what_is_not_there_is_null(void **state)
{
    BUF_SCOPED out = {0};

    (void)state;
    log_add_secret(SPAN("open sesame"));
    json_out_text_or_null(&out, "a", SPAN("A"));
    json_out_text_or_null(&out, "b", SPAN_EMPTY);
    json_out_redacted(&out, "c", SPAN("say: open sesame"));
    json_out_redacted(&out, "d", span_str(NULL));
    log_forget_secrets();
    assert_null(strstr(buf_cstr(&out), "sesame"));
    assert_true(span_starts(buf_view(&out), SPAN("\"a\":\"A\",\"b\":null,\"c\":\"say: ")));
    assert_non_null(strstr(buf_cstr(&out), ",\"d\":null"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_stand_between),
        cmocka_unit_test(what_is_not_there_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
