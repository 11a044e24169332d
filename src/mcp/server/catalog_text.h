/*
 * catalog_text: a catalog written as text, to be kept while its server is not running, and read.
 *
 * One line of JSON for the catalog and one for each item. The text is checked like a server's lists
 * when it is read: a file may have been cut short, or written by another program.
 */
#ifndef RIALTO_MCP_SERVER_CATALOG_TEXT_H
#define RIALTO_MCP_SERVER_CATALOG_TEXT_H

#include "base/buf.h"
#include "core/catalog.h"

void catalog_text_put(struct buf *out, const struct catalog *c);
/* NULL when the text is not a whole catalog. */
struct catalog *catalog_text_read(struct span text);

#endif
