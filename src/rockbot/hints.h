/*
 * hints: what a tool that failed might have wanted, from the schema of its arguments.
 *
 * Only with evidence: arguments that are missing, unknown or of another type, or an error that
 * speaks of arguments. A tool that failed at its work is left alone: a hint would send the model
 * the wrong way.
 */
#ifndef RIALTO_ROCKBOT_HINTS_H
#define RIALTO_ROCKBOT_HINTS_H

#include "base/buf.h"

/* Append a hint, beginning with a blank line, or nothing. `schema` and `arguments` are raw objects
 * (or empty), `error` is the text of the failure. True when there was something to say. */
bool hints_put(struct buf *out, struct span tool, struct span schema, struct span arguments,
               struct span error);

#endif
