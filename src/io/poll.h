/*
 * poll: a descriptor that its owner reads, and wants to be told when there is something to read.
 */
#ifndef RIALTO_IO_POLL_H
#define RIALTO_IO_POLL_H

#include "io/loop.h"

struct poll;

/* From the loop; the poll may be closed inside. Also in trouble: reading finds out. */
typedef void poll_ready_fn(void *owner);

/* The descriptor is ours from here on. Waits for it to be readable. */
struct poll *poll_new(struct loop *l, int fd, poll_ready_fn *ready, void *owner);
void poll_close(struct poll *p);

#endif
