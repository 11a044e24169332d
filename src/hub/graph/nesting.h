/*
 * nesting: a Rialto inside of a Rialto.
 *
 * A server of a configuration may be Rialto itself, with the same file: it would start itself again
 * and again without end. So the programs that we start are told in their environment which
 * configuration files are in use above them, and a Rialto that finds its own file among those
 * starts nothing.
 */
#ifndef RIALTO_HUB_GRAPH_NESTING_H
#define RIALTO_HUB_GRAPH_NESTING_H

#include "base/buf.h"

/* Is this file (NULL: none) in use by a Rialto that this process runs inside of? */
bool nesting_has(const char *file);
/* Does this process run inside of a Rialto at all? */
bool nesting_is_inside(void);
/* Append the variable ("NAME=VALUE") for programs of this file's servers. */
void nesting_put(struct buf *out, const char *file);

#endif
