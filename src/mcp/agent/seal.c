/* A requestState encrypted and opened again, by AES-256-GCM with a random key of this process.
 * Called by modern_park.c. */
#include "mcp/agent/seal.h"

#include "base/id.h"
#include "base/mem.h"

#include <openssl/evp.h>

enum { KEY_N = 32, NONCE_N = 12, TAG_N = 16, RAW_N = NONCE_N + sizeof(struct seal) + TAG_N };
enum { TEXT_N = (RAW_N + 2) / 3 * 4 };

static const unsigned char *process_key(void)
{
    static unsigned char key[KEY_N];
    static bool ready;

    if (!ready) {
        id_random_bytes(key, sizeof key);
        ready = true;
    }
    return key;
}

/* AES-256-GCM over one struct seal; `raw` is nonce, text, tag. */
static bool crypt_seal(unsigned char raw[RAW_N], struct seal *plain, bool encrypt)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned char *body = raw + NONCE_N, *tag = body + sizeof *plain;
    unsigned char *to = encrypt ? body : (unsigned char *)plain;
    const unsigned char *from = encrypt ? (const unsigned char *)plain : body;
    int n = 0;

    bool ok = ctx &&
              EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, process_key(), raw, encrypt) == 1 &&
              EVP_CipherUpdate(ctx, to, &n, from, (int)sizeof *plain) == 1;
    if (ok && !encrypt)
        ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_N, tag) == 1;
    ok = ok && EVP_CipherFinal_ex(ctx, to + n, &n) == 1;
    if (ok && encrypt)
        ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_N, tag) == 1;
    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

void seal_put(struct buf *out, const struct seal *s)
{
    unsigned char raw[RAW_N];
    struct seal plain = *s;

    id_random_bytes(raw, NONCE_N);
    crypt_seal(raw, &plain, true);
    buf_str(out, SEAL_PREFIX);
    int n = EVP_EncodeBlock((unsigned char *)buf_room(out, TEXT_N + 1), raw, RAW_N);
    out->n += (size_t)n;
}

bool seal_open(struct span text, struct seal *out)
{
    unsigned char raw[TEXT_N / 4 * 3];
    struct span body = span_from(text, strlen(SEAL_PREFIX));

    if (!span_starts(text, SPAN(SEAL_PREFIX)) || body.n != TEXT_N ||
        EVP_DecodeBlock(raw, (const unsigned char *)body.p, TEXT_N) < RAW_N)
        return false;
    return crypt_seal(raw, out, false);
}
