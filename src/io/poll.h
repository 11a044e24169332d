/*
 * poll: tells the owner of a descriptor when there is something to read.
 */
#ifndef RIALTO_IO_POLL_H
#define RIALTO_IO_POLL_H

#include "io/loop.h"

struct poll;

/* Called from the loop; may close the poll. Also called on errors, which the read then reports. */
typedef void poll_ready_fn(void *owner);

/* Takes the descriptor over. `ready` is called whenever the descriptor is readable. */
struct poll *poll_new(struct loop *l, int fd, poll_ready_fn *ready, void *owner);
void poll_close(struct poll *p);

#endif
