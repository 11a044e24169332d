/*
 * utf8: which bytes are UTF-8, by the one strict definition (RFC 3629).
 *
 * No overlong forms, no surrogates, nothing above U+10FFFF. All code that checks UTF-8
 * uses this file, so that a text that one codec lets in is never refused by the next.
 */
#ifndef RIALTO_BASE_UTF8_H
#define RIALTO_BASE_UTF8_H

#include "base/span.h"

#include <stdint.h>

/* Is this the second, third or fourth byte of a sequence? */
static inline bool utf8_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length (1 to 4) of the UTF-8 sequence at `start`, which is before `end`; 0 when there is none. */
static inline size_t utf8_length(const char *start, const char *end)
{
    const unsigned char *p = (const unsigned char *)start;
    ptrdiff_t n = end - start;

    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xe0)
        return p[0] >= 0xc2 && n >= 2 && utf8_tail(p[1]) ? 2 : 0;
    if (p[0] < 0xf0) {
        if (n < 3 || !utf8_tail(p[1]) || !utf8_tail(p[2]))
            return 0;
        unsigned high = (p[0] & 0x0fu) << 6 | (p[1] & 0x3fu); /* the code point >> 6 */
        return high >= 0x800 >> 6 && high >> 5 != 0xd800 >> 11 ? 3 : 0;
    }
    if (n < 4 || !utf8_tail(p[1]) || !utf8_tail(p[2]) || !utf8_tail(p[3]))
        return 0;
    unsigned high = (p[0] & 0x0fu) << 6 | (p[1] & 0x3fu); /* the code point >> 12 */
    return high >= 0x10000 >> 12 && high <= 0x10ffff >> 12 ? 4 : 0;
}

/* Are the `n` words at `p` plain ASCII? */
static inline bool utf8_ascii(const char *p, size_t n)
{
    uint64_t all = 0, word;

    for (size_t i = 0; i < n; i++) {
        memcpy(&word, p + i * sizeof word, sizeof word);
        all |= word;
    }
    return !(all & 0x8080808080808080u);
}

static inline bool utf8_valid(struct span s)
{
    const char *p = s.p;
    size_t left = s.n;

    while (left) {
        size_t n = 0;
        /* Long steps through ASCII, single ones through everything else. */
        if ((unsigned char)*p < 0x80 && left >= 32 && utf8_ascii(p, 4))
            n = 32;
        else if ((unsigned char)*p < 0x80 && left >= 8 && utf8_ascii(p, 1))
            n = 8;
        else
            n = utf8_length(p, p + left);
        if (!n)
            return false;
        p += n;
        left -= n;
    }
    return true;
}

/* Write `code` (a scalar value, no surrogate) as UTF-8; returns how many bytes. */
static inline size_t utf8_put(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

#endif
