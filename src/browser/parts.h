/*
 * parts: what the browser family is made of.
 *
 *     browser     all sessions, and the calls on their way to pages
 *     session     a provider: the tools of its pages, and what they may do
 *     page        offers tools; has streams, of which the newest is spoken to
 *     pipe        one connection: a WebSocket or an SSE stream
 *     agent       a BTCP agent: a consumer of one session
 *     errand      one request of ours to a page
 */
#ifndef RIALTO_BROWSER_PARTS_H
#define RIALTO_BROWSER_PARTS_H

#include "base/buf.h"
#include "base/id.h"
#include "base/map.h"
#include "browser/browser.h"
#include "browser/capability.h"
#include "io/ws.h"
#include "wire/lines.h"

/* Changes of tools that come this near are told as one. */
enum { COALESCE_MS = 50 };

struct dialect;

struct tool {
    struct span name; /* the page's */
    struct span raw;
    struct span capabilities; /* raw array, or empty */
    uint64_t timeout;
};

struct page {
    struct browser_session *session;
    struct list node;
    char id[ID_TOKEN_SIZE];
    char *key; /* by which it is known again; NULL: it ends with its connection */
    char *origin;
    const struct dialect *dialect;
    bool consents;       /* it can ask its user */
    bool ours;           /* by rialto.js or webmcp.js: it hears of cancelled calls */
    bool registered;     /* since its newest stream came */
    struct list pipes;   /* struct pipe.in_owner, newest last */
    struct list errands; /* struct page_errand.in_page */
    size_t text_n;
    char *text;         /* the raw list of tools, which the tools point into */
    struct arena arena; /* names that stand there with escapes */
    struct tool *tools;
    size_t n_tools;
    struct timer reread;
};

struct pipe {
    struct browser *browser;
    struct list node; /* in browser->pipes */
    struct ws *ws;
    struct http_exchange *x; /* NULL once it was cut */
    bool is_events;          /* it is an event stream: answers come by POST */
    bool offers_only;        /* it may use nobody's tools: CALLER_SITE, CALLER_EXTENSION */
    struct stream *stream;   /* a Unix socket, one message a line */
    struct lines *lines;
    const struct dialect *dialect;
    char *origin;
    struct page *page; /* at most one of these two */
    struct agent *agent;
    struct list in_owner;
    struct deferred end; /* of one that was cut */
    uint64_t window; /* start of the second that messages are counted in: the last that had one */
    unsigned in_window;
};

enum errand_kind { ERRAND_CALL, ERRAND_LIST, ERRAND_CONSENT };
struct page_errand {
    uint64_t n;      /* "btcp-N" on the wire */
    uint64_t secret; /* and "-SECRET" where the id is all that an answer shows; else 0 */
    enum errand_kind kind;
    struct page *page;
    struct pipe *pipe; /* NULL once it is gone */
    struct call *call; /* NULL: nobody waits any more */
    struct timer timer;
    struct list in_page;
    struct buf wanted; /* ERRAND_CONSENT: raw array of capabilities */
};

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
    bool enforces;      /* capabilities are asked for */
    struct lead *leads; /* of the catalog's tools, in their order */
    size_t n_leads;
    size_t n_pages;
    uint64_t created_at, used_at; /* ms: of the clock on the wall, of the loop */
    struct timer publish;
    bool ending;
};

struct agent {
    struct peer peer;
    struct browser *browser;
    struct browser_session *session; /* NULL before it joined, and for a POST */
    struct list node;                /* in the session */
    struct call *standing;
    struct pipe *pipe;       /* NULL for one that waits for the answer of one POST */
    struct http_exchange *x; /* that POST */
    const struct dialect *dialect;
    char *client;      /* by which its POSTs name it; may be NULL */
    char *own;         /* the session that it made up for itself; may be NULL */
    struct list calls; /* struct agent_call */
    bool had_pages;
    uint64_t n_pushed;
    struct deferred end;
};

struct browser {
    struct loop *loop;
    struct router *router;
    struct browser_options options;
    struct map sessions;
    struct map clients; /* client id -> struct page */
    struct idmap errands;
    uint64_t last_errand;
    struct stats past;         /* of the sessions that are over */
    struct listener *listener; /* of the Unix socket; NULL without one */
    struct list pipes;
    struct list posts; /* agents that wait for one answer */
    size_t n_pipes;
    uint64_t started_at;
    char instance[ID_UUID_SIZE];
    uint64_t told_at; /* when agents last heard of changes */
    struct timer news, sweep, keep_alive, goodbye;
    struct kept_grants *kept;
    struct deferred ended;
    void (*closed)(void *arg);
    void *closed_arg;
};

#endif
