/*
 * watch: tells when a file has changed: written, replaced by renaming, removed or created.
 *
 * inotify reports changes, and the file is checked every few seconds as well, since network and
 * overlay file systems lose events. Several changes in a row are reported once, when they are over;
 * and only if the file's time, size or inode differ from before.
 */
#ifndef RIALTO_IO_WATCH_H
#define RIALTO_IO_WATCH_H

#include "io/loop.h"

struct watch;

/* `changed` is called from the loop. The path is copied. */
struct watch *watch_open(struct loop *l, const char *path, void (*changed)(void *arg), void *arg);
/* Do not report the file's present state: the caller knows it, having just written the file. */
void watch_note(struct watch *w);
/* Do not check the file every few seconds: for one that hardly ever changes. */
void watch_events_only(struct watch *w);
void watch_close(struct watch *w);

#endif
