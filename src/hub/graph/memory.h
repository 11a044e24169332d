/*
 * memory: the catalogs that servers had when they last ran, kept in the user's cache folder.
 *
 * With these, lists are complete from the first moment: a server that is being started is shown
 * with its last catalog, until it publishes a new one or fails to start (decision 006). The file
 * name contains a digest of the server's whole entry in the configuration: once the entry has
 * changed, the old catalog is not used.
 */
#ifndef RIALTO_HUB_GRAPH_MEMORY_H
#define RIALTO_HUB_GRAPH_MEMORY_H

#include "config/config.h"
#include "core/catalog.h"

/* The path of the server's file; NULL when the server is not to be remembered, or there is no home.
 * The caller frees it. */
char *memory_path(const struct config *c, const struct config_server *s);
/* NULL when nothing is known. `*traits` (SERVER_ bits of server.h) is set only if a catalog is
 * returned. */
struct catalog *memory_recall(const char *path, unsigned *traits);
/* A failure is only logged (debug): the catalog is then not known at the next start. */
void memory_keep(const char *path, const struct catalog *known, unsigned traits);

#endif
