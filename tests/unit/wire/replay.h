/*
 * replay: feeds a codec the same bytes cut in different ways.
 *
 * A codec's replay function (replay_*.h) writes what came out as text, so that two ways of cutting
 * are compared as strings. Each piece lies in a block of exactly its size that is freed after the
 * feed: a codec that reads too far or keeps a pointer is caught by the sanitizer. Used by the unit
 * tests with fixed and random cuts (replay_unit.h), and by the fuzz targets with cuts that the
 * fuzzer chooses.
 */
#ifndef RIALTO_TESTS_REPLAY_H
#define RIALTO_TESTS_REPLAY_H

#include "base/buf.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Sizes of the pieces, used in turn; none: one piece. A size of 0 counts as 256. */
struct cuts {
    const uint8_t *sizes;
    size_t n;
    size_t at;
};

/* The next piece of `rest`, copied; the caller frees it with mem_free(piece_memory). */
static inline struct span cuts_next(struct cuts *c, struct span *rest, char **piece_memory)
{
    size_t n = rest->n;
    if (c->n) {
        size_t size = c->sizes[c->at++ % c->n];
        size = size ? size : 256;
        n = size < n ? size : n;
    }
    char *copy = mem_alloc(n ? n : 1);
    if (n)
        memcpy(copy, rest->p, n);
    *rest = span_from(*rest, n);
    *piece_memory = copy;
    return span_of(copy, n);
}

/* Feeds `in`, cut, to a codec with the limit `cap`, and appends what comes out to `log`. */
typedef void replay_fn(struct buf *log, struct span in, struct cuts cuts, size_t cap);

static inline void replay_put(struct buf *log, const char *what, struct span bytes)
{
    buf_printf(log, "%s %zu:", what, bytes.n);
    buf_span(log, bytes);
    buf_char(log, '\n');
}

/* Is the output for `in` the same, cut and whole? If not, `log` has both outputs. */
static inline bool replay_agrees(replay_fn *replay, struct span in, struct cuts cuts, size_t cap,
                                 struct buf *log)
{
    struct buf other = {0};
    replay(&other, in, cuts, cap);
    bool same = span_eq(buf_view(&other), buf_view(log));
    if (!same) {
        buf_str(log, "--- but cut:\n");
        buf_span(log, buf_view(&other));
    }
    buf_fini(&other);
    return same;
}

/*
 * For fuzz targets: the first byte says how many sizes follow, and the bytes after them are fed.
 * Aborts the program when the output depends on how the input is cut.
 */
static inline void replay_fuzzed(replay_fn *replay, const uint8_t *data, size_t size, size_t cap)
{
    size_t n = size ? data[0] % 16 : 0;
    if (size < 1 + n)
        return;
    struct span in = span_of((const char *)data + 1 + n, size - 1 - n);
    struct buf log = {0};
    replay(&log, in, (struct cuts){0}, cap);
    if (!replay_agrees(replay, in, (struct cuts){.sizes = data + 1, .n = n}, cap, &log)) {
        (void)!write(2, log.p, log.n);
        abort();
    }
    buf_fini(&log);
}

#endif
