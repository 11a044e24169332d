/*
 * log_ring: the last lines of the log, for those who were not there when they were written.
 *
 * It listens to base/log, so what servers write on their standard error is here, too. What it keeps
 * is bounded in bytes, and the oldest lines go first. Lines have numbers, without gaps and from 1
 * on, by which readers come back for those they have not seen; a *run* tells the numbers of one
 * process from those of the next.
 */
#ifndef RIALTO_ADMIN_LOG_RING_H
#define RIALTO_ADMIN_LOG_RING_H

#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"

struct log_ring {
    size_t keep, used;
    struct list lines; /* oldest first */
    uint64_t next;     /* the number of the next line */
    char run[ID_TOKEN_SIZE];
};

/* `keep` bytes at most; 0 keeps nothing. There is one listener, so only one ring may listen. */
void log_ring_begin(struct log_ring *r, size_t keep);
void log_ring_end(struct log_ring *r);

struct log_question {
    bool has_after;
    uint64_t after;       /* the lines from this number on; without it, the last ones */
    size_t limit;         /* at most so many */
    struct span who;      /* only of this server or part, and its instances; empty: of all */
    enum log_level level; /* only those that are at least so bad */
};

/*
 * {"lines":[{"seq","at","level","who","text"}...],"next","lost","run"}: `next` is the number to ask
 * for the next time, `lost` how many lines there were from `after` on that are gone. A number that
 * is not reached yet is one of an earlier run, and everything is given.
 */
void log_ring_put(struct buf *out, const struct log_ring *r, const struct log_question *q);

#endif
