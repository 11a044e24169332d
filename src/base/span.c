/* Comparisons of spans that are too long for the header: without case, by order, by glob pattern,
 * and in constant time for secrets. Called by every folder. */
#include "base/span.h"

#include "base/ascii.h"

#include <stdint.h>

/* Do two words of eight bytes differ only in the case of letters? `differ` is the XOR of both. */
static bool same_letters(uint64_t a, uint64_t differ)
{
    const uint64_t each = 0x0101010101010101u, high = each << 7;
    uint64_t low = a | each * 0x20;

    if (differ & ~(each * 0x20))
        return false;
    /* In each byte below 0x80: 'a' and above carry into the high bit; those beyond 'z' are removed.
     */
    uint64_t letters = (low & ~high) + each * (0x80 - 'a');
    letters &= ~((low & ~high) + each * (0x80 - 'z' - 1)) & ~a & high;
    return !(differ << 2 & ~letters);
}

bool span_same_nocase(const char *a, const char *b, size_t n)
{
    for (; n >= 8; a += 8, b += 8, n -= 8) {
        uint64_t left, right;
        memcpy(&left, a, 8);
        memcpy(&right, b, 8);
        if (left != right && !same_letters(left, left ^ right))
            return false;
    }
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && ascii_to_lower(a[i]) != ascii_to_lower(b[i]))
            return false;
    return true;
}

bool span_has_nocase(struct span a, struct span part)
{
    for (size_t i = 0; i + part.n <= a.n; i++)
        if (span_eq_nocase(span_cut(a, i, part.n), part))
            return true;
    return false;
}

int span_cmp(struct span a, struct span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    if (order)
        return order;
    return a.n < b.n ? -1 : a.n > b.n;
}

static bool is_same_byte(char a, char b, bool exact)
{
    return exact ? a == b : ascii_to_lower(a) == ascii_to_lower(b);
}

static bool glob(struct span pattern, struct span text, bool exact)
{
    size_t p = 0, t = 0, star = (size_t)-1, star_text = 0;

    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            star_text = t;
            if (p == pattern.n)
                return true;
        } else if (p < pattern.n &&
                   (pattern.p[p] == '?' || is_same_byte(pattern.p[p], text.p[t], exact))) {
            p++;
            t++;
        } else if (star != (size_t)-1) {
            /* Let the last star swallow one byte more and try again from there. */
            p = star + 1;
            t = ++star_text;
            if (exact && pattern.p[p] != '?' && pattern.p[p] != '*') {
                /* Long texts are common where case counts: go on where the next byte can match. */
                t = star_text += span_find(span_from(text, t), pattern.p[p]);
            }
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

bool span_glob(struct span pattern, struct span text)
{
    return glob(pattern, text, false);
}

bool span_glob_exact(struct span pattern, struct span text)
{
    return glob(pattern, text, true);
}

bool span_eq_secret(struct span given, struct span secret)
{
    unsigned char differ = given.n != secret.n || !secret.n;

    for (size_t i = 0; i < given.n && secret.n; i++)
        differ |= (unsigned char)(given.p[i] ^ secret.p[i % secret.n]);
    return !differ;
}
