/*
 * admin: the daemon's HTTP interface for operators.
 *
 * It answers requests for health, metrics and state, starts and stops servers, and lets an operator
 * decide on calls that wait for approval. Everything is HTTP, at the paths of a table whose rows
 * cmd/serve.c adds to the front (hub/front.h); commands use the same paths through the control
 * socket (admin/control.h).
 */
#ifndef RIALTO_ADMIN_ADMIN_H
#define RIALTO_ADMIN_ADMIN_H

#include "hub/hub.h"

struct admin;

struct admin *admin_new(struct hub *hub);
/* To be called before the hub is freed. */
void admin_free(struct admin *a);

struct admin_path {
    const char *path;
    bool below;               /* also every path under this one */
    bool local;               /* refused to callers on other machines */
    front_handler_fn *handle; /* `owner` is the struct admin */
};
extern const struct admin_path admin_paths[];
extern const size_t admin_paths_n;

#endif
