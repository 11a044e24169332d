/* Signing in to NATS with a file: the credentials of a user (.creds, a JWT and the seed of its key)
 * or the seed of an NKEY alone. Called by nats.c to check the file and by nats_link.c to log in. */
#include "bus/nats_inside.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/library.h"
#include "base/log.h"
#include "wire/json_out.h"

#include <openssl/evp.h>

enum {
    MAX_FILE = 64 * 1024,
    KEY = 32,
    SIGNATURE = 64,
    SEED_TEXT = 58, /* base32 of two bytes for the type, the key and a checksum */
    SEED_BYTES = 36,
    PUBLIC_BYTES = 35, /* one byte for the type, the key and a checksum */
    SEED_OF = 18 << 3, /* "S" as the first letter */
    USER = 20 << 3,    /* "U" */
};

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* CRC-16/XMODEM. */
static uint16_t checksum(const unsigned char *bytes, size_t n)
{
    unsigned crc = 0;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return (uint16_t)crc;
}

static void put_base32(struct buf *out, const unsigned char *bytes, size_t n)
{
    uint32_t bits = 0;
    unsigned have = 0;

    for (size_t i = 0; i < n; i++) {
        bits = bits << 8 | bytes[i];
        for (have += 8; have >= 5; have -= 5)
            buf_char(out, letters[bits >> (have - 5) & 31]);
    }
    if (have)
        buf_char(out, letters[bits << (5 - have) & 31]);
}

/* Accepts the seed of a user's key only: type, length and checksum must be right. */
static bool read_seed(struct span text, unsigned char key[KEY])
{
    unsigned char raw[SEED_BYTES] = {0};
    uint32_t bits = 0;
    unsigned have = 0;
    size_t n = 0;
    bool good = text.n == SEED_TEXT;

    for (size_t i = 0; good && i < text.n; i++) {
        const char *at = text.p[i] ? strchr(letters, text.p[i]) : NULL;
        good = at != NULL;
        bits = bits << 5 | (uint32_t)(good ? at - letters : 0);
        have += 5;
        if (have >= 8 && n < SEED_BYTES) {
            raw[n++] = (unsigned char)(bits >> (have - 8));
            have -= 8;
        }
    }
    good = good && (raw[0] & 0xf8) == SEED_OF && ((raw[0] & 7) << 5 | raw[1] >> 3) == USER &&
           checksum(raw, SEED_BYTES - 2) == (raw[SEED_BYTES - 2] | raw[SEED_BYTES - 1] << 8);
    if (good)
        memcpy(key, raw + 2, KEY);
    explicit_bzero(raw, sizeof raw);
    return good;
}

/* The public key, in the form in which the server lists its users. */
static bool put_public(struct buf *out, EVP_PKEY *pair)
{
    unsigned char raw[PUBLIC_BYTES] = {USER};
    size_t n = KEY;

    if (EVP_PKEY_get_raw_public_key(pair, raw + 1, &n) != 1 || n != KEY)
        return false;
    uint16_t sum = checksum(raw, 1 + KEY);
    raw[1 + KEY] = (unsigned char)sum;
    raw[2 + KEY] = (unsigned char)(sum >> 8);
    put_base32(out, raw, sizeof raw);
    return true;
}

/* In base64url, without padding. */
static bool put_signature(struct buf *out, EVP_PKEY *pair, struct span nonce)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char raw[SIGNATURE];
    size_t n = sizeof raw;
    bool good = context && EVP_DigestSignInit(context, NULL, NULL, NULL, pair) == 1 &&
                EVP_DigestSign(context, raw, &n, (const unsigned char *)nonce.p, nonce.n) == 1;

    EVP_MD_CTX_free(context);
    if (!good)
        return false;
    base64_put(out, span_of((const char *)raw, n));
    while (out->n && out->p[out->n - 1] == '=')
        out->n--;
    for (size_t i = 0; i < out->n; i++)
        out->p[i] = out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i];
    return true;
}

/* The two lines are recognized by their first characters; the text around them is for people. */
static void find_lines(struct span text, struct span *jwt, struct span *seed)
{
    while (text.n) {
        size_t end = span_find(text, '\n');
        struct span line = span_cut(text, 0, end);
        text = span_from(text, end + 1);
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        line = span_trim(line);
        if (span_starts(line, SPAN("eyJ")))
            *jwt = line;
        else if (span_starts(line, SPAN("SU")))
            *seed = line;
    }
}

static bool put_members(struct buf *json, struct span jwt, const unsigned char key[KEY],
                        struct span nonce)
{
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, KEY);
    BUF_SCOPED public = {0}, signature = {0};
    bool good = pair && put_public(&public, pair) && put_signature(&signature, pair, nonce);

    EVP_PKEY_free(pair);
    if (!good)
        return false;
    if (jwt.n)
        json_out_text(json, "jwt", jwt);
    else
        json_out_text(json, "nkey", buf_view(&public));
    json_out_text(json, "sig", buf_view(&signature));
    return true;
}

int nats_login_put(struct buf *json, const char *file, struct span nonce, struct err *err)
{
    BUF_SCOPED text = {0};
    struct span jwt = SPAN_EMPTY, seed = SPAN_EMPTY;
    unsigned char key[KEY];
    int code = library_load(LIBRARY_TLS, err);

    if (code < 0)
        return code;
    code = file_read(&text, file, MAX_FILE);
    if (code < 0)
        return err_set(err, ERR_CONFIG, "cannot read the NATS credentials in %s: %s", file,
                       err_name(code));
    find_lines(buf_view(&text), &jwt, &seed);
    log_add_secret(jwt);
    log_add_secret(seed);
    code = 0;
    if (!read_seed(seed, key))
        code = err_set(err, ERR_CONFIG,
                       "%s has no seed of a NATS user's key: a line of %d characters that begins "
                       "with SU",
                       file, SEED_TEXT);
    else if (!put_members(json, jwt, key, nonce))
        code = err_set(err, ERR_CONFIG, "OpenSSL does not sign with the key in %s", file);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text.p, text.n);
    return code;
}
