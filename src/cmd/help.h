/*
 * help: the texts of `rialto help`, all of them made from the table of commands.
 */
#ifndef RIALTO_CMD_HELP_H
#define RIALTO_CMD_HELP_H

#include "cmd/cmd.h"

/* Prints the help of a command, or for NULL the list of commands. */
void help_show(const struct command *command);
void help_put(struct buf *out, const struct command *command);

#endif
