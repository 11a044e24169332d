/*
 * begin: where browsers set out for a sign-in that comes back to public_url: /oauth/begin.
 *
 * Whoever asks for a sign-in can send its address to somebody else, and would then have a token of
 * that person. So the address is that of a page of ours, which says whose sign-in it is; the button
 * there gives the browser a cookie and sends it on, and at the callback the browser must show the
 * cookie. Embedded in the login (hub/login), which ends it.
 */
#ifndef RIALTO_HUB_BEGIN_H
#define RIALTO_HUB_BEGIN_H

#include "base/buf.h"
#include "base/id.h"
#include "io/http_server.h"

#define BEGIN_PATH "/oauth/begin"

struct signin;

struct begin {
    const char *page;          /* its address, borrowed */
    char id[ID_TOKEN_SIZE];    /* in the address that people get */
    struct buf address;        /* that */
    bool used;                 /* a browser has set out from there */
    char tag[ID_TOKEN_SIZE];   /* in the cookie's name, for logins go on side by side */
    char value[ID_TOKEN_SIZE]; /* of the cookie; empty: no browser has set out */
};

void begin_init(struct begin *b, const char *page);
void begin_fini(struct begin *b);
/* The address for a person who is asked now: another one, if the last was used. */
void begin_renew(struct begin *b);
/* Is this the id in the address? Takes constant time. */
bool begin_is(const struct begin *b, struct span id);
/* Has the browser of this request set out from the page? */
bool begin_knows(const struct begin *b, const struct http_request *req);

/* The route's handler: the page, and its button. */
void begin_answer(struct signin *s, struct http_exchange *x, const struct http_request *req);

#endif
