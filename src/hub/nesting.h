/*
 * nesting: a Rialto inside of a Rialto.
 *
 * A server of a configuration may be Rialto itself, with the same file: it would start itself, and
 * that one again, without end. So programs that we start are told in their environment which files
 * are at work above them, and who finds its own file among those starts nothing.
 */
#ifndef RIALTO_HUB_NESTING_H
#define RIALTO_HUB_NESTING_H

#include "base/buf.h"

/* Is this file (NULL: none) at work in a Rialto that we are a part of? */
bool nesting_has(const char *file);
/* Append the variable ("NAME=VALUE") for programs of this file's servers. */
void nesting_put(struct buf *out, const char *file);

#endif
