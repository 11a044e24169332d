/*
 * json_scan: find the next significant byte in JSON text; private to json*.c and rpc.c.
 *
 * Most of a message is string contents, so these loops decide what reading costs: with SSE2 they
 * look at 16 bytes at once. RIALTO_NO_SIMD, or another machine, selects the plain loops, which also
 * take the last bytes of a text: nothing here ever loads a byte outside [p, end).
 *
 * Nouns: scan_.
 */
#ifndef RIALTO_WIRE_JSON_SCAN_H
#define RIALTO_WIRE_JSON_SCAN_H

#include "base/span.h"

#include <stdint.h>

#if defined(__SSE2__) && !defined(RIALTO_NO_SIMD)
#include <emmintrin.h>
#define JSON_SCAN_SIMD 1
enum { SCAN_STEP = 16 };

static inline __m128i scan_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* One bit for each of the 16 bytes: the sign of the byte. The first byte is the lowest bit. */
static inline unsigned scan_bits(__m128i hits)
{
    return (unsigned)_mm_movemask_epi8(hits);
}

/* Sets the sign of those bytes that end a plain stretch of a string (see scan_text). */
static inline __m128i scan_special(__m128i v)
{
    __m128i special = _mm_subs_epi8(v, _mm_set1_epi8(' '));

    special = _mm_or_si128(special, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
    return _mm_or_si128(special, _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
}

/* Is no byte of the next four steps (64 bytes) special? */
static inline bool scan_is_plain(const char *p)
{
    __m128i first =
        _mm_or_si128(scan_special(scan_load(p)), scan_special(scan_load(p + SCAN_STEP)));
    __m128i second = _mm_or_si128(scan_special(scan_load(p + 2 * SCAN_STEP)),
                                  scan_special(scan_load(p + 3 * SCAN_STEP)));

    return !scan_bits(_mm_or_si128(first, second));
}

static inline unsigned scan_first(unsigned bits)
{
    return (unsigned)__builtin_ctz(bits);
}
#else
#define JSON_SCAN_SIMD 0
#endif

static inline bool scan_is_space(char c)
{
    /* Usually the byte is not white space, and one comparison tells. */
    return (unsigned char)c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

/* The first byte that is not white space, or `end`. */
static inline const char *scan_space(const char *p, const char *end)
{
    static const char blanks[8] = "        ";

    while (p < end && scan_is_space(*p)) {
        p++;
        /* Indented text: long runs of blanks. */
        while (end - p >= 8 && memcmp(p, blanks, 8) == 0)
            p += 8;
    }
    return p;
}

/* `s` without JSON's white space at both ends. */
static inline struct span scan_trim(struct span s)
{
    if (!s.n)
        return s;
    const char *end = s.p + s.n, *p = scan_space(s.p, end);
    while (p < end && scan_is_space(end[-1]))
        end--;
    return span_of(p, (size_t)(end - p));
}

#if JSON_SCAN_SIMD
/* scan_text for long strings: takes four steps at once until the plain stretch ends. */
__attribute__((noinline, unused)) static const char *scan_far(const char *p, const char *end)
{
    while (end - p >= 4 * SCAN_STEP && scan_is_plain(p))
        p += 4 * SCAN_STEP;
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        unsigned hits = scan_bits(scan_special(scan_load(p)));
        if (hits)
            return p + scan_first(hits);
    }
    while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ')
        p++;
    return p;
}
#endif

/*
 * In a string whose bytes are not checked yet: the first quote, backslash, control or non-ASCII
 * byte, or `end`. As signed numbers, control and non-ASCII bytes are those below a blank: subtract
 * a blank, and the sign tells.
 */
static inline const char *scan_text(const char *p, const char *end)
{
#if JSON_SCAN_SIMD
    const char *near = end - p > 4 * SCAN_STEP ? p + 4 * SCAN_STEP : end;
    for (; near - p >= SCAN_STEP; p += SCAN_STEP) {
        unsigned hits = scan_bits(scan_special(scan_load(p)));
        if (hits)
            return p + scan_first(hits);
    }
    if (near < end)
        return scan_far(p, end);
#endif
    while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ')
        p++;
    return p;
}

#if JSON_SCAN_SIMD
static inline __m128i scan_quotes(const char *p)
{
    __m128i v = scan_load(p);

    return _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                        _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
}

/* scan_quotes of the next four steps together, so that long strings take few instructions. */
static inline __m128i scan_quotes4(const char *p)
{
    return _mm_or_si128(
        _mm_or_si128(scan_quotes(p), scan_quotes(p + SCAN_STEP)),
        _mm_or_si128(scan_quotes(p + 2 * SCAN_STEP), scan_quotes(p + 3 * SCAN_STEP)));
}
#endif

/* In a string that was checked: the first quote or backslash, or `end`. */
static inline const char *scan_quote(const char *p, const char *end)
{
#if JSON_SCAN_SIMD
    while (end - p >= 4 * SCAN_STEP && !scan_bits(scan_quotes4(p)))
        p += 4 * SCAN_STEP;
    for (; end - p >= SCAN_STEP; p += SCAN_STEP) {
        unsigned hits = scan_bits(scan_quotes(p));
        if (hits)
            return p + scan_first(hits);
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

/*
 * The pointer behind the closing quote of a checked string; `p` is behind the opening quote. `end`
 * if the closing quote is missing (never in a checked string). A quote is the closing one unless an
 * odd number of backslashes is before it; libc finds quotes faster than the loops above.
 */
static inline const char *scan_string(const char *p, const char *end)
{
    const char *const start = p;

    while (p < end && (p = memchr(p, '"', (size_t)(end - p)))) {
        const char *slashes = p;
        while (slashes > start && slashes[-1] == '\\')
            slashes--;
        if ((p++ - slashes) % 2 == 0)
            return p;
    }
    return end;
}

#endif
