/* Results of resources and prompts as results of tools. */
#include "../unit.h"
#include "mcp/server/as_tools.h"

static void expect_result(enum op op, const char *result, const char *expected)
{
    struct buf body = {0};
    struct span exact = unit_exact(span_str(result));
    struct outcome outcome = {.kind = OUTCOME_RESULT, .body = exact};
    struct outcome as = as_tools_outcome(op, &outcome, &body);

    assert_int_equal(as.kind, OUTCOME_RESULT);
    assert_span(as.body, expected);
    assert_int_equal(json_skim(as.body, NULL, NULL, NULL, NULL), 0);
    buf_fini(&body);
    unit_free(exact);
}

static void test_resources(void **state)
{
    (void)state;
    expect_result(
        OP_READ_RESOURCE,
        "{\"contents\":[{\"uri\":\"a:b\",\"mimeType\":\"text/plain\",\"text\":\"x\\\"\\u00e9"
        "\"},{\"uri\":\"a:c\",\"mimeType\":\"image/png\",\"blob\":\"AA==\"},{\"uri\":\"a:d\","
        "\"mimeType\":\"audio/wav\",\"blob\":\"BB==\"},{\"uri\":\"a:e\",\"blob\":\"CC==\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"x\\\"\xc3\xa9\"},{\"type\":\"image\","
        "\"mimeType\":\"image/png\",\"data\":\"AA==\"},{\"type\":\"audio\",\"mimeType\":"
        "\"audio/wav\",\"data\":\"BB==\"},{\"type\":\"resource\",\"resource\":{\"uri\":"
        "\"a:e\",\"blob\":\"CC==\"}}]}");
    expect_result(OP_READ_RESOURCE, "{}", "{\"content\":[]}");
    expect_result(OP_READ_RESOURCE, "{\"contents\":[5,null,{}]}",
                  "{\"content\":[{\"type\":\"resource\",\"resource\":{}}]}");
    expect_result(OP_READ_RESOURCE, "{\"contents\":\"x\"}", "{\"content\":[]}");
}

static void test_prompts(void **state)
{
    (void)state;
    expect_result(
        OP_GET_PROMPT,
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"a\"}}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}");
    /* Roles are written before the texts if there is more than one. */
    expect_result(
        OP_GET_PROMPT,
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"a\"}},"
        "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"b\"}},"
        "{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"A\"}},"
        "{\"role\":\"user\",\"content\":\"odd\"},{}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"user: a\"},{\"type\":\"text\",\"text\":"
        "\"assistant: b\"},{\"type\":\"image\",\"data\":\"A\"}]}");
    expect_result(OP_GET_PROMPT, "{\"messages\":{}}", "{\"content\":[]}");
}

/* input_required results pass unchanged: a client that retries gets the server's own question. */
static void test_questions_pass(void **state)
{
    static const char asks[] =
        "{\"resultType\":\"input_required\",\"inputRequests\":{},\"requestState\":\"x\"}";

    (void)state;
    expect_result(OP_READ_RESOURCE, asks, asks);
    expect_result(OP_GET_PROMPT, asks, asks);
}

static void test_errors_are_results(void **state)
{
    struct buf body = {0};
    struct outcome error = {.kind = OUTCOME_ERROR,
                            .body = SPAN("{\"code\":-32002,\"message\":\"not there\"}"),
                            .text = SPAN("not there")};
    struct outcome failed = {
        .kind = OUTCOME_FAILED, .why = FAIL_CRASHED, .text = SPAN("it is gone")};

    (void)state;
    struct outcome as = as_tools_outcome(OP_READ_RESOURCE, &error, &body);
    assert_int_equal(as.kind, OUTCOME_RESULT);
    assert_true(as.is_error);
    assert_span(as.body,
                "{\"content\":[{\"type\":\"text\",\"text\":\"not there\"}],\"isError\":true}");
    as = as_tools_outcome(OP_READ_RESOURCE, &failed, &body);
    assert_int_equal(as.kind, OUTCOME_FAILED); /* the server failed, so it stays a failure */
    buf_fini(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_questions_pass),
        cmocka_unit_test(test_errors_are_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
