/*
 * cgroup: a control group (version 2) for each child, where this process may create groups.
 *
 * Whatever a child starts stays in the child's group, however the child forks and whatever
 * attributes it changes, and one write to `cgroup.kill` kills the whole group. We create groups
 * only below our own group, and only when our group was delegated to us (systemd's `Delegate=yes`)
 * or belongs to our user. Without a group, orphans of a child are known by their mark (kin.h). For
 * child.c and spawn.c only.
 */
#ifndef RIALTO_IO_CGROUP_H
#define RIALTO_IO_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Make a group for a child that is about to be started. Returns the group's folder, which the
 * caller frees, and in *procs an open file: a process that writes "0" to the file joins the group.
 * NULL where no group can be made. Groups left by a Rialto that was killed are killed and removed
 * as well. `limited`: the group will have limits, if our group can give them.
 */
char *cgroup_make(uint64_t number, bool limited, int *procs);
/* Set a limit of the group: "memory.max", "pids.max". */
void cgroup_bound(const char *folder, const char *name, uint64_t most);
/* Between vfork and exec: only system calls. */
void cgroup_join(int procs);
/* Kill every process in the group. */
void cgroup_kill(const char *folder);
/* false while there are processes in the group. */
bool cgroup_remove(const char *folder);

#endif
