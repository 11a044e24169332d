/*
 * project: the folder of the project that a folder is in, which is what ${PROJECT} stands for.
 *
 * It is the nearest folder with a `.git`, from the folder itself upwards; where there is none, the
 * folder itself. Nothing in it is read: a cloned repository must not configure anything.
 */
#ifndef RIALTO_CMD_PROJECT_H
#define RIALTO_CMD_PROJECT_H

#include "base/buf.h"

/* Append the path, absolute and without links; nothing when there is no such folder. */
void project_put(struct buf *out, const char *folder);
/* The same for a file:// address. */
void project_put_root(struct buf *out, struct span uri);

#endif
