/*
 * attach: a connection of a shim to its daemon, which is started when none runs.
 *
 * Everything here blocks. Twenty shims that begin at the same time start one daemon: the shim that
 * holds the lock file beside the socket starts it, and the others wait for the socket.
 */
#ifndef RIALTO_CMD_ATTACH_H
#define RIALTO_CMD_ATTACH_H

#include "base/buf.h"
#include "cmd/shim.h"

/* Returns the descriptor of a connection that carries lines from now on; negative, after a message,
 * on failure. `again`: the daemon has just ended, and may come back by itself. `names` gets the
 * variables that the daemon asks for: "A B". */
int attach_to_daemon(const struct shim_options *o, int again, struct buf *names);

#endif
