#include "wire/challenge.h"

#include "../unit.h"
#include "base/mem.h"

#define META "https://a.example/.well-known/oauth-protected-resource"

static void test_read(void **state)
{
    static const struct {
        const char *value;
        bool found;
        const char *error, *scope, *metadata;
    } rows[] = {
        {"Bearer", true, NULL, NULL, NULL},
        {"bearer resource_metadata=\"" META "\"", true, NULL, NULL, META},
        {"Bearer error=\"invalid_token\", scope=\"a b\", resource_metadata=\"" META "\"", true,
         "invalid_token", "a b", META},
        {"BEARER Error = insufficient_scope ,SCOPE=\"a\\\"b\\\\\"", true, "insufficient_scope",
         "a\"b\\", NULL},
        {"Bearer realm=\"x, Bearer scope=\\\"no\\\"\", scope=yes", true, NULL, "yes", NULL},
        {"Basic realm=\"a\", Bearer scope=\"b\"", true, NULL, "b", NULL},
        {"Negotiate abc==, Bearer scope=b, Bearer scope=c", true, NULL, "b", NULL},
        {"Negotiate, , ,Bearer", true, NULL, NULL, NULL},
        {"Bearer, Basic realm=x, scope=no", true, NULL, NULL, NULL},
        {"Bearer scope=\"\"", true, NULL, "", NULL},
        {"Bearer scope=", true, NULL, NULL, NULL}, /* credentials of another form */
        {"Bearer a=1, scope=", false, NULL, NULL, NULL},
        {"", false, NULL, NULL, NULL},
        {"Basic realm=\"x\"", false, NULL, NULL, NULL},
        {"Bearerish scope=a", false, NULL, NULL, NULL},
        {"Bearer scope=\"never ends", false, NULL, NULL, NULL},
        {"Bearer scope=\"never ends\\", false, NULL, NULL, NULL},
        {"Bearer scope=a, scope=b", false, NULL, NULL, NULL},
        {"Bearer scope=\"a\"b", false, NULL, NULL, NULL},
        {"\"Bearer\" scope=a", false, NULL, NULL, NULL},
        {"Bearer/scope=a", false, NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf scratch = {0};
        struct challenge c;
        assert_int_equal(challenge_read(span_str(rows[i].value), &c, &scratch), rows[i].found);
        assert_true(span_is(c.error, rows[i].error));
        assert_true(span_is(c.scope, rows[i].scope));
        assert_int_equal(c.scope.p != NULL, rows[i].scope != NULL);
        assert_true(span_is(c.resource_metadata, rows[i].metadata));
        buf_fini(&scratch);
    }
}

static void test_bounded(void **state)
{
    struct buf value = {0}, scratch = {0};
    struct challenge c;

    (void)state;
    buf_str(&value, "Bearer scope=");
    while (value.n < CHALLENGE_MAX)
        buf_char(&value, 'a');
    assert_true(challenge_read(buf_view(&value), &c, &scratch));
    buf_char(&value, 'a');
    assert_false(challenge_read(buf_view(&value), &c, &scratch));
    buf_fini(&value);
    buf_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
