/*
 * import: configuration files of other MCP programs, taken as they are.
 *
 * Known are the map `mcpServers` (Claude Desktop, Cursor, Windsurf, Cline, RockBot ...), VS Code's
 * mcp.json with its map `servers`, the files of the other hosts of config/host_program.h, and
 * assistant4's manifest.yaml with its list `config.servers`. import_document changes the tree of
 * such a document so that our schema can read it: keys with another name are marked with ours
 * (struct value.as), values that are written differently are rewritten, and members that only
 * concern the other program are removed. A member that cannot be used is left out with a warning;
 * in a manifest, as its makers want it, it is an error.
 */
#ifndef RIALTO_CONFIG_IMPORT_H
#define RIALTO_CONFIG_IMPORT_H

#include "config/value.h"

struct host_program;

struct import_hints {
    const struct host_program *host; /* whose file it is; NULL when its content has to tell */
    bool json;                       /* VS Code writes no YAML */
    bool thorough; /* warn of every member that is left out, also of unimportant ones */
};

/* The program of the document. RockBot's files look like others with `mcpServers`. */
enum import_dialect {
    IMPORT_OURS,
    IMPORT_MCP_SERVERS,
    IMPORT_MANIFEST,
    IMPORT_VSCODE,
    IMPORT_VSCODE_SETTINGS,
    IMPORT_HOST,
};
/* Turns the keys of another program's document into ours; unknown keys are no errors then. */
enum import_dialect import_document(struct arena *a, struct value *root,
                                    const struct import_hints *hints, struct problems *problems);

/*
 * Turns one entry of a host's file into an entry of ours, in our keys.
 * NULL when it has to stay there, with the reason in `problems` unless it is no MCP server at all.
 */
struct value *import_entry(struct arena *a, const struct host_program *host, struct value *entry,
                           struct problems *problems);

#endif
