/*
 * caller_variables: the values of a host for ${NAME} in entries of the daemon's configuration
 * (decision 022): only variables that the daemon has asked for, and the host's project folder.
 *
 * Embedded in the shim (shim.c). A part of the small program rialto-shim: it must stay light.
 */
#ifndef RIALTO_CMD_CALLER_VARIABLES_H
#define RIALTO_CMD_CALLER_VARIABLES_H

#include "base/buf.h"

struct caller_variables {
    struct buf names; /* the variables that the daemon asks for: "A B" */
    struct buf root;  /* the project of the host's first root; empty: not known */
};

void caller_variables_fini(struct caller_variables *v);
bool caller_variables_want_project(const struct caller_variables *v);
/* Append the line with the values for the daemon; nothing when it has asked for none. */
void caller_variables_put(const struct caller_variables *v, struct buf *out);
/* Takes the host's answer to roots/list (raw; empty: the answer is an error). */
void caller_variables_take_roots(struct caller_variables *v, struct span result);

#endif
