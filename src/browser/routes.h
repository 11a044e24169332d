/*
 * routes: the HTTP routes for pages and agents of the browser family.
 */
#ifndef RIALTO_BROWSER_ROUTES_H
#define RIALTO_BROWSER_ROUTES_H

#include "browser/browser.h"

/* Is this request for the browser family? Its path may have repeated slashes. */
bool routes_want(const struct http_request *req);
/* A `trusted` caller, or one by a Unix socket, need not show the pairing token. Of the others, an
 * extension that the configuration does not name must show it even if options.pairing is false. */
void routes_handle(struct browser *b, const struct caller *caller, struct http_exchange *x,
                   const struct http_request *req);

#endif
