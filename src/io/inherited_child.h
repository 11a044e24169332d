/*
 * inherited_child: a running child process that the daemon before us started, on its way to us.
 *
 * We have the process id of that daemon, so the process is our child from the first moment; but the
 * old daemon has the pipes until its own calls to the process have ended. Then the pipes come, and
 * the owner that claimed the process by its key gets both. A process that nobody claims is ended.
 */
#ifndef RIALTO_IO_INHERITED_CHILD_H
#define RIALTO_IO_INHERITED_CHILD_H

#include "io/child.h"

struct inherited_child;

/* There is an old daemon: what of its processes it does not promise is left alone as well. */
void inherited_child_begin(struct loop *l);
/* The old daemon promises a process: an object with the members key, pid, mark and cgroup. */
void inherited_child_expect(struct loop *l, struct span promise);
/* The pipes of a process are here (the descriptors are taken over), with the note of its old owner
 * and the bytes of its output that were read already. */
void inherited_child_arrive(struct loop *l, struct span key, int fds[3], struct span note,
                            struct span early);
/* The promised process will not come: it has ended, or is being ended. */
void inherited_child_lose(struct loop *l, struct span key);
/* The old daemon is gone, or is ended: ends each process that has not come or that nobody has
 * claimed, and those that were not promised. */
void inherited_child_end_all(struct loop *l);

/* The promised process with this key, or NULL. `come` is called when the pipes are here, or with
 * false when the process is lost: inside of inherited_child_arrive, inherited_child_lose or
 * inherited_child_end_all. The inherited_child is freed after that. */
struct inherited_child *
inherited_child_claim(struct loop *l, const char *key,
                      void (*come)(void *arg, struct inherited_child *h, bool here), void *arg);
bool inherited_child_is_promised(const struct loop *l, const char *key);
/* Stop waiting for the process; another owner can claim it. */
void inherited_child_disclaim(struct inherited_child *h);
/* Only inside `come`: the child, as from child_spawn, then the note and the bytes that came with
 * it. */
struct child *inherited_child_take(struct inherited_child *h, const char *name,
                                   const struct child_events *on, void *owner);
struct span inherited_child_note(const struct inherited_child *h);
struct span inherited_child_early(const struct inherited_child *h);

#endif
