/*
 * memory: what servers offered when they last ran, kept in the user's cache folder.
 *
 * So that lists are complete from the first moment: a server that is being started is shown with
 * what it offered before, until it says so itself or turns out not to start (decision 006). It is
 * remembered by its whole entry in the configuration: a changed entry is another server.
 */
#ifndef RIALTO_HUB_MEMORY_H
#define RIALTO_HUB_MEMORY_H

#include "config/config.h"
#include "core/catalog.h"

/* Where this server is remembered; NULL when it is not to be, or nowhere. The caller frees it. */
char *memory_path(const struct config *c, const struct config_server *s);
/* NULL when nothing is known. */
struct catalog *memory_recall(const char *path);
/* Failing to is no trouble: then it is not known the next time. */
void memory_keep(const char *path, const struct catalog *known);

#endif
