/*
 * candidates: the names of servers and tools that may stand next in a command line, for the
 * completion of shells.
 *
 * They are known from the running daemon, or from what servers offered when they last ran: nothing
 * is started for them, and no secret is looked up by a command.
 */
#ifndef RIALTO_CMD_CANDIDATES_H
#define RIALTO_CMD_CANDIDATES_H

#include "cmd/args.h"

/* Does this command take the name of a server or of a tool that exists? */
bool candidates_any(const struct command *c);
/* Append the names that may follow `words` (the command and what is typed already), a line each. */
void candidates_put(struct buf *out, struct args *a, char **words, int n);

#endif
