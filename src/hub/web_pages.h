/*
 * web_pages: the browser family in a hub.
 *
 * Routes requests of pages to the family, shows every browser session next to the servers, and
 * finds the endpoint for agents that select a session by `?session=`.
 */
#ifndef RIALTO_HUB_WEB_PAGES_H
#define RIALTO_HUB_WEB_PAGES_H

#include "browser/browser.h"
#include "hub/endpoints.h"
#include "hub/front.h"
#include "hub/graph/bridge.h"

struct web_pages;

struct web_pages *web_pages_new(struct loop *loop, const struct config *c, struct bridge *bridge,
                                struct front *front, struct endpoints *endpoints);
/*
 * Handle an MCP request if it selects a browser session; false if it does not. With tokens, each
 * token's owner has MCP sessions of its own, and a token with a view may not select browser
 * sessions.
 */
bool web_pages_mcp(struct web_pages *w, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, bool sse);
/* Handle an MCP request of an agent that sees all pages and no server. */
void web_pages_all(struct web_pages *w, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req, bool sse);
/* The host for the one agent that does not come through the front. Creates the session if there is
 * none; the session does not end before web_pages_close. `session` NULL: all pages. */
struct mcp_host web_pages_host(struct web_pages *w, const char *session);
/* Tokens have come or gone: pages and BTCP agents that may not stay are disconnected. Where agents
 * must show a token, pages must show the pairing token. */
void web_pages_review(struct web_pages *w, bool asks_tokens);
void web_pages_count(const struct web_pages *w, struct browser_numbers *out);
/* Close the endpoints first: some of them show pages. `closed` is called from the loop when
 * everything is closed; the struct is freed after that. */
void web_pages_close(struct web_pages *w, void (*closed)(void *arg), void *arg);
/* The same while the endpoints are open, for another daemon: those that show pages are closed as
 * soon as the pages have left, and the struct is not freed. */
void web_pages_retire(struct web_pages *w, void (*closed)(void *arg), void *arg);

/* The pairing token, created if there is none yet; NULL when that fails. The caller frees it. */
char *web_pages_token(struct err *err);

#endif
