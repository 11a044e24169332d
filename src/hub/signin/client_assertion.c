/* JWTs with which we authenticate at authorization servers. Called by grant.c. */
#include "hub/signin/client_assertion.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"
#include "io/jws.h"
#include "wire/json_out.h"

#include <time.h>

enum { KEY_MAX = 64 * 1024, LIFE_S = 60 };

/* The first algorithm that the key and the server can both do. */
static const char *choose_alg(const struct jws_key *key, const char *known)
{
    static const char *const order[] = {"ES256", "ES384", "ES512", "EdDSA",
                                        "RS256", "PS256", "RS384", "RS512"};

    for (size_t i = 0; i < COUNT_OF(order); i++)
        if (jws_key_fits(key, jws_alg_find(span_str(order[i]))) &&
            (!known || oauth_scope_has(known, order[i])))
            return order[i];
    return NULL;
}

static void put_claims(struct buf *out, const struct grant_client *c)
{
    uint64_t now = (uint64_t)time(NULL);
    char id[ID_TOKEN_SIZE];
    BUF_SCOPED claims = {0};

    id_token(id);
    buf_char(&claims, '{');
    json_out_str(&claims, "iss", c->id);
    json_out_str(&claims, "sub", c->id);
    json_out_str(&claims, "aud", c->audience);
    json_out_number(&claims, "iat", now);
    json_out_number(&claims, "exp", now + LIFE_S);
    json_out_str(&claims, "jti", id);
    buf_char(&claims, '}');
    base64_put_url(out, buf_view(&claims));
}

static int put_signed(struct buf *out, const struct grant_client *c, const struct jws_key *key,
                      struct err *err)
{
    const char *alg = choose_alg(key, c->algs);
    BUF_SCOPED head = {0}, text = {0}, signature = {0};

    if (!alg)
        return err_set(err, ERR_CONFIG,
                       "the key in %s has no algorithm that the authorization server knows (%s)",
                       c->private_key, c->algs);
    buf_printf(&head, "{\"alg\":\"%s\",\"typ\":\"JWT\"}", alg);
    base64_put_url(&text, buf_view(&head));
    buf_char(&text, '.');
    put_claims(&text, c);
    int code = jws_sign(&signature, key, jws_alg_find(span_str(alg)), buf_view(&text), err);
    if (code)
        return code;
    buf_span(out, buf_view(&text));
    buf_char(out, '.');
    base64_put_url(out, buf_view(&signature));
    return 0;
}

int client_assertion_put(struct buf *out, const struct grant_client *c, struct err *err)
{
    BUF_SCOPED pem = {0};
    struct err why;

    int code = file_read(&pem, c->private_key, KEY_MAX);
    if (code)
        return err_set(err, code, "cannot read the key in %s: %s", c->private_key, err_name(code));
    struct jws_key *key = jws_key_read_pem(buf_view(&pem), &why);
    if (!key)
        return err_set(err, ERR_CONFIG, "the key in %s cannot be used: %s", c->private_key,
                       why.text);
    code = put_signed(out, c, key, err);
    jws_key_free(key);
    return code;
}
