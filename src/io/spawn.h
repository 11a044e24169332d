/*
 * spawn: start a program with three pipes. For child.c only.
 *
 * The new process leads its own session and group, dies with us, bears the mark of its kin, and has
 * none of our descriptors, signal settings or (unless asked for) environment.
 */
#ifndef RIALTO_IO_SPAWN_H
#define RIALTO_IO_SPAWN_H

#include "io/child.h"

#include <sys/resource.h>

struct spawned {
    int pid;
    int pidfd;        /* -1 where the kernel has none */
    int in, out, err; /* our ends: we write to `in`, read from the others */
    rlim_t mark;      /* see kin.h */
    char *cgroup;     /* its folder, the caller's to free; NULL where there can be none */
};

/* `core` is the program's limit of core dumps: we have a lower one. */
MUST_CHECK int spawn(struct spawned *to, const struct child_spec *spec, const struct rlimit *core,
                     struct err *err);

#endif
