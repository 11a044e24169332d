/*
 * entry: a page's tool as it stands in the lists that agents get.
 *
 * Agents check what they are given, and many drop a whole list for one entry that is not as MCP has
 * it. So what a page says reaches them only where it is of the right kind; the rest is corrected or
 * left out.
 */
#ifndef RIALTO_BROWSER_ENTRY_H
#define RIALTO_BROWSER_ENTRY_H

#include "base/buf.h"
#include "core/catalog.h"

/*
 * Append the entry of a tool (a raw object) under this name, its description beginning with
 * "[where]" unless that is empty, and tell in `item` where its pieces
 * stand and which hints it has; `name` and `raw` are left to the caller.
 */
void entry_put(struct buf *out, struct span tool, struct span name, struct span where,
               struct item *item);

#endif
