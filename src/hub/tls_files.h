/*
 * tls_files: can the certificates and keys that a configuration names be used?
 */
#ifndef RIALTO_HUB_TLS_FILES_H
#define RIALTO_HUB_TLS_FILES_H

#include "config/config.h"
#include "config/problems.h"

/*
 * Those of `listen` are errors if not, for they cannot be done without; those of a server's `ca`
 * are warnings, for one server does not stop the others.
 */
void tls_files_check(const struct config *c, struct problems *problems);

#endif
