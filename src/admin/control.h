/*
 * control: the Unix socket by which commands reach the running daemon of their user.
 *
 * It speaks the daemon's HTTP, all of it. Nobody but its owner may open it: the socket is 0600, and
 * a folder that we make for it 0700.
 */
#ifndef RIALTO_ADMIN_CONTROL_H
#define RIALTO_ADMIN_CONTROL_H

#include "base/buf.h"

/*
 * Where the daemon is to listen: "unix:PATH", its folder made. NULL when it is off, or when there
 * is no place for it (which is logged). `setting` is the configuration's `control`. The caller
 * frees it.
 */
char *control_address(const char *setting);
/* The path of a socket that is there, or NULL; the caller frees it. */
char *control_find(const char *setting);
/* Where control_find looks, for messages. */
void control_put_places(struct buf *out, const char *setting);

#endif
