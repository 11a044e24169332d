/* Parsing JWTs: the fields that are found, and texts that are refused. */
#include "../unit.h"

#include "base/base64.h"
#include "wire/jwt.h"

static void put_token(struct buf *out, const char *header, const char *claims)
{
    base64_put_url(out, span_str(header));
    buf_char(out, '.');
    base64_put_url(out, span_str(claims));
    buf_str(out, ".c2ln");
}

static void test_what_stands_in_it(void **state)
{
    BUF_SCOPED token = {0};
    struct jwt j;
    struct err err;

    (void)state;
    put_token(&token, "{\"alg\":\"ES256\",\"kid\":\"\\u0061b\",\"typ\":\"at+jwt\",\"jku\":\"x\"}",
              "{\"iss\":\"i\",\"sub\":\"s\\u00e4\",\"azp\":\"z\",\"aud\":[\"a\",\"\\u0062\"],"
              "\"exp\":1.9,\"iat\":7,\"scope\":\"one two\",\"scp\":[\"three\"],\"cnf\":{}}");
    struct span exact = unit_exact(buf_view(&token));
    assert_int_equal(jwt_read(&j, exact, &err), 0);
    assert_span(j.alg, "ES256");
    assert_span(j.kid, "ab");
    assert_span(j.typ, "at+jwt");
    assert_span(buf_view(&j.signature), "sig");
    assert_int_equal(j.signed_text.n, exact.n - 5);
    assert_span(j.claims.issuer, "i");
    assert_span(j.claims.subject, "s\xc3\xa4");
    assert_span(j.claims.client, "z");
    assert_int_equal(j.claims.expires, 1);
    assert_int_equal(j.claims.issued, 7);
    assert_true(j.claims.not_before == INT64_MIN);
    assert_true(j.claims.bound);
    assert_true(jwt_claims_are_for(&j.claims, SPAN("a")));
    assert_true(jwt_claims_are_for(&j.claims, SPAN("b")));
    assert_false(jwt_claims_are_for(&j.claims, SPAN("c")));
    assert_false(jwt_claims_are_for(&j.claims, SPAN("")));
    assert_true(jwt_claims_have_scope(&j.claims, SPAN("one")));
    assert_true(jwt_claims_have_scope(&j.claims, SPAN("two")));
    assert_true(jwt_claims_have_scope(&j.claims, SPAN("three")));
    assert_false(jwt_claims_have_scope(&j.claims, SPAN("on")));
    assert_false(jwt_claims_have_scope(&j.claims, SPAN("one two")));
    jwt_fini(&j);
    unit_free(exact);
}

static void test_what_is_none(void **state)
{
    static const char *const rows[][2] = {
        {"{\"alg\":\"RS256\"}", "[]"},
        {"{\"alg\":\"RS256\"}", "{"},
        {"{\"alg\":\"RS256\"}", "{\"exp\":1,\"exp\":2}"},
        {"{\"alg\":\"RS256\"}", "{\"iss\":1}"},
        {"{\"alg\":\"RS256\"}", "{\"exp\":\"1\"}"},
        {"{\"alg\":\"RS256\"}", "{\"exp\":-1}"},
        {"{\"alg\":\"RS256\"}", "{\"nbf\":1e99}"},
        {"{\"alg\":\"RS256\"}", "{\"scope\":[\"a\"]}"},
        {"{\"alg\":\"RS256\"}", "{\"a\":[[[[[[[[[]]]]]]]]]}"},
        {"{\"alg\":\"RS256\",\"alg\":\"none\"}", "{}"},
        {"{\"alg\":7}", "{}"},
        {"{}", "{}"},
        {"{\"alg\":\"\"}", "{}"},
        {"{\"alg\":\"RS256\",\"crit\":[]}", "{}"},
        {"{\"alg\":\"RS256\",\"kid\":7}", "{}"},
        {"[]", "{}"},
    };
    static const char *const texts[] = {
        "",        ".",           "..",        "...",           "a.b",
        "e30.e30", "e30=.e30.AA", "e30.e30.A", "e30.e30.AA.AA", "e3 0.e30.AA"};
    struct jwt j;
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_SCOPED token = {0};
        put_token(&token, rows[i][0], rows[i][1]);
        assert_true(jwt_read(&j, buf_view(&token), &err) < 0);
        jwt_fini(&j);
    }
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_true(jwt_read(&j, span_str(texts[i]), &err) < 0);
        jwt_fini(&j);
    }
    BUF_SCOPED huge = {0};
    put_token(&huge, "{\"alg\":\"RS256\"}", "{}");
    while (huge.n <= JWT_MAX)
        buf_char(&huge, 'A');
    assert_int_equal(jwt_read(&j, buf_view(&huge), &err), ERR_SIZE);
    jwt_fini(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_stands_in_it),
        cmocka_unit_test(test_what_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
