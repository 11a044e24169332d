/* Numbers of the JSON grammar taken apart and compared digit by digit. Called by core/rules.c and
 * config/check_rule.c. */
#include "base/decimal.h"

#include <stdint.h>

enum { EXPONENT_DIGITS = 15 };

/* A number as 0.DIGITS * 10^exponent; the digits neither begin nor end with a zero. */
struct decimal {
    int sign;                 /* -1, 0 or 1 */
    const char *digits, *end; /* the digits, with the point if it stands among them */
    int64_t exponent;
};

static bool read_exponent(struct span text, int64_t *out)
{
    bool negative = text.n && text.p[0] == '-';
    int64_t value = 0;

    if (text.n && (text.p[0] == '-' || text.p[0] == '+'))
        text = span_from(text, 1);
    while (text.n && text.p[0] == '0')
        text = span_from(text, 1);
    if (text.n > EXPONENT_DIGITS)
        return false;
    for (size_t i = 0; i < text.n; i++)
        value = value * 10 + (text.p[i] - '0');
    *out = negative ? -value : value;
    return true;
}

static bool read_decimal(struct span text, struct decimal *d)
{
    const char *p = text.p, *end = text.p + text.n, *e = p, *point;

    *d = (struct decimal){.sign = text.n && *p == '-' ? -1 : 1};
    p += d->sign < 0;
    while (e < end && *e != 'e' && *e != 'E')
        e++;
    for (point = p; point < e && *point != '.';)
        point++;
    for (d->digits = p; d->digits < e && (*d->digits == '0' || *d->digits == '.');)
        d->digits++;
    for (d->end = e; d->end > d->digits && (d->end[-1] == '0' || d->end[-1] == '.');)
        d->end--;
    if (d->digits == d->end) {
        d->sign = 0;
        return true;
    }
    if (!read_exponent(e < end ? span_of(e + 1, (size_t)(end - e - 1)) : SPAN_EMPTY, &d->exponent))
        return false;
    d->exponent += d->digits < point ? point - d->digits : point + 1 - d->digits;
    return true;
}

/* The next digit, or -1 behind the last one. */
static int next_digit(const char **p, const char *end)
{
    if (*p < end && **p == '.')
        (*p)++;
    return *p < end ? *(*p)++ : -1;
}

static int compare_sizes(const struct decimal *a, const struct decimal *b)
{
    const char *p = a->digits, *q = b->digits;
    int x, y;

    if (a->exponent != b->exponent)
        return a->exponent < b->exponent ? -1 : 1;
    do {
        x = next_digit(&p, a->end);
        y = next_digit(&q, b->end);
    } while (x == y && x >= 0);
    return x == y ? 0 : x < y ? -1 : 1;
}

bool decimal_compare(struct span a, struct span b, int *order)
{
    struct decimal x, y;

    if (!read_decimal(a, &x) || !read_decimal(b, &y))
        return false;
    if (x.sign != y.sign)
        *order = x.sign < y.sign ? -1 : 1;
    else
        *order = x.sign * compare_sizes(&x, &y);
    return true;
}
