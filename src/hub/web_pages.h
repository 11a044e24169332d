/*
 * web_pages: the browser family in a hub.
 *
 * Opens the family's doors on the front, puts every browser session beside the servers, and finds
 * the endpoint for the agents of a session that one asked for by `?session=`.
 */
#ifndef RIALTO_HUB_WEB_PAGES_H
#define RIALTO_HUB_WEB_PAGES_H

#include "browser/browser.h"
#include "hub/bridge.h"
#include "hub/endpoints.h"
#include "hub/front.h"

struct web_pages;

struct web_pages *web_pages_new(struct loop *loop, const struct config *c, struct bridge *bridge,
                                struct front *front, struct endpoints *endpoints);
/*
 * Handles a request for MCP if it selects a browser session; false if it does not. With tokens,
 * the sessions of each owner of a token are its own, and only those without a view may.
 */
bool web_pages_mcp(struct web_pages *w, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, bool sse);
/* Handles it for one who sees all pages and no server. */
void web_pages_all(struct web_pages *w, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, bool sse);
/* What the one agent beside the front needs. Its session is made if need be, and does not end
 * before the pages do. NULL: all pages. */
struct mcp_host web_pages_host(struct web_pages *w, const char *session);
void web_pages_count(const struct web_pages *w, struct browser_numbers *out);
/* After the endpoints: some of them show pages. `closed` is called from the loop when nothing is
 * left; the struct is gone when it returns. */
void web_pages_close(struct web_pages *w, void (*closed)(void *arg), void *arg);

/* The pairing token, made if it is not there yet; NULL when that fails. The caller frees it. */
char *web_pages_token(struct err *err);

#endif
