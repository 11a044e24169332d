/*
 * session: one or several pages that belong together, as a provider of the core.
 *
 * browser.c owns sessions. The catalog has the tools that the session's pages registered and whose
 * capabilities are granted. The session's view has these tools and those of its guide, if any.
 */
#ifndef RIALTO_BROWSER_SESSION_H
#define RIALTO_BROWSER_SESSION_H

#include "browser/inside.h"

struct page;
struct tool;

/* The page's tool that a public name stands for. */
struct lead {
    struct page *page; /* NULL: it left, or registered other tools */
    struct tool *tool;
};

struct browser_session {
    struct provider core;
    struct browser *browser;
    char *id;
    struct view *view;
    struct list pages;
    struct list agents;
    struct list grants;
    bool enforces;       /* tools are listed and called only if their capabilities are granted */
    bool hides;          /* it has tools that are hidden for lack of a capability */
    bool offers;         /* it has tools, listed or hidden */
    bool webmcp;         /* one of its pages with tools is of MCP-B */
    struct guide *guide; /* in `view`; NULL before the session hid a tool */
    struct lead *leads;  /* of the catalog's tools, in their order */
    size_t n_leads;
    size_t n_pages;
    uint64_t created_at, used_at; /* ms: wall clock, loop time */
    struct timer publish;
    bool ending;
};

struct browser_session *session_new(struct browser *b, struct span id);
void session_free(struct browser_session *s);
/* Closes the connections of the session's pages and agents. */
void session_hang_up(const struct browser_session *s, uint16_t code, const char *why);
/* The session was used: its time to expiry starts again. */
void session_touch(struct browser_session *s);
/* The session's tools may have changed: publishes them. */
void session_changed(struct browser_session *s);
/* The same after COALESCE_MS: a page that only reloads can reconnect before that. */
void session_changed_late(struct browser_session *s);
bool session_is_connected(const struct browser_session *s);
/* The session of this provider; NULL: the provider is not a session. */
struct browser_session *session_of(struct provider *p);
/* The page and tool for a public name in the catalog; NULL: there is no such name. */
const struct lead *session_lead(const struct browser_session *s, struct span name);
/* Append the pages that are here (page_is_here), as items of an array; `whole` as in page_put. */
void session_put_pages(struct buf *out, const struct browser_session *s, bool whole);
/* The number of tools of the pages that are here (page_is_here). */
size_t session_tool_count(const struct browser_session *s);
/* Bytes of what all of the session's pages have registered, also those that are not connected. */
size_t session_tool_bytes(const struct browser_session *s);
/* Empty when the tool has all capabilities that it needs, else the first that is missing. */
struct span session_lacks(const struct browser_session *s, const struct page *page,
                          const struct tool *tool, struct buf *scratch);

/* The call was cancelled. */
void session_cancel(struct call *call);

#endif
