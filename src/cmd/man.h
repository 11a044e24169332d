/*
 * man: the manual page, made from the same tables as the help, the options and the configuration.
 *
 * The build runs `rialto help --man` and installs what it prints.
 */
#ifndef RIALTO_CMD_MAN_H
#define RIALTO_CMD_MAN_H

#include "cmd/cmd.h"

/* The page of one command; NULL: of the program with all of them, and of its configuration. */
void man_put(struct buf *out, const struct command *command);

#endif
