/*
 * help: what `rialto help` shows, all of it made from the command table.
 */
#ifndef RIALTO_CMD_HELP_H
#define RIALTO_CMD_HELP_H

#include "cmd/cmd.h"

/* NULL: the list of commands. On the standard output. */
void help_show(const struct command *command);
void help_put(struct buf *out, const struct command *command);

#endif
