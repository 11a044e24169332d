/*
 * import: configuration files of other MCP programs, taken as they are.
 *
 * Known are the map `mcpServers` (Claude Desktop, Cursor, Windsurf, Cline, RockBot ...), VS Code's
 * mcp.json with its map `servers`, and assistant4's manifest.yaml with its list `config.servers`.
 * Such a document is read with our own schema after this has gone over its tree: keys that have
 * another name here are marked with ours (struct value.as), values that are written differently are
 * rewritten, and what only concerns the other program is removed. What cannot be used is left out
 * with a warning that names it; only the manifest, whose makers want it so, is refused for it.
 */
#ifndef RIALTO_CONFIG_IMPORT_H
#define RIALTO_CONFIG_IMPORT_H

#include "config/value.h"

struct import_hints {
    bool json;     /* VS Code writes no YAML */
    bool relaxed;  /* the document has comments, which other programs' JSON may have and ours not */
    bool thorough; /* warn of everything that is left out, also of what nobody misses here */
};

/* Is this the document of another program? */
bool import_is_foreign(const struct value *root, const struct import_hints *hints);

/* Whose document this is. RockBot's looks like those of the others with `mcpServers`. */
enum import_dialect {
    IMPORT_OURS,
    IMPORT_MCP_SERVERS,
    IMPORT_MANIFEST,
    IMPORT_VSCODE,
    IMPORT_VSCODE_SETTINGS,
};
/* Turns the keys of another program's document into ours; unknown keys are no errors then. */
enum import_dialect import_document(struct arena *a, struct value *root,
                                    const struct import_hints *hints, struct problems *problems);

#endif
