/*
 * control: the Unix socket by which commands reach the running daemon of their user.
 *
 * All of the daemon's HTTP is served there. Only the socket's owner may open it: the socket has
 * mode 0600, and a folder that is made for the socket 0700.
 */
#ifndef RIALTO_ADMIN_CONTROL_H
#define RIALTO_ADMIN_CONTROL_H

#include "base/buf.h"

/*
 * Where the daemon is to listen: "unix:PATH", with the default folder made. NULL when the socket is
 * off, or when there is no folder for it (which is logged). `setting` is the configuration's
 * `control`. The caller frees the address.
 */
char *control_address(const char *setting);
/* The path of a socket that exists, or NULL; the caller frees the path. */
char *control_find(const char *setting);
/* The paths where control_find looks, for messages. */
void control_put_places(struct buf *out, const char *setting);

#endif
