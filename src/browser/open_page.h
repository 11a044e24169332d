/*
 * open_page: the tool webmcp_open_page, which opens an address in the user's browser, or tells a
 * connected page of the same origin to reload.
 */
#ifndef RIALTO_BROWSER_OPEN_PAGE_H
#define RIALTO_BROWSER_OPEN_PAGE_H

#include "browser/inside.h"

/* Answers a call; `arguments`: {url, refresh?}. */
void open_page_call(struct browser *b, struct call *call, struct span arguments);
/* The call was cancelled: it is not answered any more. */
void open_page_cancel(struct call *call);

#endif
