/*
 * browser_relay: carries MCP between standard input and output and a running bridge.
 */
#ifndef RIALTO_CMD_BROWSER_RELAY_H
#define RIALTO_CMD_BROWSER_RELAY_H

#include "config/config.h"

/*
 * Attach to the bridge on `address` and carry messages until either side ends: 0, or negative when
 * the connection broke. 1, with nothing read, when no bridge is there. `session` may be NULL.
 */
int browser_relay(const char *address, const char *session, const struct config *c);

#endif
