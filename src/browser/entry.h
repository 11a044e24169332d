/*
 * entry: a page's tool as an entry of the lists that agents get.
 *
 * Agents validate lists of tools, and many reject a whole list because of one invalid entry. So
 * members that a page gave reach agents only if they have the type that MCP requires; others are
 * corrected or left out.
 */
#ifndef RIALTO_BROWSER_ENTRY_H
#define RIALTO_BROWSER_ENTRY_H

#include "base/buf.h"
#include "core/catalog.h"

/*
 * Append the entry of a tool (a raw object) under this name; its description begins with "[where]"
 * unless `where` is empty. Sets the positions and the flags of `item`; its `name` and `raw` are
 * left to the caller.
 */
void entry_put(struct buf *out, struct span tool, struct span name, struct span where,
               struct item *item);

#endif
