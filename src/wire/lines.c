/* Cutting a byte stream into lines, with a limit on the length of a line. Called by the stdio pipes
 * of mcp/, acp/, the line protocol of bus/, browser/pipe.c, io/child.c and some commands. */
#include "wire/lines.h"

enum {
    KEEP = 4096,    /* a tail buffer larger than this is freed after its line */
    REPORTED = 256, /* first bytes of an over-long line that are reported */
};

void lines_init(struct lines *l, size_t cap)
{
    *l = (struct lines){.cap = cap};
}

void lines_fini(struct lines *l)
{
    buf_fini(&l->tail);
}

void lines_stop(struct lines *l)
{
    l->stopped = true;
}

static void give(struct lines *l, struct span line, const struct lines_events *on, void *owner)
{
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (span_trim(line).n)
        on->line(owner, line);
    buf_reset(&l->tail, KEEP);
}

/*
 * The line that the tail began and `piece` continues is over the cap. The reported bytes do not
 * depend on how the stream was cut, because tail and piece together are longer than the report.
 */
static void give_up(struct lines *l, struct span piece, const struct lines_events *on, void *owner)
{
    size_t shown = l->cap < REPORTED ? l->cap : REPORTED;
    struct span head = span_cut(piece, 0, shown);

    if (l->tail.n) {
        if (l->tail.n < shown)
            buf_span(&l->tail, span_cut(piece, 0, shown - l->tail.n));
        head = span_cut(buf_view(&l->tail), 0, shown);
    }
    l->skipping = true;
    on->too_long(owner, head);
    buf_reset(&l->tail, KEEP);
}

void lines_feed(struct lines *l, struct span chunk, const struct lines_events *on, void *owner)
{
    while (chunk.n && !l->stopped) {
        struct span piece = span_cut(chunk, 0, span_find(chunk, '\n'));
        bool ends = piece.n < chunk.n;
        chunk = span_from(chunk, piece.n + ends);

        if (!l->skipping && piece.n > l->cap - l->tail.n)
            give_up(l, piece, on, owner);
        if (l->skipping) {
            l->skipping = !ends;
        } else if (!ends) {
            buf_span(&l->tail, piece);
        } else if (l->tail.n) {
            buf_span(&l->tail, piece);
            give(l, buf_view(&l->tail), on, owner);
        } else {
            give(l, piece, on, owner);
        }
    }
}

void lines_end(struct lines *l, const struct lines_events *on, void *owner)
{
    if (!l->stopped && !l->skipping && l->tail.n)
        give(l, buf_view(&l->tail), on, owner);
    l->skipping = false;
}
