/*
 * flow: what happens when a neighbour of the conductor reads more slowly than others write to it.
 *
 * When more than STREAM_HIGH_WATER waits for a hop, a neighbour that goes on writing to this hop is
 * not read any more once FLOW_ALLOWANCE of its own has been added, until little waits again. Only
 * the direction that is full stands still: what other neighbours send to the hop, and what the hop
 * sends itself, is read. A hop that holds up its neighbours and has read nothing for
 * conductor_options.stall_timeout is cut, unless the hop itself waits to be read by us.
 */
#ifndef RIALTO_ACP_FLOW_H
#define RIALTO_ACP_FLOW_H

#include "base/timers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hop;

enum {
    FLOW_ALLOWANCE = 1024 * 1024,
    FLOW_WRITERS = 3, /* to one hop: the neighbours at both sides, and itself, by our answers */
};

/* Embedded in a hop. */
struct flow {
    /* Who wrote how much to the hop while much waited for it. */
    struct flow_writer {
        struct hop *from;
        size_t bytes;
        bool held; /* and is not read for now */
    } writers[FLOW_WRITERS];
    size_t n_writers;
    unsigned held_by;   /* hops for which this one waits to be read */
    struct timer stall; /* set while the hop holds up others */
    uint64_t seen;      /* of stream_taken, when that was set */
};

/* The hop in `reading` wrote `n` bytes to `to`, for which more than STREAM_HIGH_WATER waits. */
void flow_wrote(struct hop *to, struct hop *reading, size_t n);
/* Little waits for the hop, or the hop is gone: who was held is read again. */
void flow_release(struct hop *to);
/* The hop is about to be freed: nobody remembers it as a writer. */
void flow_forget(const struct hop *from);

#endif
