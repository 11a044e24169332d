/*
 * browser_desk: where web pages and MCP agents meet.
 *
 * It opens the browser family's doors on the front, puts every browser session beside the servers,
 * and has an entrance for the agents of each session that one asked for by `?session=`.
 */
#ifndef RIALTO_HUB_BROWSER_DESK_H
#define RIALTO_HUB_BROWSER_DESK_H

#include "browser/browser.h"
#include "hub/bridge.h"
#include "hub/front.h"

struct browser_desk;

struct browser_desk *browser_desk_new(struct loop *loop, const struct config *c,
                                      struct bridge *bridge, struct front *front);
/*
 * Handles a request for MCP if it selects a browser session; false if it does not. With tokens,
 * the sessions of each owner of a token are its own, and only those without a view may.
 */
bool browser_desk_mcp(struct browser_desk *d, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, bool sse);
/* Handles it for one who sees all pages and no server. */
void browser_desk_all(struct browser_desk *d, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, bool sse);
/* What the one agent beside the front needs. Its session is made if need be, and does not end
 * before the desk does. NULL: all pages. */
struct mcp_host browser_desk_host(struct browser_desk *d, const char *session);
size_t browser_desk_sessions(const struct browser_desk *d);
void browser_desk_count(const struct browser_desk *d, struct browser_numbers *out);
/* `closed` is called from the loop when nothing is left, and the desk is gone when it returns. */
void browser_desk_close(struct browser_desk *d, void (*closed)(void *arg), void *arg);

/* The pairing token, made if it is not there yet; NULL when that fails. The caller frees it. */
char *browser_desk_token(struct err *err);

#endif
