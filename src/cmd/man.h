/*
 * man: the manual page, made from the same tables as the help, the options and the configuration.
 *
 * The build runs `rialto help --man` and installs the output.
 */
#ifndef RIALTO_CMD_MAN_H
#define RIALTO_CMD_MAN_H

#include "cmd/cmd.h"

/* The page of one command, or for NULL that of the program: all commands and the configuration. */
void man_put(struct buf *out, const struct command *command);

#endif
