/*
 * successor: a program that takes the place of this one, under the same process id.
 *
 * The process forks. The parent becomes the new program: it stays the parent of the servers and the
 * process that a service manager knows. The child is the old program with all it had in memory and
 * open, and hands that over (handover.h). Until the successor serves, nothing is given up: if the
 * successor does not get that far, the old program goes on.
 */
#ifndef RIALTO_IO_SUCCESSOR_H
#define RIALTO_IO_SUCCESSOR_H

#include "base/err.h"
#include "io/loop.h"
#include "io/service.h"

/* The path of the file that this program was started from; the caller frees it. Call it early: a
 * relative path needs the working folder of the start. */
char *successor_default(void);
/* Our command line with another program, NULL-terminated. The caller frees it as one block. */
char **successor_words(const char *program);

/* What a program was started for. */
enum successor_role {
    SUCCESSOR_NONE,
    SUCCESSOR_REHEARSAL, /* read the configuration, say SUCCESSOR_READY, and end */
    SUCCESSOR_HEIR,      /* take over from the process `old` through the socket `handover` */
};
/* Reads the variable and removes it. */
enum successor_role successor_role(int *handover, int *old);
/* What is in the environment of a rehearsal, and what the rehearsal writes to its stdout. */
#define SUCCESSOR_REHEARSE "RIALTO_UPGRADE=rehearse"
#define SUCCESSOR_READY    "rialto upgrade 1\n"

/*
 * Only outside of the loop. Returns 0 in the forked process, which goes on as the old program, with
 * its end of the socket in *handover. Negative with a reason if the program cannot be started (then
 * there is only the first process) or if the loop cannot go on in the forked process.
 */
MUST_CHECK int successor_start(struct loop *l, const struct service *service, const char *program,
                               char *const *words, int *handover, struct err *err);

#endif
