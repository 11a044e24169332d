/*
 * flow: what happens when a neighbour of the conductor reads more slowly than others write to it.
 *
 * When more than STREAM_HIGH_WATER waits for a hop, a neighbour that goes on writing to this hop is
 * no longer read once its own writes have added FLOW_ALLOWANCE, until little is waiting again. Only
 * the full direction stands still: messages of other neighbours to the hop, and messages that the
 * hop sends, are still read. A hop that holds up its neighbours and has read nothing for
 * conductor_options.stall_timeout is cut, unless we have in turn stopped reading that hop.
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
    FLOW_WRITERS = 3, /* to one hop: its two neighbours, and the hop itself, by our answers to it */
};

/* Embedded in a hop. */
struct flow {
    /* How much each neighbour wrote to the hop while the hop was full. */
    struct flow_writer {
        struct hop *from;
        size_t bytes;
        bool held; /* not read for now */
    } writers[FLOW_WRITERS];
    size_t n_writers;
    unsigned held_by;   /* full hops because of which this hop is not read */
    struct timer stall; /* set while the hop holds up others */
    uint64_t seen;      /* stream_taken at the time `stall` was set */
};

/* The hop that is being read (`reading`) made us write `n` bytes to `to`, which is full. */
void flow_wrote(struct hop *to, struct hop *reading, size_t n);
/* The hop has drained, or is gone: read the neighbours that were held again. */
void flow_release(struct hop *to);
/* The hop is about to be freed: remove the hop from every list of writers. */
void flow_forget(const struct hop *from);

#endif
