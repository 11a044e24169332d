/*
 * permit_file: grants.json in the state folder: the clients and permits of our own issuer, read at
 * the start and replaced as a whole after each change (0600; hashes only). A file that cannot be
 * understood is not overwritten: nothing can be granted until somebody has repaired or removed it.
 */
#ifndef RIALTO_HUB_AUTH_PERMIT_FILE_H
#define RIALTO_HUB_AUTH_PERMIT_FILE_H

#include "base/err.h"
#include "base/list.h"

struct permit_file;

struct permit_file *permit_file_open(void);
void permit_file_close(struct permit_file *f);
/* Lists of struct registration and struct permit. */
void permit_file_read(struct permit_file *f, struct list *clients, size_t *n_clients,
                      struct list *permits, size_t *n_permits);
MUST_CHECK int permit_file_write(struct permit_file *f, const struct list *clients,
                                 const struct list *permits);
#endif
