/*
 * endpoints: the HTTP endpoints that agents use. Each caller has one to all servers, one to each
 * server, and one to each session of web pages, opened when first asked for.
 *
 * Endpoints follow the bridge: an endpoint to a server that the configuration drops closes its
 * sessions. With auth.tokens, the owner of each token has endpoints of its own, which show what the
 * owner's view leaves of the servers: so nobody can reach a session, or a call that waits, of
 * somebody else (docs/decisions/008).
 */
#ifndef RIALTO_HUB_ENDPOINTS_H
#define RIALTO_HUB_ENDPOINTS_H

#include "core/caller.h"
#include "hub/graph/bridge.h"
#include "mcp/agent/endpoint.h"

struct endpoints;

/* `inherited` is borrowed. */
struct endpoints *endpoints_new(struct loop *loop, struct bridge *bridge, const struct config *c,
                                struct inherited *inherited);
/* `closed` is called from the loop when all endpoints are closed; the struct is freed then. */
void endpoints_close(struct endpoints *e, void (*closed)(void *arg), void *arg);

/* The endpoint to all servers for this caller, showing what the narrowing leaves (NULL: everything;
 * must outlive the bridge). */
struct endpoint *endpoints_all(struct endpoints *e, const struct caller *caller,
                               const struct narrowing *narrowing);
/* The same to the server of this name. NULL when there is no such server, or the narrowing leaves
 * it out. */
struct endpoint *endpoints_one(struct endpoints *e, const struct caller *caller,
                               const struct narrowing *narrowing, struct span alias);
/* The endpoint to a view that is not of servers; `host` names the view. */
struct endpoint *endpoints_at(struct endpoints *e, const struct caller *caller,
                              const struct mcp_host *host);
/* The view is about to be freed: close the endpoints to it. */
void endpoints_leave(struct endpoints *e, const struct view *v);
/* Tokens or views have changed: close the endpoints for which `stays` returns false. `by_socket`:
 * the caller came by a Unix socket, where no token is needed. */
void endpoints_review(struct endpoints *e,
                      bool (*stays)(void *arg, const struct principal *principal, bool by_socket,
                                    const struct narrowing *narrowing),
                      void *arg, const char *why);
/* For the handover to another daemon (mcp/agent/http_agent.h). */
void endpoints_show(const struct endpoints *e, inherited_show_fn *show, void *arg);
void endpoints_show_parked(struct endpoints *e, modern_parked_fn *show, void *arg);
void endpoints_end_streams(struct endpoints *e);
void endpoints_pass(struct endpoints *e, uint64_t session, struct span message);
/* The number of sessions at all endpoints. */
size_t endpoints_sessions(const struct endpoints *e);
/* Is an agent at an endpoint to this view (endpoint_in_use)? */
bool endpoints_in_use(const struct endpoints *e, const struct view *v);

#endif
