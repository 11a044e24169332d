/*
 * lookup: the addresses of a host's name. For the files of io/ only.
 *
 * The system's resolver waits for name servers, for many seconds if none answers, and cannot be
 * interrupted. So a thread of its own asks it and hands over at the door. One that nobody waits for
 * any more is left to itself: libuv's pool would make the end of the program wait for it.
 */
#ifndef RIALTO_IO_LOOKUP_H
#define RIALTO_IO_LOOKUP_H

#include "io/loop.h"

#include <netdb.h>

struct lookup;

/* The owner frees what was found (freeaddrinfo); with a negative code that is NULL. */
typedef void lookup_done_fn(void *owner, struct addrinfo *found, int code);

/* `done` is called from the loop; the lookup is gone then. NULL when there can be no thread. */
struct lookup *lookup_start(struct loop *l, const char *host, const char *port,
                            lookup_done_fn *done, void *owner);
/* `done` is not called any more. */
void lookup_cancel(struct lookup *k);

#endif
