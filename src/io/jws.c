/* Signatures of JWTs: keys from JWKs and PEM files, the table of algorithms, checking and signing.
 * Called by hub/ for the tokens of agents, and for what we sign for authorization servers. */
#include "io/jws.h"

#include "base/base64.h"
#include "base/library.h"
#include "base/mem.h"
#include "wire/json.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

enum {
    RSA_MIN = 2048 / 8, /* bytes of the modulus */
    RSA_MAX = 8192 / 8,
    EXPONENT_MAX = 4, /* bytes: a long one only makes checking slow */
    POINT_MAX = 66,   /* bytes of a coordinate */
    ED25519_N = 32,
};

enum key_type { KEY_RSA, KEY_P256, KEY_P384, KEY_P521, KEY_ED25519 };

struct jws_alg {
    const char *name;
    enum key_type type;
    const char *digest; /* NULL: the algorithm has its own */
    bool pss;
};

static const struct jws_alg algs[] = {
    {"RS256", KEY_RSA, "SHA256", false},   {"RS384", KEY_RSA, "SHA384", false},
    {"RS512", KEY_RSA, "SHA512", false},   {"PS256", KEY_RSA, "SHA256", true},
    {"PS384", KEY_RSA, "SHA384", true},    {"PS512", KEY_RSA, "SHA512", true},
    {"ES256", KEY_P256, "SHA256", false},  {"ES384", KEY_P384, "SHA384", false},
    {"ES512", KEY_P521, "SHA512", false},  {"EdDSA", KEY_ED25519, NULL, false},
    {"Ed25519", KEY_ED25519, NULL, false},
};

/* The curves by their names in a JWK and in OpenSSL; `n` is the size of a coordinate. */
static const struct curve {
    const char *jwk, *group;
    enum key_type type;
    size_t n;
} curves[] = {
    {"P-256", "prime256v1", KEY_P256, 32},
    {"P-384", "secp384r1", KEY_P384, 48},
    {"P-521", "secp521r1", KEY_P521, 66},
};

struct jws_key {
    EVP_PKEY *pair; /* or only the public key */
    enum key_type type;
    size_t coordinate; /* bytes; 0 for a key without a curve */
};

const struct jws_alg *jws_alg_find(struct span name)
{
    for (size_t i = 0; i < COUNT_OF(algs); i++)
        if (span_is(name, algs[i].name))
            return &algs[i];
    return NULL;
}

bool jws_key_fits(const struct jws_key *k, const struct jws_alg *alg)
{
    return k->type == alg->type;
}

void jws_key_free(struct jws_key *k)
{
    if (!k)
        return;
    EVP_PKEY_free(k->pair);
    mem_free(k);
}

/* --- keys from JWKs --- */

enum { J_NONE, J_KTY, J_CRV, J_N, J_E, J_X, J_Y, J_SLOTS };

static const struct json_shape_row jwk_rows[] = {
    {"kty", J_KTY, NULL}, {"crv", J_CRV, NULL}, {"n", J_N, NULL},
    {"e", J_E, NULL},     {"x", J_X, NULL},     {"y", J_Y, NULL},
};
static const struct json_shape jwk_shape = JSON_SHAPE(jwk_rows);

/* The bytes of a member; false if it is no base64url or too long. */
static bool read_bytes(const struct json_slot *slot, size_t max, struct buf *out)
{
    BUF_SCOPED scratch = {0};
    struct span text = slot->type == JSON_STRING ? json_text(slot->value, &scratch) : SPAN_EMPTY;

    return text.n && text.n <= max * 4 / 3 + 4 && base64_read_url(out, text) == 0 && out->n <= max;
}

static EVP_PKEY *public_key(const char *type, OSSL_PARAM *params)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;

    if (!context)
        abort(); /* no memory */
    if (EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    ERR_clear_error();
    return key;
}

/* Numbers in a JWK are big-endian; OpenSSL's parameters have the machine's byte order. */
static void to_machine_order(struct buf *number)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (size_t i = 0, k = number->n; i + 1 < k--; i++) {
        char first = number->p[i];
        number->p[i] = number->p[k];
        number->p[k] = first;
    }
#else
    (void)number;
#endif
}

static struct jws_key *key_of(EVP_PKEY *pair, enum key_type type, size_t coordinate)
{
    if (!pair)
        return NULL;
    struct jws_key *k = MEM_NEW(struct jws_key);
    *k = (struct jws_key){.pair = pair, .type = type, .coordinate = coordinate};
    return k;
}

static struct jws_key *read_rsa(const struct json_slot *slots)
{
    BUF_SCOPED n = {0}, e = {0};

    if (!read_bytes(&slots[J_N], RSA_MAX, &n) || n.n < RSA_MIN || !n.p[0] ||
        !read_bytes(&slots[J_E], EXPONENT_MAX, &e) || !(e.p[e.n - 1] & 1) ||
        (e.n == 1 && e.p[0] == 1))
        return NULL;
    to_machine_order(&n);
    to_machine_order(&e);
    OSSL_PARAM params[] = {
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, n.p, n.n),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, e.p, e.n),
        OSSL_PARAM_END,
    };
    return key_of(public_key("RSA", params), KEY_RSA, 0);
}

static struct jws_key *read_ec(const struct json_slot *slots)
{
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        BUF_SCOPED point = {0};
        if (!json_string_is(slots[J_CRV].value, span_str(curves[i].jwk)))
            continue;
        size_t n = curves[i].n;
        buf_char(&point, 4); /* the point is not compressed: both coordinates follow */
        if (!read_bytes(&slots[J_X], 1 + n, &point) || point.n != 1 + n ||
            !read_bytes(&slots[J_Y], 1 + 2 * n, &point) || point.n != 1 + 2 * n)
            return NULL;
        /* OpenSSL checks that the point is on the curve. */
        OSSL_PARAM params[] = {
            OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)(uintptr_t)curves[i].group,
                                   strlen(curves[i].group)),
            OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.p, point.n),
            OSSL_PARAM_END,
        };
        return key_of(public_key("EC", params), curves[i].type, n);
    }
    return NULL;
}

static struct jws_key *read_okp(const struct json_slot *slots)
{
    BUF_SCOPED x = {0};

    if (!json_string_is(slots[J_CRV].value, SPAN("Ed25519")) ||
        !read_bytes(&slots[J_X], ED25519_N, &x) || x.n != ED25519_N)
        return NULL;
    return key_of(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (unsigned char *)x.p, x.n),
                  KEY_ED25519, 0);
}

struct jws_key *jws_key_read(struct span jwk, struct err *err)
{
    static const struct {
        const char *kty;
        struct jws_key *(*read)(const struct json_slot *slots);
    } types[] = {{"RSA", read_rsa}, {"EC", read_ec}, {"OKP", read_okp}};
    struct json_slot slots[J_SLOTS] = {{0}};
    struct jws_key *k = NULL;

    if (library_load(LIBRARY_TLS, err))
        return NULL;
    err_set(err, ERR_PROTOCOL, "it is of a type that is not known here");
    if (json_skim(jwk, &jwk_shape, slots, NULL, NULL)) {
        err_set(err, ERR_PROTOCOL, "it is not a JWK");
        return NULL;
    }
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (!json_string_is(slots[J_KTY].value, span_str(types[i].kty)))
            continue;
        k = types[i].read(slots);
        err_set(err, ERR_PROTOCOL, "its numbers are wrong, too short or too long");
    }
    return k;
}

/* --- keys from PEM files --- */

/* Never ask for a passphrase at the terminal. */
static int no_passphrase(char *text, int size, int writing, void *arg)
{
    (void)text, (void)size, (void)writing, (void)arg;
    return 0;
}

/* Sets the type of the key. False: none of our algorithms is for such a key. */
static bool find_type(struct jws_key *k)
{
    char group[32];

    if (EVP_PKEY_is_a(k->pair, "RSA")) {
        int bits = EVP_PKEY_get_bits(k->pair);
        k->type = KEY_RSA;
        return bits >= RSA_MIN * 8 && bits <= RSA_MAX * 8;
    }
    if (EVP_PKEY_is_a(k->pair, "ED25519")) {
        k->type = KEY_ED25519;
        return true;
    }
    if (!EVP_PKEY_is_a(k->pair, "EC") ||
        EVP_PKEY_get_utf8_string_param(k->pair, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                       NULL) != 1)
        return false;
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        if (strcmp(group, curves[i].group) == 0) {
            k->type = curves[i].type;
            k->coordinate = curves[i].n;
            return true;
        }
    }
    return false;
}

struct jws_key *jws_key_read_pem(struct span pem, struct err *err)
{
    if (library_load(LIBRARY_TLS, err))
        return NULL;
    BIO *in = BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
    if (!in)
        abort(); /* no memory */
    struct jws_key *k = key_of(PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL), KEY_RSA, 0);
    BIO_free(in);
    if (!k)
        err_set(err, ERR_CONFIG, "there is no private key in PEM form, or it has a passphrase");
    else if (!find_type(k))
        err_set(err, ERR_CONFIG,
                "the private key is neither RSA of 2048 to 8192 bits, nor P-256, P-384, P-521 or "
                "Ed25519");
    else
        goto done;
    jws_key_free(k);
    k = NULL;
done:
    ERR_clear_error();
    return k;
}

/* --- signatures --- */

/* The signature of an elliptic curve: from the form in JWS, two numbers of fixed size, to the DER
 * of OpenSSL. */
static bool to_der(struct buf *out, struct span raw)
{
    ECDSA_SIG *s = ECDSA_SIG_new();
    int half = (int)(raw.n / 2);
    BIGNUM *r = BN_bin2bn((const unsigned char *)raw.p, half, NULL);
    BIGNUM *t = BN_bin2bn((const unsigned char *)raw.p + half, half, NULL);

    if (!s || !r || !t || ECDSA_SIG_set0(s, r, t) != 1)
        abort(); /* no memory */
    unsigned char *to = (unsigned char *)buf_room(out, raw.n + 16);
    int n = i2d_ECDSA_SIG(s, &to);
    out->n += n > 0 ? (size_t)n : 0;
    ECDSA_SIG_free(s);
    return n > 0;
}

/* From the DER of OpenSSL to the form in JWS. */
static bool from_der(struct buf *out, struct span der, size_t coordinate)
{
    const unsigned char *p = (const unsigned char *)der.p;
    ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &p, (long)der.n);
    unsigned char *to = (unsigned char *)buf_room(out, 2 * coordinate);
    bool fine = s && BN_bn2binpad(ECDSA_SIG_get0_r(s), to, (int)coordinate) > 0 &&
                BN_bn2binpad(ECDSA_SIG_get0_s(s), to + coordinate, (int)coordinate) > 0;

    ECDSA_SIG_free(s);
    out->n += fine ? 2 * coordinate : 0;
    return fine;
}

static bool set_padding(EVP_PKEY_CTX *context, const struct jws_alg *alg)
{
    return !alg->pss || (EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0 &&
                         EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) > 0);
}

static EVP_MD_CTX *new_context(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    if (!context)
        abort(); /* no memory */
    return context;
}

bool jws_verify(const struct jws_key *k, const struct jws_alg *alg, struct span text,
                struct span signature)
{
    BUF_SCOPED der = {0};

    if (!jws_key_fits(k, alg) || (k->coordinate && signature.n != 2 * k->coordinate))
        return false;
    if (k->coordinate) {
        if (!to_der(&der, signature))
            return false;
        signature = buf_view(&der);
    }
    EVP_MD_CTX *context = new_context();
    EVP_PKEY_CTX *padding;
    bool valid =
        EVP_DigestVerifyInit_ex(context, &padding, alg->digest, NULL, NULL, k->pair, NULL) == 1 &&
        set_padding(padding, alg) &&
        EVP_DigestVerify(context, (const unsigned char *)signature.p, signature.n,
                         (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return valid;
}

int jws_sign(struct buf *out, const struct jws_key *k, const struct jws_alg *alg, struct span text,
             struct err *err)
{
    BUF_SCOPED made = {0};

    if (!jws_key_fits(k, alg))
        return err_set(err, ERR_CONFIG, "the private key is of another type than %s needs",
                       alg->name);
    EVP_MD_CTX *context = new_context();
    EVP_PKEY_CTX *padding;
    size_t n = RSA_MAX;
    bool fine =
        EVP_DigestSignInit_ex(context, &padding, alg->digest, NULL, NULL, k->pair, NULL) == 1 &&
        set_padding(padding, alg) &&
        EVP_DigestSign(context, (unsigned char *)buf_room(&made, n), &n,
                       (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    made.n = fine ? n : 0;
    if (fine && k->coordinate)
        fine = from_der(out, buf_view(&made), k->coordinate);
    else if (fine)
        buf_span(out, buf_view(&made));
    return fine ? 0 : err_set(err, ERR_CONFIG, "OpenSSL does not sign with this private key");
}
