/* Keeps the end of a component's stderr in a bounded buffer, and writes the last lines redacted.
 * Called by component.c; hop.c frees the buffer. */
#include "acp/stderr_tail.h"

#include "base/log.h"
#include "base/utf8.h"

enum {
    /* Bytes kept before the part that is shown: the redactor must see a secret whole to recognise
     * it. */
    EDGE = 4 * 1024,
    KEPT = STDERR_TAIL_WHOLE + EDGE,
    /* The oldest bytes are dropped only when this many are held, and then many at once: dropping a
     * few with each line would move all the others each time. */
    FULL = 2 * STDERR_TAIL_WHOLE,
};

void stderr_tail_add(struct stderr_tail *w, struct span bytes)
{
    if (bytes.n > KEPT) {
        bytes = span_from(bytes, bytes.n - KEPT);
        w->dropped = true;
    }
    if (w->kept.n + bytes.n > FULL) {
        buf_drop(&w->kept, w->kept.n + bytes.n - KEPT);
        w->dropped = true;
    }
    buf_span(&w->kept, bytes);
}

void stderr_tail_reset(struct stderr_tail *w)
{
    buf_fini(&w->kept);
    w->dropped = false;
}

/* The last `max` bytes, cut so that they begin with the first line that begins in their first half
 * or, if none does, with a whole character. */
static struct span end_of(struct span text, size_t max)
{
    struct span end = span_from(text, text.n - max);
    size_t at = 0;

    if (text.p[text.n - max - 1] == '\n')
        return end;
    struct span line = span_from(end, span_find(end, '\n') + 1);
    if (line.n > max / 2)
        return line;
    while (at < 3 && at < end.n && utf8_tail((unsigned char)end.p[at]))
        at++;
    return span_from(end, at);
}

void stderr_tail_put(struct buf *out, const struct stderr_tail *w, size_t max)
{
    BUF_SCOPED clean = {0};

    log_redact(&clean, buf_view(&w->kept));
    struct span shown = buf_view(&clean);
    size_t edge = !w->dropped ? 0 : shown.n < EDGE ? shown.n : EDGE;
    if (max > shown.n - edge)
        max = shown.n - edge;
    if (shown.n > max)
        shown = end_of(shown, max);
    if (shown.n < clean.n)
        buf_str(out, "[... what it wrote before this is left out]\n");
    buf_span(out, shown);
}

bool stderr_tail_line(struct span *text, struct span *line)
{
    while (text->n) {
        *line = span_cut(*text, 0, span_find(*text, '\n'));
        *text = span_from(*text, line->n + 1);
        if (line->n && line->p[line->n - 1] == '\r')
            line->n--;
        if (span_trim(*line).n)
            return true;
    }
    return false;
}
