/*
 * guard: a small process beside ours, for the case that we are killed.
 *
 * The kernel then kills our children (spawn.c), but not what those have started: the program behind
 * a shell or behind npx would live on. The guard knows the marks of our children (kin.h) by a pipe;
 * when the pipe ends without a farewell it kills every process that has one of the marks. It has a
 * session of its own, so that what kills our group spares it, and none of our descriptors.
 */
#ifndef RIALTO_IO_GUARD_H
#define RIALTO_IO_GUARD_H

#include "io/loop.h"

#include <sys/resource.h>

struct guard;

/* All children of this loop shall be guarded; the process is started with the first. */
void guard_children(struct loop *l);

/* --- for io/ --- */
/* A child with this mark was started. */
void guard_tell(struct loop *l, rlim_t mark);
/* Our children are gone: so is the guard when this returns. */
void guard_dismiss(struct loop *l);

#endif
