/*
 * launch: starts a program that is the user's and not ours, such as a browser.
 *
 * Unlike a child (io/child.h), the program and its descendants keep running when we end. It has a
 * process session of its own, and /dev/null as standard input, output and error. We wait for its
 * end only to be able to report a failure.
 */
#ifndef RIALTO_BROWSER_LAUNCH_H
#define RIALTO_BROWSER_LAUNCH_H

#include "base/err.h"
#include "io/loop.h"

/* Instead of an exit code. LAUNCH_RUNS: the program still runs a short time after its start;
 * LAUNCH_FORGOTTEN: launch_forget_all was called. */
enum { LAUNCH_RUNS = -1, LAUNCH_FORGOTTEN = -2 };

/* Called once, from the loop or from launch_forget_all; `code` is 128 + the signal for a program
 * that was killed. */
typedef void launch_told_fn(void *owner, int code);

/* argv[0] is looked up in our PATH. Adds to the list `in`. 0, or a negative code. */
MUST_CHECK int launch_start(struct loop *l, struct list *in, const char *const *argv,
                            launch_told_fn *told, void *owner, struct err *err);
/* Stops waiting for all programs in the list; they keep running. */
void launch_forget_all(struct list *in);

#endif
