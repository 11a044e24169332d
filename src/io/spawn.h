/*
 * spawn: start a program with three pipes. For child.c and inherited_child.c only.
 *
 * The new process leads a group of its own and has no terminal, dies with us, has a mark (kin.h),
 * and has none of our descriptors, signal settings or (unless asked for) environment.
 */
#ifndef RIALTO_IO_SPAWN_H
#define RIALTO_IO_SPAWN_H

#include "io/child.h"

#include <sys/resource.h>

struct spawned {
    int pid;
    int pidfd;        /* -1 where the kernel has no pidfds */
    int in, out, err; /* our ends: we write to `in`, read from the others */
    rlim_t mark;      /* see kin.h */
    char *cgroup;     /* folder of the control group, freed by the caller; NULL = none */
};

/* `core` is the program's limit of core dumps: ours may be lower. */
MUST_CHECK int spawn(struct spawned *to, const struct child_spec *spec, const struct rlimit *core,
                     struct err *err);

#endif
