/*
 * http_upstream: the link to an MCP server that is reached by HTTP.
 *
 * The link speaks Streamable HTTP in both eras, or the older HTTP+SSE, which has one stream for all
 * answers.
 */
#ifndef RIALTO_MCP_SERVER_HTTP_UPSTREAM_H
#define RIALTO_MCP_SERVER_HTTP_UPSTREAM_H

#include "io/loop.h"
#include "mcp/server/http_signer.h"
#include "mcp/server/provider.h"

enum http_transport {
    HTTP_TRANSPORT_AUTO, /* Streamable HTTP, and if the server refuses that, HTTP+SSE */
    HTTP_TRANSPORT_STREAMABLE,
    HTTP_TRANSPORT_OLD_SSE,
};

struct http_upstream_options {
    const char *alias;
    const char *url;            /* borrowed, like all below: must outlive the provider */
    const char *socket;         /* reach the host by this Unix socket; NULL = by the network */
    const char *ca;             /* file with the authorities to trust; NULL = the system's */
    const char *const *headers; /* "Name: value" lines for every request; NULL ends the list */
    enum http_transport transport;
    size_t max_message;
    const struct reach *reach;  /* addresses where the server may be; NULL = all */
    struct http_signer *signer; /* NULL: there is no signing in */
};

struct mcp_provider *http_upstream_new(struct loop *loop,
                                       const struct http_upstream_options *options);

#endif
