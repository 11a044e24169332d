/*
 * import: configuration files of other MCP programs, taken as they are.
 *
 * These are known: the map `mcpServers` (Claude Desktop, Cursor, Windsurf, Cline, RockBot ...),
 * VS Code's mcp.json with its map `servers`, the files of the other hosts of config/host_program.h,
 * and assistant4's manifest.yaml with its list `config.servers`. import_document changes the tree
 * of such a document so that our schema can read it: keys with another name are marked with ours
 * (struct value.as), values that are written differently are rewritten, and members that only
 * concern the other program are removed. A member that cannot be used is left out with a warning;
 * in a manifest, a server without a known transport or a unique alias is an error.
 */
#ifndef RIALTO_CONFIG_IMPORT_H
#define RIALTO_CONFIG_IMPORT_H

#include "config/value.h"

struct host_program;

struct import_hints {
    const struct host_program *host; /* whose file it is; NULL when its content has to tell */
    bool json;                       /* the document is JSON, as all files of VS Code are */
    bool thorough; /* warn of every member that is left out, also of unimportant ones */
};

/* The program that a document was written for; IMPORT_MCP_SERVERS includes RockBot. */
enum import_dialect {
    IMPORT_OURS,
    IMPORT_MCP_SERVERS,
    IMPORT_MANIFEST,
    IMPORT_VSCODE,
    IMPORT_VSCODE_SETTINGS,
    IMPORT_HOST,
};
/* Turns the keys of another program's document into ours; its unknown keys are only warnings. */
enum import_dialect import_document(struct arena *a, struct value *root,
                                    const struct import_hints *hints, struct problems *problems);

/*
 * Turns one entry of a host's file into an entry of ours, in our keys. NULL when it has to stay in
 * that file; `problems` has the reason, except for an entry that is no map or that has guards.
 */
struct value *import_entry(struct arena *a, const struct host_program *host, struct value *entry,
                           struct problems *problems);

#endif
