/* The question for approval that a person is asked, and what the answers mean. */
#include "../unit.h"
#include "base/log.h"
#include "core/provider.h"
#include "mcp/consent.h"
#include "mcp/outcome.h"

/* A held call, without a router. */
static struct call *held_call(struct provider *p, const char *params)
{
    struct span name = SPAN("delete_file");
    struct call *c = mem_zalloc(sizeof *c + name.n + 1);

    memcpy(c->name, name.p, name.n);
    c->name_n = name.n;
    c->provider = p;
    c->kept.request.params = span_str(params);
    return c;
}

static void expect_question(const char *params, const char *question)
{
    struct provider p = {.alias = "files"};
    struct call *c = held_call(&p, params);
    struct buf out = {0};

    consent_approver.put_question(&out, c);
    assert_string_equal(buf_cstr(&out), question);
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    buf_fini(&out);
    mem_free(c);
}

static void test_the_question(void **state)
{
    (void)state;
    log_add_secret(SPAN("hunter22"));
    expect_question(
        "{\"name\":\"x\",\"arguments\":{\"path\":\"/tmp/\\\"a\\\"\",\"pw\":\"hunter22\"}}",
        "{\"message\":\"Allow the call of 'delete_file' on server 'files'? Its "
        "arguments: {\\\"path\\\":\\\"/tmp/\\\\\\\"a\\\\\\\"\\\",\\\"pw\\\":\\\"***\\\"}\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
    expect_question("{}", "{\"message\":\"Allow the call of 'delete_file' on server 'files'? Its "
                          "arguments: {}\",\"requestedSchema\":{\"type\":\"object\","
                          "\"properties\":{}}}");
    log_forget_secrets();
}

/*
 * Characters that are invisible or change the text direction were shown unchanged, so a person
 * approved something else than the question seemed to say.
 */
static void test_nothing_hides(void **state)
{
    (void)state;
    expect_question(
        "{\"arguments\":{\n\"path\":\"/tmp/\xe2\x80\xae txt.exe\x7f\xf3\xa0\x80\x81\"}}",
        "{\"message\":\"Allow the call of 'delete_file' on server 'files'? Its "
        "arguments: {\\\"path\\\":\\\"/tmp/\\\\u202e "
        "txt.exe\\\\u007f\\\\udb40\\\\udc01\\\"}\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
}

/*
 * Arguments are cut before they are shown, but not inside a character. The question must say so:
 * only three dots showed that the important part could be after the first thousand bytes.
 */
static void test_a_long_question(void **state)
{
    struct provider p = {.alias = "files"};
    struct buf params = {0}, out = {0};

    (void)state;
    buf_str(&params, "{\"arguments\":{\"t\":\"a");
    for (int i = 0; i < 2000; i++)
        buf_str(&params, "\xc3\xa4");
    buf_str(&params, "\"}}");
    struct call *c = held_call(&p, buf_cstr(&params));
    consent_approver.put_question(&out, c);
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    assert_true(out.n < 1300);
    assert_non_null(strstr(buf_cstr(&out), "\xc3\xa4...\""));
    assert_non_null(strstr(buf_cstr(&out), "(only the first 999 of 4009 bytes are shown here; "
                                           "nothing shows the rest, so refuse it when in doubt)"));
    out.n = 0;
    c->handle = 7;
    consent_approver_with_operator.put_question(&out, c);
    assert_non_null(strstr(buf_cstr(&out), "'rialto approvals --json' and /api/approvals show all "
                                           "of call 7)"));
    buf_fini(&out);
    buf_fini(&params);
    mem_free(c);
}

static void test_the_answers(void **state)
{
    static const struct {
        struct outcome answer;
        enum consent consent;
    } rows[] = {
        {{.kind = OUTCOME_RESULT, .body = SPAN("{\"action\":\"accept\",\"content\":{}}")},
         CONSENT_GIVEN},
        {{.kind = OUTCOME_RESULT, .body = SPAN("{\"action\":\"decline\"}")}, CONSENT_DENIED},
        {{.kind = OUTCOME_RESULT, .body = SPAN("{\"action\":\"cancel\"}")}, CONSENT_DENIED},
        {{.kind = OUTCOME_RESULT, .body = SPAN("{\"action\":true}")}, CONSENT_DENIED},
        {{.kind = OUTCOME_RESULT, .body = SPAN("{}")}, CONSENT_DENIED},
        {{.kind = OUTCOME_ERROR, .body = SPAN("{\"code\":-32601}")}, CONSENT_UNASKED},
        {{.kind = OUTCOME_FAILED, .why = FAIL_REFUSED}, CONSENT_UNASKED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(consent_approver.read_answer(&rows[i].answer), rows[i].consent);
    assert_false(consent_approver.has_operator);
    assert_true(consent_approver_with_operator.has_operator);
}

/* --- what the agent gets --- */

static void test_a_refusal_is_a_result_of_the_tool(void **state)
{
    const struct outcome refused = {
        .kind = OUTCOME_FAILED, .why = FAIL_REFUSED, .text = SPAN("refused by \"them\"")};
    const struct outcome late = {.kind = OUTCOME_FAILED, .why = FAIL_TIMEOUT, .text = SPAN("late")};
    struct buf body = {0};

    (void)state;
    struct outcome told = mcp_outcome_for_model(OP_CALL_TOOL, &refused, false, &body);
    assert_int_equal(told.kind, OUTCOME_RESULT);
    assert_string_equal(buf_cstr(&body), "{\"content\":[{\"type\":\"text\",\"text\":\"refused by "
                                         "\\\"them\\\"\"}],\"isError\":true}");
    assert_int_equal(mcp_outcome_for_model(OP_GET_PROMPT, &refused, true, &body).kind,
                     OUTCOME_FAILED);
    assert_int_equal(mcp_outcome_for_model(OP_CALL_TOOL, &late, false, &body).why, FAIL_TIMEOUT);
    buf_fini(&body);
}

static void expect_outcome(const char *message, enum outcome_kind kind, bool is_error,
                           const char *text)
{
    struct mcp_message m;
    struct buf scratch = {0};

    assert_int_equal(mcp_skim(span_str(message), &m), 0);
    struct outcome o = mcp_outcome_read(&m, &scratch);
    assert_int_equal(o.kind, kind);
    assert_int_equal(o.is_error, is_error);
    assert_true(span_is(o.text, text));
    buf_fini(&scratch);
}

static void test_what_a_response_means(void **state)
{
    (void)state;
    expect_outcome("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
                   "\"text\":\"fine\"}]}}",
                   OUTCOME_RESULT, false, "");
    expect_outcome("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true,\"content\":["
                   "{\"type\":\"text\",\"text\":\"no \\\"x\\\"\"}]}}",
                   OUTCOME_RESULT, true, "no \"x\"");
    expect_outcome("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true,\"content\":[3]}}",
                   OUTCOME_RESULT, true, "");
    expect_outcome("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true}}", OUTCOME_RESULT,
                   true, "");
    expect_outcome("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"no\"}}",
                   OUTCOME_ERROR, false, "no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_question),
        cmocka_unit_test(test_nothing_hides),
        cmocka_unit_test(test_a_long_question),
        cmocka_unit_test(test_the_answers),
        cmocka_unit_test(test_a_refusal_is_a_result_of_the_tool),
        cmocka_unit_test(test_what_a_response_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
