/*
 * open_page: what webmcp_open_page does: opens an address in the user's browser, or tells a page of
 * that origin to reload.
 */
#ifndef RIALTO_BROWSER_OPEN_PAGE_H
#define RIALTO_BROWSER_OPEN_PAGE_H

#include "browser/inside.h"

/* The arguments of webmcp_open_page: {url, refresh?}. */
void open_page_call(struct browser *b, struct call *call, struct span arguments);
/* Nobody waits for the end of the call any more. */
void open_page_cancel(struct call *call);

#endif
