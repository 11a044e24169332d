/*
 * hints: advice for the model after a tool failed, from the schema of the tool's arguments.
 *
 * A hint needs evidence: arguments that are missing, unknown or of another type, or an error that
 * names arguments. A tool that failed for another reason gets none, because it would mislead the
 * model.
 */
#ifndef RIALTO_ROCKBOT_HINTS_H
#define RIALTO_ROCKBOT_HINTS_H

#include "base/buf.h"

/* Append a hint, beginning with a blank line, or nothing. `schema` and `arguments` are raw objects
 * (or empty), `error` is the text of the failure. True when a hint was appended. */
bool hints_put(struct buf *out, struct span tool, struct span schema, struct span arguments,
               struct span error);

#endif
