/*
 * sender: who sent a message, while the message is handled, and the reply to it.
 */
#ifndef RIALTO_BROWSER_SENDER_H
#define RIALTO_BROWSER_SENDER_H

#include "browser/page.h"

struct agent;

struct page_message {
    struct span id;     /* raw; empty: none */
    struct span method; /* raw string, or empty */
    struct span params, result, error;
};

struct sender {
    struct browser *browser;
    struct pipe *pipe;
    struct browser_session *session;
    struct page *page;
    struct agent *agent;
    const struct dialect *dialect;
    struct span origin;
    struct span session_id;      /* as the POST named it; the session may not exist */
    struct span key;             /* the page's key; may be empty */
    struct http_exchange *x;     /* the POST that brought the message; or NULL */
    bool held;                   /* the POST gets its response later */
    bool refused;                /* the reply is an error */
    bool offers_only;            /* it may not call tools: CALLER_SITE, CALLER_EXTENSION */
    struct principal *principal; /* for a POST: the owner of the token that it showed, or NULL */
    struct buf reply;
};

/* False when the text is no valid message; JSON-RPC dialects then have an error in `reply`. */
bool sender_receive(struct sender *s, struct span text);
/* Makes the connection, so far neither page nor agent, a page of the session. False: `session` is
 * NULL or has too many pages. */
bool sender_become_page(struct sender *s, struct browser_session *session);

#endif
