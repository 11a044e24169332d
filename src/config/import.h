/*
 * import: configuration files of other MCP programs, taken as they are.
 *
 * A document with a map `mcpServers` (Claude Desktop, Cursor, Windsurf, Cline, RockBot ...) is read
 * with our own schema after this has gone over its tree: keys that have another name here are
 * marked with ours (struct value.as), values that are written differently are rewritten, and what
 * only concerns the other program is removed. Nothing is refused here; what cannot be used is left
 * out with a warning that names it.
 */
#ifndef RIALTO_CONFIG_IMPORT_H
#define RIALTO_CONFIG_IMPORT_H

#include "config/value.h"

/* True when the document is of another program: then unknown keys are not errors. */
bool import_document(struct arena *a, struct value *root, struct problems *problems);

#endif
