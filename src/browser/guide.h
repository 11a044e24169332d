/*
 * guide: a provider of our own tools, listed beside those of pages.
 *
 * `list_pages` lists the pages, and `__btcp_request_capabilities` asks a page's user for the
 * capabilities that hidden tools need. `webmcp_*` are the tools of MCP-B's relay. One guide serves
 * all sessions and is in the views that show all of them; a session that hides tools has a guide
 * for its own view. So each view has each tool once, whatever the number of sessions.
 */
#ifndef RIALTO_BROWSER_GUIDE_H
#define RIALTO_BROWSER_GUIDE_H

#include "browser/session.h"

#define GUIDE_META "__btcp_request_capabilities"

struct guide;

/* For one session, or with NULL for all. */
struct guide *guide_new(struct browser *b, struct browser_session *s);
/* `g` may be NULL. */
void guide_free(struct guide *g);
struct provider *guide_provider(struct guide *g);
/* The name of the n-th tool of guides, offered or not; NULL past the end. */
const char *guide_tool(size_t n);
/* Ends a call with the text `what: about`. */
void guide_say(struct call *call, bool failed, const char *what, struct span about);
/* Called when what sessions hide or offer has changed: publishes the guide's tools if they differ.
 * `g` may be NULL. */
void guide_update(struct guide *g);

#endif
