/*
 * entrances: where agents come in by HTTP: one door to all servers, one to each.
 *
 * It follows the bridge: a server that the configuration adds gets a door, one that it drops has
 * its agents sent away. When tokens are asked for (auth.tokens), the owner of each has doors of its
 * own, which lead to what its view leaves of the servers: so nobody finds a session, or a call that
 * waits, of somebody else.
 */
#ifndef RIALTO_HUB_ENTRANCES_H
#define RIALTO_HUB_ENTRANCES_H

#include "hub/bridge.h"
#include "mcp/agent/entrance.h"

struct entrances;

struct entrances *entrances_new(struct loop *loop, struct bridge *bridge, const struct config *c);
/* `closed` is called from the loop when all are; the entrances are gone then. */
void entrances_close(struct entrances *e, void (*closed)(void *arg), void *arg);

/* What the owner of a token (NULL: whoever needs none) has of all servers, and of the one of that
 * name: what the narrowing leaves (NULL: everything; outlives the bridge). */
struct entrance *entrances_all(struct entrances *e, const char *principal,
                               const struct narrowing *narrowing);
/* NULL when there is no server of that name, or none that is left. */
struct entrance *entrances_one(struct entrances *e, const char *principal,
                               const struct narrowing *narrowing, struct span alias);
/* Of all doors. */
size_t entrances_sessions(const struct entrances *e);

#endif
