/*
 * sender: who sent a message, for as long as that is handled, and the reply to it.
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
    struct span session_id;      /* as the POST named it, there or not */
    struct span key;             /* of the page, if it has one */
    struct http_exchange *x;     /* the POST that brought it */
    bool held;                   /* the POST is answered later */
    bool refused;                /* the reply is an error */
    bool offers_only;            /* it may use nobody's tools: CALLER_SITE, CALLER_EXTENSION */
    struct principal *principal; /* of a POST: the owner of the token that it showed, or NULL */
    struct buf reply;
};

/* False when the text is no message; with a reply that says so, where there is a way to say it. */
bool sender_receive(struct sender *s, struct span text);
/* A connection that has not said so far what it is becomes a page of this session, if any. */
bool sender_become_page(struct sender *s, struct browser_session *session);

#endif
