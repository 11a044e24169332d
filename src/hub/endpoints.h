/*
 * endpoints: where agents come in by HTTP: each caller has one to all servers, to single servers,
 * and to sessions of web pages, opened when they are first asked for.
 *
 * They follow the bridge: one to a server that the configuration drops sends its agents away. When
 * tokens are asked for (auth.tokens), the owner of each token has endpoints of its own, which lead
 * to what its view leaves of the servers: so nobody finds a session, or a call that waits, of
 * somebody else (docs/decisions/008).
 */
#ifndef RIALTO_HUB_ENDPOINTS_H
#define RIALTO_HUB_ENDPOINTS_H

#include "hub/bridge.h"
#include "mcp/agent/endpoint.h"

struct endpoints;

struct endpoints *endpoints_new(struct loop *loop, struct bridge *bridge, const struct config *c);
/* `closed` is called from the loop when all are; the struct is gone then. */
void endpoints_close(struct endpoints *e, void (*closed)(void *arg), void *arg);

/* What the owner of a token (NULL: those who need none) has of all servers, and of the one of that
 * name: what the narrowing leaves (NULL: everything; outlives the bridge). */
struct endpoint *endpoints_all(struct endpoints *e, const char *principal,
                               const struct narrowing *narrowing);
/* NULL when there is no server of that name, or the narrowing leaves it out. */
struct endpoint *endpoints_one(struct endpoints *e, const char *principal,
                               const struct narrowing *narrowing, struct span alias);
/* To a view that is not of servers, as its host says. */
struct endpoint *endpoints_at(struct endpoints *e, const char *principal,
                              const struct mcp_host *host);
/* The view is going away: so are the endpoints to it. */
void endpoints_leave(struct endpoints *e, const struct view *v);
/* Of the endpoints to this view; NULL: of all. */
size_t endpoints_sessions_at(const struct endpoints *e, const struct view *v);

#endif
