/*
 * launch: starts a program that is the user's and not ours, such as a browser.
 *
 * Unlike a child (child.h) the program is not ended with us, and neither is what it leaves behind.
 * It has a session of its own and no standard input or output. We only wait for it to end, to be
 * able to say that it failed.
 */
#ifndef RIALTO_BROWSER_LAUNCH_H
#define RIALTO_BROWSER_LAUNCH_H

#include "base/err.h"
#include "io/loop.h"

/* In place of an exit code: the program runs, and we wait no longer for it to fail; or
 * launch_forget_all was called. */
enum { LAUNCH_RUNS = -1, LAUNCH_FORGOTTEN = -2 };

/* Called once, from the loop or from launch_forget_all; `code` is 128 + the signal for a program
 * that was killed. */
typedef void launch_told_fn(void *owner, int code);

/* argv[0] is looked up in our PATH. Adds to the list `in`. 0, or a negative code. */
MUST_CHECK int launch_start(struct loop *l, struct list *in, const char *const *argv,
                            launch_told_fn *told, void *owner, struct err *err);
/* Waits for none of these programs any more. */
void launch_forget_all(struct list *in);

#endif
