/*
 * bus_role: what a bridge does on a message bus, as its configuration says.
 *
 * It joins the bus and puts a worker there, or a proxy, or both, and tells there what happens. The
 * bridge's changes are passed on to them.
 */
#ifndef RIALTO_HUB_BUS_ROLE_H
#define RIALTO_HUB_BUS_ROLE_H

#include "hub/bridge.h"
#include "hub/bus_settings.h"
#include "hub/follow.h"
#include "rockbot/report.h"

struct bus_role;

/* NULL with a reason when there can be no bus like that. `c` must outlive the role. `url` and
 * `role` are what options put in the place of the configuration's; NULL when none did. */
struct bus_role *bus_role_open(struct loop *loop, const struct config *c, struct bridge *bridge,
                               struct follow *follow, const char *url,
                               const enum config_bus_role *role, struct err *err);
/* Answers what it has taken, then leaves. `closed` is called from the loop, and the role is gone
 * when it returns; the bridge's servers must not be stopped before. */
void bus_role_close(struct bus_role *r, void (*closed)(void *arg), void *arg);
/* Good until the next turn of the loop. */
void bus_role_report(const struct bus_role *r, struct bus_report *out);

#endif
