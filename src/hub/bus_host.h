/*
 * bus_host: the bridge as the roles on a message bus see it (rockbot/host.h).
 *
 * Servers that agents register over the bus are written into the configuration file, marked as
 * registered by an agent, and started by reading the file again, like any other change. Agents can
 * add servers that are reached by a URL, not programs that would run here; and agents can remove
 * only servers that agents have registered.
 *
 * Nouns: bus_hosting_.
 */
#ifndef RIALTO_HUB_BUS_HOST_H
#define RIALTO_HUB_BUS_HOST_H

#include "hub/graph/bridge.h"
#include "hub/graph/follow.h"
#include "rockbot/host.h"

struct bus_hosting;

struct bus_hosting *bus_hosting_new(struct bridge *bridge, struct follow *follow);
void bus_hosting_free(struct bus_hosting *h);
/* Another daemon follows the file from now on, and takes what is still written. */
void bus_hosting_forget_follow(struct bus_hosting *h);
const struct bus_host *bus_hosting_host(const struct bus_hosting *h);

#endif
