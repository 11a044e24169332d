/*
 * attach: a connection of a shim to its daemon, which is started when none runs.
 *
 * Everything here waits. Twenty shims that come at once start one daemon: a lock beside the socket
 * lets one of them do it, and the others wait for the socket.
 */
#ifndef RIALTO_CMD_ATTACH_H
#define RIALTO_CMD_ATTACH_H

#include "base/buf.h"
#include "cmd/shim.h"

/* The descriptor of a connection on which lines are spoken from now on; negative, after a message,
 * when there is none. `again`: the daemon has just gone, and may come back by itself. `names` gets
 * the variables that the daemon asks for: "A B". */
int attach_to_daemon(const struct shim_options *o, int again, struct buf *names);

#endif
