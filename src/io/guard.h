/*
 * guard: a small process beside ours, for the case that we are killed.
 *
 * The kernel then kills our children (spawn.c), but not what the children have started: the program
 * behind a shell or behind npx would live on. We tell the guard the marks of our children (kin.h)
 * through a pipe; when the pipe closes and guard_dismiss was not called, the guard kills every
 * process that has one of the marks. The guard has a session of its own, so that a signal to our
 * group does not reach it, and none of our descriptors.
 */
#ifndef RIALTO_IO_GUARD_H
#define RIALTO_IO_GUARD_H

#include "io/loop.h"

#include <sys/resource.h>

struct guard;

/* Guard all children of this loop; the guard's process is started with the first child. */
void guard_children(struct loop *l);

/* --- for io/ --- */
/* A child with this mark was started. */
void guard_tell(struct loop *l, rlim_t mark);
/* Our children are gone: end the guard. Its process has ended when this returns. */
void guard_dismiss(struct loop *l);

#endif
