/* The decoder of event streams. Called by mcp/server/http_*.c, browser/join.c and cmd/daemon.c. */
#include "wire/sse.h"

enum {
    KEEP = 4096,    /* buffers larger than this are freed after each event */
    CUT_MAX = 4096, /* bytes of a piece that are still taken when the line does not fit */
};

void sse_decoder_init(struct sse_decoder *d, size_t cap)
{
    *d = (struct sse_decoder){.cap = cap, .retry = -1};
}

void sse_decoder_fini(struct sse_decoder *d)
{
    buf_fini(&d->line);
    buf_fini(&d->name);
    buf_fini(&d->data);
    buf_fini(&d->id);
}

void sse_decoder_stop(struct sse_decoder *d)
{
    d->stopped = true;
}

/* A blank line: hand out the event that was collected, and start the next. The last id stays. */
static void dispatch(struct sse_decoder *d, sse_event_fn *on_event, void *owner)
{
    if (d->has_data || d->has_any) {
        struct sse_event event = {
            .name = d->name.n ? buf_view(&d->name) : SPAN("message"),
            .data = buf_view(&d->data),
            .id = buf_view(&d->id),
            .has_data = d->has_data,
            .retry = d->retry,
        };
        on_event(owner, &event);
    }
    buf_reset(&d->name, KEEP);
    buf_reset(&d->data, KEEP);
    d->has_data = d->has_any = false;
    d->retry = -1;
}

static int field_event(struct sse_decoder *d, struct span value)
{
    d->name.n = 0;
    buf_span(&d->name, value);
    return 0;
}

static int field_data(struct sse_decoder *d, struct span value)
{
    size_t extra = value.n + d->has_data;
    if (extra > d->cap - d->data.n)
        return ERR_SIZE;
    if (d->has_data)
        buf_char(&d->data, '\n');
    buf_span(&d->data, value);
    d->has_data = true;
    return 0;
}

/* An id with a NUL in it is ignored: it could not be sent back in a header. */
static int field_id(struct sse_decoder *d, struct span value)
{
    if (span_find(value, '\0') < value.n)
        return 0;
    d->id.n = 0;
    buf_span(&d->id, value);
    d->has_any = true;
    return 0;
}

/* A value with other bytes than digits is ignored; one that does not fit becomes the largest. */
static int field_retry(struct sse_decoder *d, struct span value)
{
    int64_t ms = 0;

    if (!value.n)
        return 0;
    for (size_t i = 0; i < value.n; i++) {
        int digit = value.p[i] - '0';
        if (digit < 0 || digit > 9)
            return 0;
        ms = ms > (INT64_MAX - digit) / 10 ? INT64_MAX : ms * 10 + digit;
    }
    d->retry = ms;
    d->has_any = true;
    return 0;
}

static const struct {
    struct span name;
    int (*take)(struct sse_decoder *d, struct span value);
} fields[] = {
    {{"data", 4}, field_data},
    {{"event", 5}, field_event},
    {{"id", 2}, field_id},
    {{"retry", 5}, field_retry},
};

/* One line that is not blank. Comments have an empty name and so match no field. */
static int take_field(struct sse_decoder *d, struct span line)
{
    size_t colon = span_find(line, ':');
    struct span name = span_cut(line, 0, colon);
    struct span value = span_from(line, colon + 1);

    if (value.n && value.p[0] == ' ')
        value = span_from(value, 1);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (span_eq(name, fields[i].name))
            return fields[i].take(d, value);
    return 0;
}

static int take_line(struct sse_decoder *d, struct span line, sse_event_fn *on_event, void *owner)
{
    static const struct span bom = {"\xef\xbb\xbf", 3};

    if (!d->started && span_starts(line, bom))
        line = span_from(line, bom.n);
    d->started = true;
    if (line.n)
        return take_field(d, line);
    dispatch(d, on_event, owner);
    return 0;
}

/*
 * Where the line that starts at `at` ends: at the first CR or LF, or at the end of the text. `*lf`
 * remembers the next LF (first call: 0), because looking for it again from every line of a text
 * with CRs only would be quadratic.
 */
static size_t line_end(struct span text, size_t at, size_t *lf)
{
    if (*lf <= at)
        *lf = at + span_find(span_from(text, at), '\n');
    return at + span_find(span_cut(text, at, *lf - at), '\r');
}

/* The event is too long: give what is there of its data, and skip the rest. `line` is the beginning
 * of the line that did not fit. */
static void give_cut(struct sse_decoder *d, struct span line, sse_event_fn *on_event, void *owner)
{
    static const struct span field = {"data:", 5};
    struct span data = buf_view(&d->data);

    if (!data.n && span_starts(line, field))
        data = span_trim(span_from(line, field.n));
    on_event(owner, &(struct sse_event){.name = d->name.n ? buf_view(&d->name) : SPAN("message"),
                                        .data = data,
                                        .id = buf_view(&d->id),
                                        .has_data = true,
                                        .cut = true,
                                        .retry = -1});
    d->skipping = true;
    buf_reset(&d->data, 0);
    buf_reset(&d->line, 0);
}

/* A line, or its end, of an event that is being skipped; a blank line ends the event. */
static void skip_line(struct sse_decoder *d)
{
    if (!d->skipped) {
        d->skipping = d->has_data = d->has_any = false;
        d->retry = -1;
        buf_reset(&d->name, KEEP);
    }
    d->skipped = 0;
}

int sse_feed(struct sse_decoder *d, struct span chunk, sse_event_fn *on_event, void *owner)
{
    size_t at = 0, lf = 0;

    while (at < chunk.n && !d->stopped) {
        bool second_half = d->after_cr && chunk.p[at] == '\n';
        d->after_cr = false;
        if (second_half) {
            at++;
            continue;
        }
        size_t end = line_end(chunk, at, &lf);
        struct span piece = span_cut(chunk, at, end - at);
        if (!d->skipping && piece.n > d->cap - d->line.n) {
            if (!d->skips)
                return ERR_SIZE;
            buf_span(&d->line, span_cut(piece, 0, CUT_MAX));
            give_cut(d, buf_view(&d->line), on_event, owner);
        }
        d->skipped += d->skipping ? piece.n : 0;
        if (!d->skipping && (end == chunk.n || d->line.n))
            buf_span(&d->line, piece);
        if (end == chunk.n)
            break;

        d->after_cr = chunk.p[end] == '\r';
        at = end + 1;
        if (d->skipping) {
            skip_line(d);
            continue;
        }
        int rc = take_line(d, d->line.n ? buf_view(&d->line) : piece, on_event, owner);
        if (rc && !d->skips)
            return rc;
        if (rc)
            give_cut(d, SPAN_EMPTY, on_event, owner);
        buf_reset(&d->line, KEEP);
    }
    return 0;
}
