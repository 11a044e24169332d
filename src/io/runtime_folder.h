/*
 * runtime_folder: where the sockets of a user's programs are.
 *
 * $XDG_RUNTIME_DIR/rialto (without that variable /run/user/UID/rialto), /run/rialto or, last,
 * /tmp/rialto-UID, the first that exists or can be created. Folders are created 0700; one that
 * belongs to another user, or that others can write to, is not used.
 */
#ifndef RIALTO_IO_RUNTIME_FOLDER_H
#define RIALTO_IO_RUNTIME_FOLDER_H

#include "base/buf.h"

enum { RUNTIME_FOLDERS = 4 };

/* The n-th folder to look in; false when that candidate does not apply here. */
bool runtime_folder(struct buf *out, int n);
/* Does the folder exist, and is it neither another user's nor writable for others? */
bool runtime_folder_is_ours(const char *folder);
/* May commands connect to a socket in it? The folder is ours, or root has made it for a service. */
bool runtime_folder_is_trusted(const char *folder);
/* "unix:FOLDER/NAME" in the first usable folder, which is created if needed; NULL when none is
 * usable. */
char *runtime_folder_address(const char *name);

#endif
