/*
 * log_ring: the last lines of the log, kept in memory for /api/logs.
 *
 * The ring listens to base/log, so standard error of servers is here, too. The kept lines are
 * bounded in bytes, and the oldest go first. Lines are numbered from 1 without gaps, so that
 * readers can ask for those they have not seen; a *run* tells the numbers of one process from those
 * of the next.
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
    void (*news)(void *arg); /* called for each line; or NULL */
    void *news_arg;
};

/* `keep` bytes at most; 0 keeps nothing. base/log has one listener, so there can be one ring
 * only. */
void log_ring_begin(struct log_ring *r, size_t keep);
void log_ring_end(struct log_ring *r);

struct log_question {
    bool has_after;
    uint64_t after;       /* the lines from this number on; without one, the last lines */
    size_t limit;         /* of lines */
    struct span who;      /* only lines of this server (with instances) or part; empty: of all */
    enum log_level level; /* only lines of this level or worse */
};

/*
 * {"lines":[{"seq","at","level","who","text"}...],"next","lost","run"}: `next` is the number to ask
 * for the next time, `lost` how many lines from `after` on were already dropped. An `after` beyond
 * the newest line is from an earlier run: then all lines are written.
 */
void log_ring_put(struct buf *out, const struct log_ring *r, const struct log_question *q);
/* The texts of the last lines of this server, `max` at most, as elements of an array. */
void log_ring_put_texts(struct buf *out, const struct log_ring *r, struct span who, size_t max);
/* "lines":[...], from this number on. */
void log_ring_put_from(struct buf *out, const struct log_ring *r, uint64_t from);

#endif
