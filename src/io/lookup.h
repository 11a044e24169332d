/*
 * lookup: the addresses of a host's name. For the files of io/ only.
 *
 * The system's resolver waits for name servers, for many seconds if none answers, and cannot be
 * interrupted. So each lookup has a thread that asks the resolver and wakes the loop. The thread of
 * a cancelled lookup is left running; a thread of libuv's pool would delay the end of the program.
 */
#ifndef RIALTO_IO_LOOKUP_H
#define RIALTO_IO_LOOKUP_H

#include "io/loop.h"

#include <netdb.h>

struct lookup;

/* The owner frees `found` (freeaddrinfo), which is NULL with a negative code. */
typedef void lookup_done_fn(void *owner, struct addrinfo *found, int code);

/* `done` is called from the loop; the lookup is freed then. NULL when no thread can be started. */
struct lookup *lookup_start(struct loop *l, const char *host, const char *port,
                            lookup_done_fn *done, void *owner);
/* `done` is not called any more. */
void lookup_cancel(struct lookup *k);

#endif
