/*
 * payload: the content of a tool's result, as a command shows it: texts as they are, and for each
 * picture, sound or other file one line that says what it is, or where it was saved.
 */
#ifndef RIALTO_CMD_PAYLOAD_H
#define RIALTO_CMD_PAYLOAD_H

#include "base/buf.h"
#include "base/err.h"

/* Append the content of `result`, a raw object. Files go into the folder `save`, which is made if
 * it is missing; existing files are not replaced. NULL: nothing is saved. Negative, with what is
 * wrong, when a file could not be saved; the rest is appended all the same. */
MUST_CHECK int payload_put(struct buf *out, struct span result, const char *save, struct err *err);

#endif
