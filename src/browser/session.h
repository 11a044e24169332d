/*
 * session: one or several pages that belong together, as a provider of the core.
 *
 * browser.c owns sessions. Their catalog is made of the tools that their pages registered and that
 * are granted what they need; their view has that and nothing else.
 */
#ifndef RIALTO_BROWSER_SESSION_H
#define RIALTO_BROWSER_SESSION_H

#include "browser/inside.h"

struct page;
struct tool;

/* What a public name leads to. */
struct lead {
    struct page *page; /* NULL: it left */
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
    bool enforces;       /* capabilities are asked for */
    bool hides;          /* tools, for want of a capability */
    bool offers;         /* it has pages with tools */
    bool webmcp;         /* and one of them is of MCP-B */
    struct guide *guide; /* in its own view; NULL before it hid anything */
    struct lead *leads;  /* of the catalog's tools, in their order */
    size_t n_leads;
    size_t n_pages;
    uint64_t created_at, used_at; /* ms: of the clock on the wall, of the loop */
    struct timer publish;
    bool ending;
};

struct browser_session *session_new(struct browser *b, struct span id);
void session_free(struct browser_session *s);
/* Closes the connections of the session's pages and agents. */
void session_hang_up(const struct browser_session *s, uint16_t code, const char *why);
/* Somebody used the session: the time after which it ends begins again. */
void session_touch(struct browser_session *s);
/* The session's tools may have changed: they are published. */
void session_changed(struct browser_session *s);
/* The same, but not before a page that only reloads could be back. */
void session_changed_late(struct browser_session *s);
bool session_is_connected(const struct browser_session *s);
/* The session that is this provider; NULL: it is something else. */
struct browser_session *session_of(struct provider *p);
/* What a tool of the session's catalog leads to; NULL: there is no such tool. */
const struct lead *session_lead(const struct browser_session *s, struct span name);
/* Append the connected pages, as members of an array; `whole` as in page_put. */
void session_put_pages(struct buf *out, const struct browser_session *s, bool whole);
/* Tools of the pages that are connected. */
size_t session_tool_count(const struct browser_session *s);
/* Bytes of what all of the session's pages have registered, also those that are away. */
size_t session_tool_bytes(const struct browser_session *s);
/* "" when the tool has all capabilities it needs, else the first that is missing. */
struct span session_lacks(const struct browser_session *s, const struct page *page,
                          const struct tool *tool, struct buf *scratch);

/* The consumer of this call does not wait any more. */
void session_cancel(struct call *call);

#endif
