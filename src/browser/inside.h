/*
 * inside: the browser family as its own files see it.
 *
 *     browser     all sessions, and the calls on their way to pages
 *     session     a provider: the tools of its pages, and what they may do
 *     page        offers tools; has streams, of which the newest is spoken to
 *     errand      one request of ours to a page
 *     pipe        one connection: a WebSocket, an event stream or a Unix socket
 *     agent       a BTCP agent: a consumer of one session
 *     sender      who sent a message, for as long as that is handled
 */
#ifndef RIALTO_BROWSER_INSIDE_H
#define RIALTO_BROWSER_INSIDE_H

#include "base/id.h"
#include "base/map.h"
#include "browser/browser.h"

/* Changes of tools that come this near are told as one. */
enum { COALESCE_MS = 50 };

struct browser {
    struct loop *loop;
    struct router *router;
    struct browser_options options;
    struct map sessions;
    struct map clients;  /* client id -> struct page */
    struct map names;    /* what people call it -> struct page */
    struct guide *guide; /* to all sessions; NULL before there was one */
    size_t n_hiding;     /* sessions with tools that are hidden for want of a capability */
    size_t n_offering;   /* sessions with a page that has registered tools */
    size_t n_webmcp;     /* sessions with such a page of MCP-B */
    struct view *all;    /* the tools of all sessions, and nothing else */
    struct list opening; /* what opens pages, struct launch */
    struct idmap errands;
    uint64_t last_errand;
    struct stats past;         /* of the sessions that are over */
    struct listener *listener; /* of the Unix socket; NULL without one */
    struct list pipes;
    struct list posts; /* agents that wait for one answer */
    struct list joins;
    size_t n_pipes;
    uint64_t started_at;
    char instance[ID_UUID_SIZE];
    uint64_t told_at;  /* when agents last heard of changes */
    uint64_t sweep_at; /* when the timer of that name fires */
    struct timer news, sweep, keep_alive, goodbye;
    struct kept_grants *kept;
    struct remotes *remotes;
    struct deferred ended;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* A session of this name, made if need be; without a name a new one. NULL: it cannot be. */
struct browser_session *browser_make_session(struct browser *b, struct span id);
/* Append all sessions as a JSON array. */
enum session_facts { SESSION_IDS, SESSION_FACTS, SESSION_PAGES };
void browser_put_sessions(struct buf *out, const struct browser *b, enum session_facts facts);
uint64_t browser_wall_ms(void);
/* A connection is gone: if it was the last one and we are closing, that is done. */
void browser_check_ended(struct browser *b);
/* A session published its tools: agents hear of it soon, and of what else changes until then. */
void browser_news(struct browser *b);
/* A page or an agent of the session has left: its end may be near. */
void browser_sweep_later(struct browser *b, const struct browser_session *s);
/* There is a connection to keep alive. */
void browser_keep_alive(struct browser *b);

#endif
