/* What comes out of lines, as text: see replay.h. */
#ifndef RIALTO_TESTS_REPLAY_LINES_H
#define RIALTO_TESTS_REPLAY_LINES_H

#include "replay.h"
#include "wire/lines.h"

static inline void replay_line(void *log, struct span line)
{
    replay_put(log, "line", line);
}

static inline void replay_too_long(void *log, struct span head)
{
    replay_put(log, "too long", head);
}

static inline void replay_lines(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    static const struct lines_events events = {replay_line, replay_too_long};
    struct lines l;

    lines_init(&l, cap);
    while (in.n) {
        char *memory;
        struct span piece = cuts_next(&cuts, &in, &memory);
        lines_feed(&l, piece, &events, log);
        mem_free(memory);
    }
    lines_end(&l, &events, log);
    lines_fini(&l);
}

#endif
