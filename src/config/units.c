/* Durations and sizes read from text and written as text. Called by schema.c, schema_doc.c and
 * schema_dump.c, and by acp/flow.c and cmd/ for options. */
#include "config/units.h"

#include "base/ascii.h"
#include "base/mem.h"

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
