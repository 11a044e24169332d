/*
 * candidates: the names of servers and tools that may come next in a command line, for the
 * completion of shells.
 *
 * The names come from the running daemon, or from what servers offered when they last ran: no
 * server is started, and no command is run to look up a secret.
 */
#ifndef RIALTO_CMD_CANDIDATES_H
#define RIALTO_CMD_CANDIDATES_H

#include "cmd/args.h"

/* Does this command take the name of a server or of a tool that exists? */
bool candidates_any(const struct command *c);
/* Append the names that may follow `words` (the command and what is typed already), a line each. */
void candidates_put(struct buf *out, struct args *a, char **words, int n);

#endif
