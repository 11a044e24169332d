/* The wall clock in milliseconds, and writing and reading ISO 8601 times. Called by the other files
 * of bus/, by rockbot/ for the current time, and by cmd/bus_tail.c. */
#include "bus/stamp.h"

#include "base/ascii.h"

#include <time.h>

uint64_t stamp_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void stamp_put(struct buf *out, uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (!gmtime_r(&seconds, &tm))
        memset(&tm, 0, sizeof tm);
    buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900, tm.tm_mon + 1,
               tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(ms % 1000));
}

/* `n` digits from *at on, or -1. */
static int take_number(struct span *at, size_t n)
{
    uint64_t value;

    if (at->n < n || !ascii_number(span_cut(*at, 0, n), &value))
        return -1;
    *at = span_from(*at, n);
    return (int)value;
}

static bool take_char(struct span *at, char c)
{
    if (!at->n || at->p[0] != c)
        return false;
    *at = span_from(*at, 1);
    return true;
}

static int take_fraction(struct span *at)
{
    int ms = 0, weight = 100;

    if (!take_char(at, '.'))
        return 0;
    for (; at->n && ascii_is_digit(at->p[0]); *at = span_from(*at, 1)) {
        ms += weight * (at->p[0] - '0');
        weight /= 10;
    }
    return ms;
}

/* Seconds east of UTC at the end of the text; false for anything else. */
static bool take_offset(struct span *at, int *offset)
{
    *offset = 0;
    if (take_char(at, 'Z'))
        return at->n == 0;
    int sign = take_char(at, '-') ? -1 : take_char(at, '+') ? 1 : 0;
    int hours = take_number(at, 2);
    bool colon = take_char(at, ':');
    int minutes = take_number(at, 2);
    *offset = sign * (hours * 3600 + minutes * 60);
    return sign && colon && hours >= 0 && minutes >= 0 && at->n == 0;
}

uint64_t stamp_read(struct span text)
{
    static const struct {
        size_t digits;
        char after; /* 0 = nothing */
        int min, max;
    } parts[] = {{4, '-', 1970, 9999}, {2, '-', 1, 12}, {2, 'T', 1, 31},
                 {2, ':', 0, 23},      {2, ':', 0, 59}, {2, 0, 0, 60}};
    int v[6], offset;

    for (size_t i = 0; i < 6; i++) {
        v[i] = take_number(&text, parts[i].digits);
        if (v[i] < parts[i].min || v[i] > parts[i].max)
            return 0;
        if (parts[i].after && !take_char(&text, parts[i].after))
            return 0;
    }
    int ms = take_fraction(&text);
    if (!take_offset(&text, &offset))
        return 0;
    struct tm tm = {.tm_year = v[0] - 1900,
                    .tm_mon = v[1] - 1,
                    .tm_mday = v[2],
                    .tm_hour = v[3],
                    .tm_min = v[4],
                    .tm_sec = v[5]};
    int64_t seconds = (int64_t)timegm(&tm) - offset;
    return seconds < 0 ? 0 : (uint64_t)seconds * 1000 + (uint64_t)ms;
}
