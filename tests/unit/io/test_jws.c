/* Signatures of JWTs: the examples of the RFCs, every algorithm with keys that OpenSSL generates,
 * and keys and signatures that must be refused. */
#include "../unit.h"

#include "base/base64.h"
#include "base/library.h"
#include "io/jws.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>

static int set_up(void **state)
{
    struct err err;

    (void)state;
    return library_load(LIBRARY_TLS, &err); /* the tests also call OpenSSL directly */
}

static bool is_valid(const char *jwk, const char *alg, const char *text, const char *signature)
{
    BUF_SCOPED raw = {0};
    struct err err;
    struct jws_key *k = jws_key_read(span_str(jwk), &err);

    assert_non_null(k);
    assert_int_equal(base64_read_url(&raw, span_str(signature)), 0);
    bool valid = jws_verify(k, jws_alg_find(span_str(alg)), span_str(text), buf_view(&raw));
    jws_key_free(k);
    return valid;
}

/* RFC 7515 A.3 and RFC 8037 A.4. */
static void test_examples(void **state)
{
    static const char p256[] = "{\"kty\":\"EC\",\"crv\":\"P-256\","
                               "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                               "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}";
    static const char es256[] =
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQ"
        "ogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    static const char es256_by[] = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8IS"
                                   "lSApmWQxfKTUJqPP3-Kg6NU1Q";
    static const char ed25519[] = "{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
                                  "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}";
    static const char eddsa[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    static const char eddsa_by[] = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGj"
                                   "g5BhVsPt9g7sVvpAr_MuM0KAg";

    (void)state;
    assert_true(is_valid(p256, "ES256", es256, es256_by));
    assert_false(is_valid(p256, "ES256", eddsa, es256_by));
    assert_true(is_valid(ed25519, "EdDSA", eddsa, eddsa_by));
    assert_true(is_valid(ed25519, "Ed25519", eddsa, eddsa_by));
    assert_false(is_valid(ed25519, "EdDSA", es256, eddsa_by));
    assert_false(is_valid(ed25519, "ES256", eddsa, eddsa_by)); /* the key is of another type */
    assert_false(is_valid(p256, "ES384", es256, es256_by));
    assert_false(is_valid(p256, "RS256", es256, es256_by));
}

/* --- keys that OpenSSL generates --- */

static void put_number(struct buf *jwk, const char *name, EVP_PKEY *key, const char *param,
                       int size)
{
    unsigned char bytes[1024];
    BIGNUM *n = NULL;

    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &n), 1);
    int got = size ? BN_bn2binpad(n, bytes, size) : BN_bn2bin(n, bytes);
    assert_true(got > 0);
    BN_free(n);
    buf_printf(jwk, ",\"%s\":\"", name);
    base64_put_url(jwk, span_of((const char *)bytes, (size_t)got));
    buf_char(jwk, '"');
}

static void put_jwk(struct buf *jwk, EVP_PKEY *key, const char *crv, int size)
{
    unsigned char raw[32];
    size_t n = sizeof raw;

    if (!crv) {
        buf_str(jwk, "{\"kty\":\"RSA\"");
        put_number(jwk, "n", key, OSSL_PKEY_PARAM_RSA_N, 0);
        put_number(jwk, "e", key, OSSL_PKEY_PARAM_RSA_E, 0);
    } else if (size) {
        buf_printf(jwk, "{\"kty\":\"EC\",\"crv\":\"%s\"", crv);
        put_number(jwk, "x", key, OSSL_PKEY_PARAM_EC_PUB_X, size);
        put_number(jwk, "y", key, OSSL_PKEY_PARAM_EC_PUB_Y, size);
    } else {
        assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
        buf_printf(jwk, "{\"kty\":\"OKP\",\"crv\":\"%s\",\"x\":\"", crv);
        base64_put_url(jwk, span_of((const char *)raw, n));
        buf_char(jwk, '"');
    }
    buf_char(jwk, '}');
}

static struct jws_key *private_of(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    struct err err;
    char *text;

    assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    long n = BIO_get_mem_data(bio, &text);
    struct jws_key *k = jws_key_read_pem(span_of(text, (size_t)n), &err);
    BIO_free(bio);
    return k;
}

static const char *const names[] = {"RS256", "RS384", "RS512", "PS256", "PS384",  "PS512",
                                    "ES256", "ES384", "ES512", "EdDSA", "Ed25519"};

/* Only algorithms that fit the key can sign, and only the same algorithm verifies the signature. */
static void expect_only(EVP_PKEY *key, struct span jwk, const char *fits)
{
    struct err err;
    struct jws_key *private = private_of(key), *public = jws_key_read(jwk, &err);

    assert_non_null(private);
    assert_non_null(public);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct jws_alg *alg = jws_alg_find(span_str(names[i]));
        BUF_SCOPED signature = {0};
        int code = jws_sign(&signature, private, alg, SPAN("a text"), &err);
        assert_int_equal(code == 0, strncmp(names[i], fits, 2) == 0 &&
                                        (fits[2] == '*' || strcmp(names[i], fits) == 0 ||
                                         strcmp(fits, "RSA") == 0));
        for (size_t k = 0; k < COUNT_OF(names); k++) {
            const struct jws_alg *other = jws_alg_find(span_str(names[k]));
            bool same = code == 0 && (k == i || (i >= 9 && k >= 9));
            assert_int_equal(jws_verify(public, other, SPAN("a text"), buf_view(&signature)), same);
        }
        if (code)
            continue;
        assert_false(jws_verify(public, alg, SPAN("A text"), buf_view(&signature)));
        assert_false(jws_verify(public, alg, SPAN("a text"), SPAN_EMPTY));
        for (size_t n = 0; n < signature.n; n += 7) {
            signature.p[n] ^= 1;
            assert_false(jws_verify(public, alg, SPAN("a text"), buf_view(&signature)));
            signature.p[n] ^= 1;
        }
        signature.n--;
        assert_false(jws_verify(public, alg, SPAN("a text"), buf_view(&signature)));
        signature.n++;
    }
    jws_key_free(private);
    jws_key_free(public);
}

static void test_every_algorithm(void **state)
{
    static const struct {
        const char *group, *crv;
        int size;
        const char *fits;
    } rows[] = {{"P-256", "P-256", 32, "ES256"},
                {"P-384", "P-384", 48, "ES384"},
                {"P-521", "P-521", 66, "ES512"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_SCOPED jwk = {0};
        EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", rows[i].group);
        put_jwk(&jwk, key, rows[i].crv, rows[i].size);
        expect_only(key, buf_view(&jwk), rows[i].fits);
        EVP_PKEY_free(key);
    }
    EVP_PKEY *ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BUF_SCOPED jwk = {0};
    put_jwk(&jwk, ed, "Ed25519", 0);
    expect_only(ed, buf_view(&jwk), "Ed*");
    EVP_PKEY_free(ed);
}

/* RSA and PSS share a key, but a signature of one is not valid for the other. */
static void test_rsa(void **state)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    BUF_SCOPED jwk = {0};
    struct err err;

    (void)state;
    put_jwk(&jwk, key, NULL, 0);
    struct jws_key *private = private_of(key), *public = jws_key_read(buf_view(&jwk), &err);
    assert_non_null(public);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct jws_alg *alg = jws_alg_find(span_str(names[i]));
        BUF_SCOPED signature = {0};
        assert_int_equal(jws_sign(&signature, private, alg, SPAN("a text"), &err) == 0, i < 6);
        for (size_t k = 0; k < COUNT_OF(names); k++)
            assert_int_equal(jws_verify(public, jws_alg_find(span_str(names[k])), SPAN("a text"),
                                        buf_view(&signature)),
                             i < 6 && k == i);
    }
    jws_key_free(private);
    jws_key_free(public);
    EVP_PKEY_free(key);
}

static void test_no_such_algorithm(void **state)
{
    static const char *const bad[] = {"none", "None", "HS256", "HS512", "rs256",
                                      "RS1",  "",     "RSA",   "ES256K"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_null(jws_alg_find(span_str(bad[i])));
    assert_null(jws_alg_find(span_of("RS256\0", 6)));
}

static void put_rsa(struct buf *jwk, size_t bytes, const char *e)
{
    BUF_SCOPED n = {0};

    for (size_t i = 0; i < bytes; i++)
        buf_char(&n, (char)0xf1);
    buf_str(jwk, "{\"kty\":\"RSA\",\"n\":\"");
    base64_put_url(jwk, buf_view(&n));
    buf_printf(jwk, "\",\"e\":\"%s\"}", e);
}

/* Keys that are too weak, too slow, not on their curve, or no keys at all. */
static void test_bad_keys(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"kty\":\"oct\",\"k\":\"AAAA\"}",
        "{\"kty\":\"RSA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQ\",\"y\":\"AQ\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}",
        "{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":"
        "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\""
        ",\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"11qYAYKxCrfVS_"
        "7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
        "{\"kty\":\"OKP\",\"kty\":\"OKP\",\"crv\":\"Ed25519\","
        "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":7}",
    };
    static const struct {
        size_t bytes;
        const char *e;
        bool good;
    } rsa[] = {{256, "AQAB", true},  {1024, "AQAB", true},        {128, "AQAB", false},
               {255, "AQAB", false}, {1025, "AQAB", false},       {8192, "AQAB", false},
               {256, "AQ", false},   {256, "AQAA", false},        {256, "Ag", false},
               {256, "", false},     {256, "AQAAAAAAAAAB", false}};
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_null(jws_key_read(span_str(bad[i]), &err));
    for (size_t i = 0; i < COUNT_OF(rsa); i++) {
        BUF_SCOPED jwk = {0};
        put_rsa(&jwk, rsa[i].bytes, rsa[i].e);
        struct jws_key *k = jws_key_read(buf_view(&jwk), &err);
        assert_int_equal(k != NULL, rsa[i].good);
        jws_key_free(k);
    }
    assert_null(jws_key_read_pem(SPAN("nothing"), &err));
    assert_null(jws_key_read_pem(SPAN_EMPTY, &err));
    EVP_PKEY *weak = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    assert_null(private_of(weak));
    EVP_PKEY_free(weak);
    EVP_PKEY *x25519 = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    assert_null(private_of(x25519));
    EVP_PKEY_free(x25519);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples), cmocka_unit_test(test_every_algorithm),
        cmocka_unit_test(test_rsa),      cmocka_unit_test(test_no_such_algorithm),
        cmocka_unit_test(test_bad_keys),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
