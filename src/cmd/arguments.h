/*
 * arguments: a tool's arguments as typed on a command line.
 */
#ifndef RIALTO_CMD_ARGUMENTS_H
#define RIALTO_CMD_ARGUMENTS_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Append the JSON object that the words stand for: one word that is a JSON object, or KEY=VALUE
 * pairs. `tool` is the tool's raw JSON (or empty): a value is taken literally where the schema says
 * string, else as JSON if it is JSON.
 */
MUST_CHECK int arguments_put(struct buf *out, char **words, int n, struct span tool,
                             struct err *err);
/* Checks that `arguments`, a raw object, has all that the tool's schema requires. 0, or negative
 * with the names of the missing ones in `err`. */
MUST_CHECK int arguments_check(struct span tool, struct span arguments, struct err *err);
/* Append what the tool takes: "path=STRING [head=NUMBER]"; nothing when it takes nothing. */
void arguments_put_usage(struct buf *out, struct span tool);

#endif
