/*
 * rehearsal: a program is asked whether it would take over from this daemon.
 *
 * The program is started with our command line, reads the configuration, says SUCCESSOR_READY
 * (io/successor.h) and ends; it opens nothing. So a problem with the program is known before this
 * daemon gives anything up.
 */
#ifndef RIALTO_HUB_REHEARSAL_H
#define RIALTO_HUB_REHEARSAL_H

#include "base/err.h"
#include "io/loop.h"

struct rehearsal;

/* NULL with a reason when the program cannot be started. `done` is called from the loop, within
 * about `ms`, with NULL or with the reason why the program cannot take over; after that the struct
 * is freed. */
struct rehearsal *rehearsal_start(struct loop *loop, const char *const *words, uint64_t ms,
                                  void (*done)(void *arg, const char *why), void *arg,
                                  struct err *err);
/* `done` is not called any more; the program is ended. NULL is fine. */
void rehearsal_free(struct rehearsal *r);

#endif
