/* SHA-1, SHA-256 and HMAC over texts that are in memory as a whole. Called by wire/ws.c,
 * admin/control.c, io/crypt.c, io/scrypt.c, rockbot/fingerprint.c, and parts of hub/, mcp/ and
 * cmd/. */
#include "base/sha.h"

#include "base/buf.h"

#include <stdint.h>

enum { BLOCK = 64, LENGTH_AT = 56 };

static uint32_t rotate_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static uint32_t rotate_right(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void set32(unsigned char *p, uint32_t x)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> (24 - 8 * i));
}

/* --- one block --- */

static void sha1_block(uint32_t state[], const unsigned char *block)
{
    static const uint32_t k[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    for (unsigned i = 0; i < 16; i++)
        w[i] = get32(block + (size_t)4 * i);
    for (unsigned i = 16; i < 80; i++)
        w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t next = rotate_left(a, 5) + f + e + k[i / 20] + w[i];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    const uint32_t add[] = {a, b, c, d, e};
    for (unsigned i = 0; i < 5; i++)
        state[i] += add[i];
}

static const uint32_t sha256_k[] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void sha256_block(uint32_t state[], const unsigned char *block)
{
    uint32_t w[64], s[8];

    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 16; i++)
        w[i] = get32(block + (size_t)4 * i);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) + w[i - 7] +
               (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
    }
    for (unsigned i = 0; i < 64; i++) {
        uint32_t a = s[0], e = s[4];
        uint32_t one = s[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                       ((e & s[5]) ^ (~e & s[6])) + sha256_k[i] + w[i];
        uint32_t two = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                       ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

/* --- a text --- */

/* SHA-1 and SHA-256 pad alike: the last block, or two, end with the length of the text in bits. */
static void digest(unsigned char *out, uint32_t *state, size_t words, struct span text,
                   void (*add)(uint32_t state[], const unsigned char *block))
{
    const unsigned char *p = (const unsigned char *)text.p;
    unsigned char last[2 * BLOCK] = {0};
    size_t whole = text.n / BLOCK * BLOCK, rest = text.n - whole;
    size_t n = rest < LENGTH_AT ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)text.n * 8;

    for (size_t i = 0; i < whole; i += BLOCK)
        add(state, p + i);
    if (rest)
        memcpy(last, p + whole, rest);
    last[rest] = 0x80;
    set32(last + n - 8, (uint32_t)(bits >> 32));
    set32(last + n - 4, (uint32_t)bits);
    for (size_t i = 0; i < n; i += BLOCK)
        add(state, last + i);
    for (size_t i = 0; i < words; i++)
        set32(out + 4 * i, state[i]);
}

void sha_1(unsigned char out[SHA1_N], struct span text)
{
    uint32_t state[] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

    digest(out, state, 5, text, sha1_block);
}

void sha_256(unsigned char out[SHA256_N], struct span text)
{
    uint32_t state[] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    digest(out, state, 8, text, sha256_block);
}

/* The digest of the key, each byte XORed with `with`, followed by the text. */
static void keyed(unsigned char out[SHA256_N], const unsigned char key[BLOCK], unsigned char with,
                  struct span text)
{
    BUF_SCOPED all = {0};

    for (size_t i = 0; i < BLOCK; i++)
        buf_char(&all, (char)(key[i] ^ with));
    buf_span(&all, text);
    sha_256(out, buf_view(&all));
}

void sha_hmac(unsigned char out[SHA256_N], struct span key, struct span text)
{
    unsigned char block[BLOCK] = {0}, inner[SHA256_N];

    if (key.n > BLOCK)
        sha_256(block, key);
    else if (key.n)
        memcpy(block, key.p, key.n);
    keyed(inner, block, 0x36, text);
    keyed(out, block, 0x5c, span_of((const char *)inner, sizeof inner));
}

bool sha_same(const unsigned char *a, const unsigned char *b, size_t n)
{
    volatile unsigned char differ = 0;

    for (size_t i = 0; i < n; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}
