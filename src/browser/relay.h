/*
 * relay: pages that speak the protocol of MCP-B's local relay.
 */
#ifndef RIALTO_BROWSER_RELAY_H
#define RIALTO_BROWSER_RELAY_H

#include "browser/inside.h"
#include "io/ws.h"

bool relay_is_wanted(const struct http_request *req);
void relay_open(struct browser *b, struct http_exchange *x, const struct http_request *req,
                const struct ws_options *options);

#endif
