/*
 * install: a caged server whose command is `npx PACKAGE` or `uvx PACKAGE`.
 *
 * Both ask the network at each start, and write to a cache that holds what they run. In a cage the
 * package is installed once instead, with the network, into a folder of the server's own; from then
 * on the program is started from that folder, which may be read and executed, but not written.
 * Another package or version in the configuration gets another folder.
 */
#ifndef RIALTO_HUB_GRAPH_INSTALL_H
#define RIALTO_HUB_GRAPH_INSTALL_H

#include "base/arena.h"
#include "mcp/server/stdio_upstream.h"

/* What such a command line means. */
struct install_words {
    bool uv;                 /* uvx, else npx */
    const char *package;     /* as given: with its version */
    const char *program;     /* uvx: the name of the program; NULL = that of the package */
    const char *const *rest; /* arguments of the program */
};

/* Pure. False for another command, or for options that are not known here: the command is then
 * started as it is. */
bool install_read(const char *const *argv, struct install_words *words);

/* The folder where the package is installed: "installed/ALIAS-DIGEST", below the state folder. */
void install_put_folder(struct buf *out, const char *alias, const struct install_words *words);

/* The step that installs the package into `folder`, in the cage `cage`. Allocated in the arena. */
const struct stdio_upstream_step *install_step(struct arena *a, const char *const *argv,
                                               const char *const *env,
                                               const struct install_words *words,
                                               const char *folder, const struct cage_rules *cage);

#endif
