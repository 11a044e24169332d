/* BLAKE2b without a key, with a digest of 64 bytes. Called by admin/audit_file.c. */
#include "base/blake.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 128, ROUNDS = 12 };

static const uint64_t start[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                  0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                  0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

/* Which words of the block each round takes; the last two rounds are the first two again. */
static const unsigned char order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t turn(uint64_t x, unsigned n)
{
    return x >> n | x << (64 - n);
}

static inline void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
    *a += *b + x;
    *d = turn(*d ^ *a, 32);
    *c += *d;
    *b = turn(*b ^ *c, 24);
    *a += *b + y;
    *d = turn(*d ^ *a, 16);
    *c += *d;
    *b = turn(*b ^ *c, 63);
}

/* `n` is the number of bytes of the text up to the end of this block. */
static void add_block(uint64_t state[8], const unsigned char *block, uint64_t n, bool last)
{
    uint64_t w[16], v[16];

    memcpy(w, block, sizeof w); /* little endian, as all machines that we build for are */
    memcpy(v, state, 8 * sizeof *v);
    memcpy(v + 8, start, sizeof start);
    v[12] ^= n;
    v[14] ^= last ? ~UINT64_C(0) : 0;
    /* Unrolled, so that the places of words and of the state are constants: a third cheaper. */
#pragma GCC unroll 12
    for (unsigned r = 0; r < ROUNDS; r++) {
        const unsigned char *s = order[r % 10];
        mix(v + 0, v + 4, v + 8, v + 12, w[s[0]], w[s[1]]);
        mix(v + 1, v + 5, v + 9, v + 13, w[s[2]], w[s[3]]);
        mix(v + 2, v + 6, v + 10, v + 14, w[s[4]], w[s[5]]);
        mix(v + 3, v + 7, v + 11, v + 15, w[s[6]], w[s[7]]);
        mix(v + 0, v + 5, v + 10, v + 15, w[s[8]], w[s[9]]);
        mix(v + 1, v + 6, v + 11, v + 12, w[s[10]], w[s[11]]);
        mix(v + 2, v + 7, v + 8, v + 13, w[s[12]], w[s[13]]);
        mix(v + 3, v + 4, v + 9, v + 14, w[s[14]], w[s[15]]);
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] ^= v[i] ^ v[i + 8];
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "add_block reads words as they stand");

void blake_2b(unsigned char out[BLAKE_2B_N], struct span text)
{
    unsigned char last[BLOCK] = {0};
    uint64_t state[8];
    size_t at = 0;

    memcpy(state, start, sizeof start);
    state[0] ^= 0x01010000 ^ BLAKE_2B_N; /* no key, this length */
    for (; text.n - at > BLOCK; at += BLOCK)
        add_block(state, (const unsigned char *)text.p + at, at + BLOCK, false);
    if (text.n > at)
        memcpy(last, text.p + at, text.n - at);
    add_block(state, last, text.n, true);
    memcpy(out, state, BLAKE_2B_N);
}
