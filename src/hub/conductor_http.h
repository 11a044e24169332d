/*
 * conductor_http: the HTTP bridge. One loopback address for all MCP servers of a conductor; each
 * server has a path of its own and a bearer token that only its declaration contains. Requests of
 * foreign origins are refused.
 */
#ifndef RIALTO_HUB_CONDUCTOR_HTTP_H
#define RIALTO_HUB_CONDUCTOR_HTTP_H

#include "hub/conductor_link.h"
#include "mcp/agent/session.h"

struct conductor_http;

struct conductor_http *conductor_http_new(struct loop *loop, struct conductor_core *core);
/* End all places; `done` is called from the loop when the last connection is gone. */
void conductor_http_close(struct conductor_http *h, void (*done)(void *arg), void *arg);
void conductor_http_free(struct conductor_http *h);

/* A place for a component's server. */
void *conductor_http_open(struct conductor_http *h, struct acp_server *server,
                          struct acp_http_place *place);
/* A place for a view that exists already. */
void *conductor_http_open_host(struct conductor_http *h, const struct mcp_host *host,
                               struct acp_http_place *place);
void conductor_http_end(void *place);

#endif
