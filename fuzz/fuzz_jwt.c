/* jwt: tokens, and answers of introspection. What is accepted stays within its bounds: times can be
 * counted in ms, texts point into the token's own bytes, and asking for scopes and audiences of
 * any kind is safe. The input is tried as a token, and as the claims of one. */
#include "base/base64.h"
#include "base/mem.h"
#include "wire/jwt.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_time(int64_t t)
{
    if (t != INT64_MIN && (t < 0 || t > INT64_MAX / 2000))
        abort();
}

static void check_claims(const struct jwt_claims *c)
{
    volatile char sum = 0;
    const struct span texts[] = {c->issuer, c->subject, c->client, c->scope, c->audience, c->scp};

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (size_t k = 0; k < texts[i].n; k++)
            sum ^= texts[i].p[k];
    check_time(c->expires);
    check_time(c->not_before);
    check_time(c->issued);
    if (jwt_claims_are_for(c, SPAN("https://a.example/mcp")) && !c->audience.n)
        abort();
    if (jwt_claims_have_scope(c, SPAN("mcp")) && !c->scope.n && !c->scp.n)
        abort();
}

static void try_token(struct span token)
{
    struct jwt j;
    struct err err;

    if (jwt_read(&j, token, &err) == 0) {
        if (token.n > JWT_MAX || !j.alg.n || j.signed_text.n >= token.n)
            abort();
        check_claims(&j.claims);
    } else if (!err.text[0]) {
        abort();
    }
    jwt_fini(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct jwt_claims claims;
    BUF_SCOPED token = {0};
    struct err err;

    try_token(text);
    buf_str(&token, "eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9."); /* RS256, at+jwt */
    base64_put_url(&token, text);
    buf_str(&token, ".AAAA");
    try_token(buf_view(&token));
    token.n = 0;
    base64_put_url(&token, text);
    buf_str(&token, ".e30.AAAA");
    try_token(buf_view(&token));
    if (jwt_claims_read(&claims, text, &err) == 0)
        check_claims(&claims);
    buf_fini(&claims.own);
    return 0;
}
