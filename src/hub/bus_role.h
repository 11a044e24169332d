/*
 * bus_role: what a bridge does on a message bus, as its configuration says.
 *
 * The role joins the bus, puts a worker or a proxy or both there, and publishes events. Changes of
 * the bridge are passed on to them.
 */
#ifndef RIALTO_HUB_BUS_ROLE_H
#define RIALTO_HUB_BUS_ROLE_H

#include "hub/bus_settings.h"
#include "hub/graph/bridge.h"
#include "hub/graph/follow.h"
#include "rockbot/report.h"

struct bus_role;

/* NULL with a reason when the bus cannot be opened. `c` must outlive the role. `url` and `role` are
 * command-line options that override the configuration; NULL when not given. */
struct bus_role *bus_role_open(struct loop *loop, const struct config *c, struct bridge *bridge,
                               struct follow *follow, const char *url,
                               const enum config_bus_role *role, struct err *err);
/* Answer the requests taken so far, wait for the last call of an agent, then leave the bus.
 * `closed` is called from the loop, and the role is freed by then; do not stop the bridge's servers
 * before that. */
void bus_role_close(struct bus_role *r, void (*closed)(void *arg), void *arg);
/* For bus_role_close when another daemon takes over and follows the file: call this first. */
void bus_role_retire(struct bus_role *r);
/* `out` is valid until the next turn of the loop. */
void bus_role_report(const struct bus_role *r, struct bus_report *out);

#endif
