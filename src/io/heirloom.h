/*
 * heirloom: a running child process that the daemon before us started, on its way to us.
 *
 * We have the process id of that daemon, so the process is our child from the first moment; but the
 * old daemon has the pipes until its own calls there have ended. Then the pipes come, and the owner
 * that claimed the process by its key gets both. A process that nobody claims is ended.
 */
#ifndef RIALTO_IO_HEIRLOOM_H
#define RIALTO_IO_HEIRLOOM_H

#include "io/child.h"

struct heirloom;

/* A process is promised: members key, pid, mark, cgroup. */
void heirloom_expect(struct loop *l, struct span promise);
/* Its pipes are here (the descriptors are taken over), with what its owner wrote (child_leave) and
 * the bytes of its output that were read already. */
void heirloom_arrive(struct loop *l, struct span key, int fds[3], struct span note,
                     struct span early);
/* It will not come: it has ended, or is being ended. */
void heirloom_lose(struct loop *l, struct span key);
/* The old daemon is gone: what has not come is lost, what nobody has claimed is ended. */
void heirloom_end_all(struct loop *l);

/* The promised process with this key, or NULL. `come` is called from the loop, or inside of
 * heirloom_arrive: when the pipes are here, or with false when the process is lost. The heirloom is
 * gone after that. */
struct heirloom *heirloom_claim(struct loop *l, const char *key,
                                void (*come)(void *arg, struct heirloom *h, bool here), void *arg);
bool heirloom_is_promised(const struct loop *l, const char *key);
/* Do not wait any longer; it can be claimed again. */
void heirloom_disclaim(struct heirloom *h);
/* Inside `come`: the child, as child_spawn would give it, and what came with it. */
struct child *heirloom_take(struct heirloom *h, const char *name, const struct child_events *on,
                            void *owner);
struct span heirloom_note(const struct heirloom *h);
struct span heirloom_early(const struct heirloom *h);

#endif
