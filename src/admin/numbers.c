/* The last hour of a server or a tool, minute by minute. Called by accounts.c for each call, and by
 * charts.c to show it. */
#include "admin/numbers.h"

#include "wire/json_out.h"

static uint64_t minute_of(uint64_t now)
{
    return now / NUMBERS_MINUTE_MS + 1;
}

void numbers_count(struct numbers *n, uint64_t now, uint64_t took_ms, bool failed)
{
    uint64_t minute = minute_of(now);
    struct numbers_minute *m = &n->minutes[minute % NUMBERS_MINUTES];
    unsigned bucket = took_ms ? 64 - (unsigned)__builtin_clzll(took_ms) : 0;

    if (m->minute != minute)
        *m = (struct numbers_minute){.minute = minute};
    m->calls++;
    m->errors += failed;
    if (bucket >= STATS_BUCKETS)
        bucket = STATS_BUCKETS - 1;
    m->durations[bucket] += m->durations[bucket] < UINT16_MAX;
}

static const struct numbers_minute *find_minute(const struct numbers *n, uint64_t minute)
{
    static const struct numbers_minute none;
    const struct numbers_minute *m = &n->minutes[minute % NUMBERS_MINUTES];

    return m->minute == minute ? m : &none;
}

/* The upper edge of the bucket that has the call at this percentile. */
static void put_percentile(struct buf *out, const struct numbers_minute *m, unsigned percent)
{
    uint64_t all = 0, seen = 0;
    unsigned bucket = 0;

    for (unsigned i = 0; i < STATS_BUCKETS; i++)
        all += m->durations[i];
    if (!all) {
        json_out_raw(out, NULL, SPAN("null"));
        return;
    }
    while ((seen += m->durations[bucket]) * 100 < all * percent)
        bucket++;
    json_out_number(out, NULL, UINT64_C(1) << bucket);
}

enum column { COLUMN_CALLS, COLUMN_ERRORS, COLUMN_P50, COLUMN_P99 };

static void put_cell(struct buf *out, const struct numbers_minute *m, enum column column)
{
    if (column == COLUMN_CALLS || column == COLUMN_ERRORS)
        json_out_number(out, NULL, column == COLUMN_CALLS ? m->calls : m->errors);
    else
        put_percentile(out, m, column == COLUMN_P50 ? 50 : 99);
}

void numbers_put(struct buf *out, const struct numbers *n, uint64_t now)
{
    static const char *const names[] = {"calls", "errors", "p50", "p99"};
    uint64_t last = minute_of(now);

    for (enum column c = COLUMN_CALLS; c <= COLUMN_P99; c++) {
        json_out_open(out, names[c], '[');
        for (uint64_t i = NUMBERS_MINUTES; i > 0; i--) /* before the start: minute 0 is empty */
            put_cell(out, find_minute(n, last >= i ? last - i + 1 : 0), c);
        buf_char(out, ']');
    }
}
