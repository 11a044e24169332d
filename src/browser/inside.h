/*
 * inside: declarations that only the files of the browser family share.
 *
 *     browser       all sessions, connections and unanswered requests
 *     session       a provider: the tools of its pages, and what they may do
 *     page          offers tools; our requests go to the newest of its connections
 *     page_request  one request of ours to a page
 *     pipe          one connection: a WebSocket, an event stream or a Unix socket
 *     agent         a BTCP agent: a consumer of one session
 *     sender        who sent a message, while the message is handled
 */
#ifndef RIALTO_BROWSER_INSIDE_H
#define RIALTO_BROWSER_INSIDE_H

#include "base/id.h"
#include "base/map.h"
#include "browser/browser.h"

/* Changes of tools within this time are told together. */
enum { COALESCE_MS = 50 };

struct browser {
    struct loop *loop;
    struct router *router;
    struct browser_options options;
    struct map sessions;
    struct map clients;  /* client id -> struct page */
    struct map names;    /* page->name -> struct page */
    struct guide *guide; /* for all sessions; NULL until it is needed */
    size_t n_hiding;     /* sessions with tools that are hidden for lack of a capability */
    size_t n_offering;   /* sessions with tools, listed or hidden */
    size_t n_webmcp;     /* sessions with a page of MCP-B that has tools */
    struct view *all;    /* the tools of all sessions and of `guide` */
    struct list opening; /* started programs that open pages: struct launch */
    struct idmap requests;
    uint64_t last_request;
    struct stats past;         /* of the sessions that have ended */
    struct listener *listener; /* on the Unix socket; NULL: there is none */
    struct list pipes;
    struct list posts; /* agents of one POST each */
    struct list joins;
    size_t n_pipes;
    uint64_t started_at;
    char instance[ID_UUID_SIZE];
    uint64_t told_at;  /* when agents were last notified of changes */
    uint64_t sweep_at; /* when `sweep` fires */
    struct timer news, sweep, keep_alive, goodbye;
    struct kept_grants *kept;
    struct remotes *remotes;
    struct deferred ended;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* The session of this name, made if there is none; if `id` is empty, a new one with a random name.
 * NULL: it cannot be made. */
struct browser_session *browser_make_session(struct browser *b, struct span id);
/* Append all sessions as a JSON array. */
enum session_facts { SESSION_IDS, SESSION_FACTS, SESSION_PAGES };
void browser_put_sessions(struct buf *out, const struct browser *b, enum session_facts facts);
uint64_t browser_wall_ms(void);
/* Called when a connection is gone: if we are closing and it was the last one, closing ends. */
void browser_check_ended(struct browser *b);
/* Called when a session published its tools: agents are told soon, once for several changes. */
void browser_news(struct browser *b);
/* Called when a page or an agent has left the session: sets the timer for the session's end. */
void browser_sweep_later(struct browser *b, const struct browser_session *s);
/* Starts the timer for keep-alive messages, if it is not set. */
void browser_keep_alive(struct browser *b);

#endif
