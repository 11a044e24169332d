/* Durations, sizes and times read from text and written as text. Called by schema.c, schema_doc.c
 * and schema_dump.c, and by acp/flow.c and cmd/ for options. */
#include "config/units.h"

#include "base/ascii.h"
#include "base/mem.h"

#include <time.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first. */
static const struct unit durations[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit sizes[] = {
    {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1}};

/* The digits at the front of `text`; false when there are none or too many. */
static bool read_digits(struct span *text, uint64_t *number)
{
    size_t at = 0;

    *number = 0;
    while (at < text->n && ascii_is_digit(text->p[at])) {
        if (at == 15)
            return false;
        *number = *number * 10 + (uint64_t)(text->p[at++] - '0');
    }
    *text = span_from(*text, at);
    return at > 0;
}

static const struct unit *find_unit(struct span name, const struct unit *units, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_is(name, units[i].name))
            return &units[i];
    return NULL;
}

const char *units_read_duration(struct span text, uint64_t *ms)
{
    static const char wanted[] = "expected a duration like 500ms, 30s, 10m or 2h";
    uint64_t number;

    if (!read_digits(&text, &number))
        return wanted;
    if (!text.n && number)
        return "a duration needs a unit: ms, s, m or h, as in 30s";
    const struct unit *u = text.n ? find_unit(text, durations, COUNT_OF(durations)) : &durations[0];
    if (!u)
        return wanted;
    if (number > UINT64_MAX / u->factor)
        return "this is too large";
    *ms = number * u->factor;
    return NULL;
}

const char *units_read_size(struct span text, uint64_t *bytes)
{
    static const char wanted[] = "expected a size like 512B, 16KiB, 10MiB or 1GiB";
    uint64_t number;

    if (!read_digits(&text, &number))
        return wanted;
    if (!text.n && number)
        return "a size needs a unit: B, KiB, MiB or GiB, as in 16MiB";
    const struct unit *u = text.n ? find_unit(text, sizes, COUNT_OF(sizes)) : &sizes[0];
    if (!u)
        return wanted;
    if (number > UINT64_MAX / u->factor)
        return "this is too large";
    *bytes = number * u->factor;
    return NULL;
}

static void put(struct buf *out, uint64_t number, const struct unit *units, size_t n)
{
    size_t i = 0;

    while (i + 1 < n && (!number || number % units[i].factor))
        i++;
    buf_u64(out, number / units[i].factor);
    if (number)
        buf_str(out, units[i].name);
}

void units_put_duration(struct buf *out, uint64_t ms)
{
    put(out, ms, durations, COUNT_OF(durations));
}

void units_put_size(struct buf *out, uint64_t bytes)
{
    put(out, bytes, sizes, COUNT_OF(sizes));
}

/* --- times --- */

/* Exactly `digits` digits at the front of `text`, then `after` (0: nothing). */
static bool read_part(struct span *text, size_t digits, char after, int *number)
{
    if (text->n < digits + (after != 0) || (after && ascii_to_upper(text->p[digits]) != after))
        return false;
    *number = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!ascii_is_digit(text->p[i]))
            return false;
        *number = *number * 10 + (text->p[i] - '0');
    }
    *text = span_from(*text, digits + (after != 0));
    return true;
}

/* ".017": the first three digits count. */
static int read_fraction(struct span *text)
{
    int ms = 0, weight = 100;

    if (!text->n || text->p[0] != '.')
        return 0;
    *text = span_from(*text, 1);
    for (; text->n && ascii_is_digit(text->p[0]); *text = span_from(*text, 1), weight /= 10)
        ms += weight * (text->p[0] - '0');
    return ms;
}

/* "Z", "+02:00" or "-05:30", in minutes. */
static bool read_offset(struct span text, int *minutes)
{
    int hours, sign = text.n && text.p[0] == '-' ? -1 : 1;

    *minutes = 0;
    if (span_eq_nocase(text, SPAN("Z")))
        return true;
    if (!text.n || (text.p[0] != '+' && text.p[0] != '-'))
        return false;
    text = span_from(text, 1);
    if (!read_part(&text, 2, ':', &hours) || !read_part(&text, 2, 0, minutes) || text.n ||
        hours > 23 || *minutes > 59)
        return false;
    *minutes = sign * (hours * 60 + *minutes);
    return true;
}

const char *units_read_time(struct span text, int64_t *ms)
{
    static const char wanted[] = "expected a time as in 2026-12-31T23:59:59Z";
    struct tm t = {0};
    int offset;

    if (!read_part(&text, 4, '-', &t.tm_year) || !read_part(&text, 2, '-', &t.tm_mon) ||
        !read_part(&text, 2, 'T', &t.tm_mday) || !read_part(&text, 2, ':', &t.tm_hour) ||
        !read_part(&text, 2, ':', &t.tm_min) || !read_part(&text, 2, 0, &t.tm_sec))
        return wanted;
    int fraction = read_fraction(&text);
    if (!read_offset(text, &offset) || t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 60)
        return wanted;
    struct tm given = t;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    time_t seconds = timegm(&t); /* turns 31 February into a day of March, which shows below */
    if (t.tm_mon + 1 != given.tm_mon && t.tm_sec == given.tm_sec)
        return "there is no such day";
    *ms = ((int64_t)seconds - offset * 60) * 1000 + fraction;
    return NULL;
}

void units_put_time(struct buf *out, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char text[32];

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    buf_str(out, text);
    if (ms % 1000)
        buf_printf(out, ".%03dZ", (int)(ms % 1000));
    else
        buf_char(out, 'Z');
}
