/*
 * successor: a program that takes the place of this one, under the same process id.
 *
 * The process forks. The parent becomes the new program: it stays the parent of the servers and
 * the process that a service manager knows. The child is the old program with all it had in memory
 * and open, and hands that over (baton.h). Until the successor serves, nothing is given up: if it
 * does not come so far, the old program goes on.
 */
#ifndef RIALTO_IO_SUCCESSOR_H
#define RIALTO_IO_SUCCESSOR_H

#include "base/err.h"
#include "io/loop.h"
#include "io/service.h"

/* The file that this program was started from, as it was named; the caller frees it. Call it
 * early: it needs the working folder of the start. */
char *successor_default(void);
/* Our command line with another program; a NULL ends it. The caller frees it, which is one block.
 */
char **successor_words(const char *program);

/* What a program finds out about its start. */
enum successor_role {
    SUCCESSOR_NONE,
    SUCCESSOR_REHEARSAL, /* read the configuration, say SUCCESSOR_READY, and end */
    SUCCESSOR_HEIR,      /* take over by the socket `baton` from the process `old` */
};
/* Reads the variable and removes it. */
enum successor_role successor_role(int *baton, int *old);
/* What is in the environment of a rehearsal, and what it says on its standard output. */
#define SUCCESSOR_REHEARSE "RIALTO_UPGRADE=rehearse"
#define SUCCESSOR_READY    "rialto upgrade 1\n"

/*
 * Only outside of the loop. Returns in the old program, with its end of the socket in *baton and 0;
 * or negative with a reason, in the one process that there is, if the program cannot be started.
 */
MUST_CHECK int successor_start(struct loop *l, const struct service *service, const char *program,
                               char *const *words, int *baton, struct err *err);

#endif
