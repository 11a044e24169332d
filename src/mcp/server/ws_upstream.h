/*
 * ws_upstream: the link to an MCP server that is reached by WebSocket (one message per text frame).
 *
 * No revision of MCP defines this transport, but some servers have it: they speak the subprotocol
 * "mcp", and the connection is the session.
 */
#ifndef RIALTO_MCP_SERVER_WS_UPSTREAM_H
#define RIALTO_MCP_SERVER_WS_UPSTREAM_H

#include "io/loop.h"
#include "mcp/server/provider.h"

struct ws_upstream_options {
    const char *alias;
    const char *url;            /* borrowed, like all below: must outlive the provider */
    const char *ca;             /* file with the authorities to trust; NULL = the system's */
    const char *const *headers; /* "Name: value" lines of the handshake; NULL ends the list */
    size_t max_message;
    const struct reach *reach; /* addresses where the server may be; NULL = all */
};

struct mcp_provider *ws_upstream_new(struct loop *loop, const struct ws_upstream_options *options);

#endif
