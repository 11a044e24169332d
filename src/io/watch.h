/*
 * watch: tells when a file has changed: written, replaced by renaming, removed or created.
 *
 * The kernel is asked to tell, and the file is looked at every few seconds as well, since network
 * and overlay file systems lose such news. Several changes in a row are told once, when they are
 * over; and only if the file is really another one than before (its time, size and inode).
 */
#ifndef RIALTO_IO_WATCH_H
#define RIALTO_IO_WATCH_H

#include "io/loop.h"

struct watch;

/* `changed` is called from the loop. The path is copied. */
struct watch *watch_open(struct loop *l, const char *path, void (*changed)(void *arg), void *arg);
/* The file's present state is known to the caller, who has just written it: not to be reported. */
void watch_note(struct watch *w);
void watch_close(struct watch *w);

#endif
