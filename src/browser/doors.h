/*
 * doors: the addresses by which pages and agents come to the browser family.
 */
#ifndef RIALTO_BROWSER_DOORS_H
#define RIALTO_BROWSER_DOORS_H

#include "browser/browser.h"

/* Is this request for a browser family? Its path may have repeated slashes. */
bool doors_want(const struct http_request *req);
/* A caller that is `trusted` need not show the pairing token; an extension that the configuration
 * does not name always must. */
void doors_handle(struct browser *b, const struct caller *caller, struct http_exchange *x,
                  const struct http_request *req);

#endif
