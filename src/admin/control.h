/*
 * control: the Unix socket by which commands and shims reach a running daemon of their user.
 *
 * A daemon belongs to one configuration file, and its socket is named after that file: control.sock
 * for the user's own file (and for none), else control-DIGEST.sock, the digest of the file's real
 * path (docs/decisions/021-one-daemon.md). All of the daemon's HTTP is served there. Only the
 * socket's owner may open it: the socket has mode 0600, and a folder that is made for it 0700.
 *
 * `setting` is the configuration's `control`, `file` its path or NULL.
 */
#ifndef RIALTO_ADMIN_CONTROL_H
#define RIALTO_ADMIN_CONTROL_H

#include "base/buf.h"

/* The socket's name in its folder. */
void control_put_name(struct buf *out, const char *file);
/*
 * Where the daemon is to listen: "unix:PATH", with the default folder made. NULL when the socket is
 * off, or when there is no folder for it (which is logged). The caller frees the address.
 */
char *control_address(const char *setting, const char *file);
/* The path of a socket that exists, or NULL; the caller frees the path. In the default folders none
 * is found that another user may have put there. */
char *control_find(const char *setting, const char *file);
/* The paths where control_find looks, for messages. */
void control_put_places(struct buf *out, const char *setting, const char *file);
/* The path of the n-th socket of any daemon in the default folders, dead or alive; NULL past the
 * end. The caller frees the path. */
char *control_nth(size_t n);

#endif
