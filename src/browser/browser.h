/*
 * browser: tools that live in web pages.
 *
 * Pages connect in any dialect of BTCP to the daemon's HTTP port (routes.c has the table) and
 * register tools; each *session* (one or several pages) is a provider of the core with a view of
 * its own. BTCP agents, which are consumers of a session, use the same routes. All HTTP and
 * WebSocket requests for this family go through routes.h.
 */
#ifndef RIALTO_BROWSER_BROWSER_H
#define RIALTO_BROWSER_BROWSER_H

#include "core/caller.h"
#include "core/router.h"
#include "io/http_server.h"

struct browser;
struct browser_session;

/* A BTCP server to join; `session` NULL: all of its sessions. */
struct browser_join {
    const char *url, *session;
};

struct browser_options {
    uint64_t session_ttl;  /* ms that a session without any connection is kept */
    uint64_t session_idle; /* ms that a session without any message is kept; 0 = no limit */
    size_t max_sessions;   /* at the limit, a new one ends one without connections */
    size_t max_message;    /* bytes */
    bool strict;           /* tools are hidden until granted, also where no page can ask its user */
    bool listed_only;      /* `granted` decides alone: no page is asked, none can grant */
    uint64_t consent_timeout;   /* ms that an agent waits for a page's user */
    const struct span *granted; /* capabilities (patterns) that every session has; borrowed */
    size_t n_granted;
    const char *token;                /* the pairing token; NULL = there is none */
    bool pairing;                     /* pages and agents must show the token */
    bool webmcp;                      /* tools webmcp_* are listed also without a page of MCP-B */
    const char *socket;               /* a Unix address to listen on as well; NULL = none */
    const struct browser_join *joins; /* copied */
    size_t n_joins;
    const char *remotes_file; /* where tools of D6 pages are kept; NULL = nowhere */
    const char *grants_file;  /* where persistent grants are kept; NULL = nowhere */

    void *arg; /* of the functions below */
    /* A new provider, a session or the guide, is in the router and may be put into views. */
    void (*opened)(void *arg, struct provider *p);
    /* May this session end? Asked when it has expired, or when another session needs its place.
     * NULL: always. */
    bool (*may_end)(void *arg, struct browser_session *s);
    /* This session ends now, and its view with it; `s` NULL: browser_view does. May be NULL. */
    void (*ending)(void *arg, struct browser_session *s);
};

struct browser *browser_new(struct loop *loop, struct router *router,
                            const struct browser_options *options);
/* Sets whether the pairing token must be shown. Closes connections that did not show it but must,
 * and those whose token of auth.tokens has ended. */
void browser_review(struct browser *b, bool pairing);
/*
 * Connections are closed and sessions end; `closed` is called from the loop when nothing is left,
 * and the browser is freed when `closed` returns.
 */
void browser_close(struct browser *b, void (*closed)(void *arg), void *arg);

/* --- for agents of other families --- */

/* 1 to 128 of letters, digits and . _ : - */
bool browser_can_be_session(struct span id);
/* The session of this name; `create`: made if there is none. NULL: none, or it cannot be made. */
struct browser_session *browser_session(struct browser *b, struct span id, bool create);
/* The session, if there is exactly one; else NULL. */
struct browser_session *browser_only_session(const struct browser *b);
struct view *browser_session_view(const struct browser_session *s);
/* The tools of all sessions and of the guide (guide.h), but of no server. */
struct view *browser_view(const struct browser *b);

/* The name of all pages in counters and events of calls; no server can have this name. */
#define BROWSER_TOLD_AS "@browser"

/* Current counts, and the outcomes of calls of all sessions, also of those that have ended. */
struct browser_numbers {
    const struct browser *of;
    size_t sessions, pages, agents, tools;
    struct stats stats;
};
/* Append the connected pages as a JSON array: name, title, url, origin and session of each; for
 * operators (`whole`) also the dialect and the names of the tools. */
void browser_put_pages(struct buf *out, const struct browser *b, bool whole);
void browser_count(const struct browser *b, struct browser_numbers *out);

#endif
