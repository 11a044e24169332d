/*
 * bus_host: the bridge as the roles on a message bus see it (bus/host.h).
 *
 * Servers that agents register over the bus are put into the configuration file, marked as theirs,
 * and get going by its being read anew, like every other change. Agents can add what is reached by
 * a URL, not programs to be run here; and they can take away only what is theirs.
 *
 * Nouns: bus_hosting_.
 */
#ifndef RIALTO_HUB_BUS_HOST_H
#define RIALTO_HUB_BUS_HOST_H

#include "hub/bridge.h"
#include "hub/follow.h"
#include "rockbot/host.h"

struct bus_hosting;

struct bus_hosting *bus_hosting_new(struct bridge *bridge, struct follow *follow);
void bus_hosting_free(struct bus_hosting *h);
const struct bus_host *bus_hosting_host(const struct bus_hosting *h);

#endif
