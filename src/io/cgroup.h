/*
 * cgroup: a control group (version 2) for each child, where this process may make some.
 *
 * Whatever a child starts stays in the child's group, however it forks and whatever it sets on
 * itself, and one write to `cgroup.kill` ends all of it. We make groups only below our own group,
 * and only when that was delegated to us (systemd's `Delegate=yes`) or belongs to our user. Without
 * one the orphans of a child are known by their mark (kin.h). For child.c and spawn.c only.
 */
#ifndef RIALTO_IO_CGROUP_H
#define RIALTO_IO_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Make a group for a child that is about to be started. Returns its folder, which the caller frees,
 * and in *procs an open file: a process that writes "0" to it moves in. NULL where there can be
 * none. Groups of a Rialto that was killed are ended and removed on the way.
 */
char *cgroup_make(uint64_t number, int *procs);
/* Between vfork and exec: only system calls. */
void cgroup_join(int procs);
/* End every process that is in it. */
void cgroup_kill(const char *folder);
/* false while there are processes in it. */
bool cgroup_remove(const char *folder);

#endif
