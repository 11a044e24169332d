/*
 * lines: newline-delimited messages cut from a byte stream.
 *
 * `struct lines` is fed chunks as they come. A line that lies whole in a chunk is handed out as a
 * span into that chunk; only a tail without its newline is copied. A trailing CR is removed, blank
 * lines are skipped. A line longer than the cap (its CR counts) is skipped up to its newline and
 * reported once, with its first 256 bytes at most, so that one huge line costs its sender that
 * message and us no memory.
 */
#ifndef RIALTO_WIRE_LINES_H
#define RIALTO_WIRE_LINES_H

#include "base/buf.h"
#include "base/span.h"

struct lines {
    struct buf tail;
    size_t cap;
    bool skipping; /* inside an over-long line */
    bool stopped;  /* lines_stop was called from inside a callback */
};

struct lines_events {
    void (*line)(void *owner, struct span line);
    void (*too_long)(void *owner, struct span head);
};

void lines_init(struct lines *l, size_t cap);
void lines_fini(struct lines *l);
/* The callbacks may call lines_stop, but not lines_fini; after a stop no more lines come. */
void lines_feed(struct lines *l, struct span chunk, const struct lines_events *on, void *owner);
/* The stream ended: a last line without newline is handed out. */
void lines_end(struct lines *l, const struct lines_events *on, void *owner);
void lines_stop(struct lines *l);

#endif
