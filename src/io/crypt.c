/* Sealing and opening texts with AES-256-GCM. Called by hub/signin/signin_file.c for the file of
 * tokens. */
#include "io/crypt.h"

#include "base/id.h"
#include "base/library.h"
#include "base/sha.h"

#include <limits.h>
#include <openssl/evp.h>

/* Sealed: the nonce, the encrypted text, the tag. */
enum { NONCE_N = 12, TAG_N = 16 };

/* `use` is part of the key, so that what was sealed for one use does not open for another. */
static void make_key(unsigned char key[SHA256_N], struct span secret, const char *use)
{
    sha_hmac(key, secret, span_str(use));
}

static const unsigned char *bytes_of(struct span s)
{
    return (const unsigned char *)s.p;
}

static bool encrypt(EVP_CIPHER_CTX *ctx, const unsigned char *key, struct span text,
                    unsigned char *out)
{
    unsigned char *nonce = out, *body = out + NONCE_N, *tag = body + text.n;
    int n = 0;

    return EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
           EVP_EncryptUpdate(ctx, body, &n, bytes_of(text), (int)text.n) == 1 &&
           EVP_EncryptFinal_ex(ctx, body + n, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_N, tag) == 1;
}

static bool decrypt(EVP_CIPHER_CTX *ctx, const unsigned char *key, struct span sealed,
                    unsigned char *out)
{
    const unsigned char *nonce = bytes_of(sealed), *body = nonce + NONCE_N;
    size_t body_n = sealed.n - NONCE_N - TAG_N;
    unsigned char tag[TAG_N];
    int n = 0;

    memcpy(tag, body + body_n, sizeof tag);
    return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
           EVP_DecryptUpdate(ctx, out, &n, body, (int)body_n) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_N, tag) == 1 &&
           EVP_DecryptFinal_ex(ctx, out + n, &n) == 1;
}

int crypt_seal(struct buf *out, struct span secret, const char *use, struct span text,
               struct err *err)
{
    unsigned char key[SHA256_N];

    int code = library_load(LIBRARY_TLS, err);
    if (code)
        return code;
    if (text.n > INT_MAX)
        return err_set(err, ERR_SIZE, "too long to be encrypted");
    unsigned char *to = (unsigned char *)buf_room(out, NONCE_N + text.n + TAG_N);
    id_random_bytes(to, NONCE_N);
    make_key(key, secret, use);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool ok = ctx && encrypt(ctx, key, text, to);
    EVP_CIPHER_CTX_free(ctx);
    if (!ok)
        return err_set(err, ERR_PROTOCOL, "OpenSSL cannot encrypt");
    out->n += NONCE_N + text.n + TAG_N;
    return 0;
}

int crypt_open(struct buf *out, struct span secret, const char *use, struct span sealed,
               struct err *err)
{
    unsigned char key[SHA256_N];

    int code = library_load(LIBRARY_TLS, err);
    if (code)
        return code;
    if (sealed.n < NONCE_N + TAG_N || sealed.n > INT_MAX)
        return err_set(err, ERR_SYNTAX, "too short to be an encrypted text");
    size_t n = sealed.n - NONCE_N - TAG_N;
    unsigned char *to = (unsigned char *)buf_room(out, n + 1);
    make_key(key, secret, use);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool ok = ctx && decrypt(ctx, key, sealed, to);
    EVP_CIPHER_CTX_free(ctx);
    if (!ok)
        return err_set(err, ERR_PROTOCOL, "encrypted with another key, or damaged");
    out->n += n;
    return 0;
}
