/*
 * guide: the tools of our own that stand beside those of pages.
 *
 * `list_pages` tells what pages there are, and `__btcp_request_capabilities` asks a page's user for
 * what hidden tools need. `webmcp_*` are the tools of MCP-B's relay. One guide leads to all
 * sessions and stands in the views that show all; a session that hides tools has one for its own
 * view. So each tool is there once, whatever the number of sessions.
 */
#ifndef RIALTO_BROWSER_GUIDE_H
#define RIALTO_BROWSER_GUIDE_H

#include "browser/session.h"

#define GUIDE_META "__btcp_request_capabilities"

struct guide;

/* To one session, or with NULL to all. */
struct guide *guide_new(struct browser *b, struct browser_session *s);
/* `g` may be NULL, here and below. */
void guide_free(struct guide *g);
struct provider *guide_provider(struct guide *g);
/* The names of a guide's tools, offered or not: the n-th, NULL past the end. */
const char *guide_tool(size_t n);
/* Ends a call with the text `what: about`. */
void guide_say(struct call *call, bool failed, const char *what, struct span about);
/* What sessions hide or offer has changed: the guide's tools may come or go. */
void guide_update(struct guide *g);

#endif
