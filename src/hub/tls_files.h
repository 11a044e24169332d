/*
 * tls_files: can the certificates and keys that a configuration names be used?
 */
#ifndef RIALTO_HUB_TLS_FILES_H
#define RIALTO_HUB_TLS_FILES_H

#include "config/config.h"
#include "config/problems.h"

/*
 * A file of `listen` that cannot be used is an error, since the address cannot be opened without
 * it; a `ca` of a server that cannot be used is a warning, since one server does not stop the
 * others.
 */
void tls_files_check(const struct config *c, struct problems *problems);

#endif
