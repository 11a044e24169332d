/*
 * poll: a socket that a library reads and writes itself, watched by the loop.
 *
 * For libraries that bring their own protocol and only want to be told when their socket is ready.
 */
#ifndef RIALTO_IO_POLL_H
#define RIALTO_IO_POLL_H

#include "io/loop.h"

struct poll;

/* From the loop; the poll may be closed inside. Trouble counts as readable: reading finds out. */
typedef void poll_ready_fn(void *owner, bool readable, bool writable);

/* The descriptor is ours from here on. Waits for it to be readable. */
struct poll *poll_new(struct loop *l, int fd, poll_ready_fn *ready, void *owner);
/* Report also that the socket can be written to, or stop that. */
void poll_want_write(struct poll *p, bool want);
/* End the connection without telling the library, which finds out at its next read. */
void poll_hang_up(struct poll *p);
void poll_close(struct poll *p);

#endif
