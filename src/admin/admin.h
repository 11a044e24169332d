/*
 * admin: the daemon as the people see it who look after it.
 *
 * It answers what is asked about health, numbers and state, starts and stops servers, and is the
 * operator's door for calls that wait for approval. Everything is HTTP, at the paths of a table
 * that the daemon puts behind its front door; commands use the same paths through the control
 * socket (admin/control.h).
 */
#ifndef RIALTO_ADMIN_ADMIN_H
#define RIALTO_ADMIN_ADMIN_H

#include "hub/hub.h"

struct admin;

struct admin *admin_new(struct hub *hub);
/* While the hub is still there. */
void admin_free(struct admin *a);

struct admin_path {
    const char *path;
    bool below;               /* and everything under it */
    bool local;               /* only for callers on this machine */
    front_handler_fn *handle; /* `owner` is the struct admin */
};
extern const struct admin_path admin_paths[];
extern const size_t admin_paths_n;

#endif
