/*
 * kin: the processes that descend from the programs we started.
 *
 * A program may leave its group and session, and what it started may lose its parent. But all its
 * descendants inherit two things that none of them can drop: no_new_privs, and the *mark*, a
 * number, different for each child, that is set as its limit of file locks (RLIMIT_LOCKS), which
 * the kernel still keeps but has not enforced since 2.4. The two are the *brand*: by it we know who
 * is at a socket if an orphan that was reparented to us (we are a subreaper) is there. Orphans are
 * killed by the mark alone: other programs have no_new_privs, too.
 *
 * The list of children is the loop's `kin`; child.c keeps it.
 */
#ifndef RIALTO_IO_KIN_H
#define RIALTO_IO_KIN_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* The name of guards' processes, which are not killed for their mark: they end by themselves. */
#define KIN_GUARD_NAME "rialto-guard"

/* A child: in the loop's list `kin` until it is reaped, then in `ended` until its orphans are
 * gone. */
struct kin {
    struct list node;
    int pid;
    rlim_t mark;
};

/* Our own limit, which children are below: as it was before the first of them, or as the program
 * before us (successor.c) says that it was. */
rlim_t kin_limit(void);
void kin_keep_limit(rlim_t limit);
/* Make us a subreaper, and return the mark of a child that is about to be started. */
rlim_t kin_expect(void);
/* To the child's group, and to the child itself if it has moved to another group. Only while it is
 * not reaped: its id could have been reused. */
void kin_signal(const struct kin *k, int signo);
/* Between vfork and exec: only system calls. */
void kin_brand(rlim_t mark);
/*
 * Reap the orphans that have ended, and kill those that do not belong to a living child; with a
 * list `ended` only those that bear the mark of a child in it. Returns how many were killed and
 * must still be reaped: SIGCHLD tells when to sweep again.
 */
size_t kin_sweep(const struct list *kin, const struct list *ended);
/* Kill every process with one of these marks. Returns how many there were. */
size_t kin_kill_marked(const rlim_t *marks, size_t n);
/* The parent of a process; -1 when the process is gone or hidden from us. */
int kin_parent(int pid);
/* Is this process one of our children, or does it descend from one? Also true for a process that is
 * gone. */
bool kin_includes(const struct list *kin, int pid);
/* Does one of our children, or of their descendants, have the socket open? Also true if one of them
 * hides its descriptors. */
bool kin_has_socket(const struct list *kin, unsigned long inode);

#endif
