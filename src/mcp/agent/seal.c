/* A requestState encrypted and opened again, with a random key of this process. Called by
 * modern_park.c and modern.c, and by hub/upgrade.c for the key. */
#include "mcp/agent/seal.h"

#include "base/base64.h"
#include "base/id.h"
#include "base/sha.h"

enum { NONCE_N = 16, TAG_N = 16 };

/* A seal as it is sent, in base64. */
struct sealed {
    unsigned char nonce[NONCE_N];
    unsigned char body[sizeof(struct seal)];
    unsigned char tag[TAG_N];
};

/* The content must not be longer than one digest, which is the mask that encrypts it. */
_Static_assert(sizeof(struct seal) <= SHA256_N, "a seal has more than one digest can hide");

/* The key of this process, random unless `given` replaces it; `given` may be empty. */
static struct span process_key(struct span given)
{
    static unsigned char key[SHA256_N];
    static bool ready;

    if (given.n == sizeof key)
        memcpy(key, given.p, sizeof key);
    else if (!ready)
        id_random_bytes(key, sizeof key);
    ready = true;
    return span_of((const char *)key, sizeof key);
}

/* The same key encrypts, signs and makes digests: the first byte (`use`) keeps these uses apart. */
static void keyed_digest(unsigned char out[SHA256_N], char use, const void *p, size_t n)
{
    BUF_SCOPED text = {0};

    buf_char(&text, use);
    buf_bytes(&text, p, n);
    sha_hmac(out, process_key(SPAN_EMPTY), buf_view(&text));
}

/* Encrypts the body, or decrypts it. A nonce is never used twice. */
static void turn_body(struct sealed *s)
{
    unsigned char mask[SHA256_N];

    keyed_digest(mask, 'h', s->nonce, sizeof s->nonce);
    for (size_t i = 0; i < sizeof s->body; i++)
        s->body[i] ^= mask[i];
}

/* Signs the nonce and the encrypted body. */
static void sign(unsigned char out[SHA256_N], const struct sealed *s)
{
    keyed_digest(out, 's', s, offsetof(struct sealed, tag));
}

void seal_put(struct buf *out, const struct seal *s)
{
    unsigned char signature[SHA256_N];
    struct sealed sealed;

    id_random_bytes(sealed.nonce, sizeof sealed.nonce);
    memcpy(sealed.body, s, sizeof sealed.body);
    turn_body(&sealed);
    sign(signature, &sealed);
    memcpy(sealed.tag, signature, sizeof sealed.tag);
    buf_str(out, SEAL_PREFIX);
    base64_put(out, span_of((const char *)&sealed, sizeof sealed));
}

bool seal_open(struct span text, struct seal *out)
{
    unsigned char signature[SHA256_N];
    BUF_SCOPED bytes = {0};
    struct sealed sealed;

    if (!span_starts(text, SPAN(SEAL_PREFIX)) || text.n > 2 * sizeof sealed ||
        base64_read(&bytes, span_from(text, strlen(SEAL_PREFIX))) || bytes.n != sizeof sealed)
        return false;
    memcpy(&sealed, bytes.p, sizeof sealed);
    sign(signature, &sealed);
    if (!sha_same(signature, sealed.tag, sizeof sealed.tag))
        return false;
    turn_body(&sealed);
    memcpy(out, sealed.body, sizeof *out);
    return true;
}

uint64_t seal_digest(struct span text)
{
    unsigned char digest[SHA256_N];
    uint64_t out;

    keyed_digest(digest, 'd', text.p, text.n);
    memcpy(&out, digest, sizeof out);
    return out;
}

void seal_put_key(struct buf *out)
{
    buf_span(out, process_key(SPAN_EMPTY));
}

void seal_take_key(struct span key)
{
    process_key(key);
}
