/*
 * begin: where browsers start a sign-in that comes back to public_url: /oauth/begin.
 *
 * Anyone who asks for a sign-in can send its address to somebody else, and would then get a token
 * of that person. So the address leads to a page of ours, which says whose sign-in it is; the
 * button on that page gives the browser a cookie and sends the browser to the authorization server,
 * and at the callback the browser must show the cookie. Embedded in the login (hub/signin/login).
 */
#ifndef RIALTO_HUB_SIGNIN_BEGIN_H
#define RIALTO_HUB_SIGNIN_BEGIN_H

#include "base/buf.h"
#include "base/id.h"
#include "io/http_server.h"

#define BEGIN_PATH "/oauth/begin"

struct signin;

struct begin {
    const char *page;          /* address of the page, borrowed */
    char id[ID_TOKEN_SIZE];    /* of the login, in `address` */
    struct buf address;        /* that people get: the page and `id` */
    bool used;                 /* a browser has started from `address` */
    char tag[ID_TOKEN_SIZE];   /* in the cookie's name, since several logins may be under way */
    char value[ID_TOKEN_SIZE]; /* of the cookie; empty: no browser has started */
};

void begin_init(struct begin *b, const char *page);
void begin_fini(struct begin *b);
/* The sign-in is asked for again: make a new address if the last one was used. */
void begin_renew(struct begin *b);
/* Is this the id in the address? Takes constant time. */
bool begin_is(const struct begin *b, struct span id);
/* Does the request have the cookie of the browser that started from the page? */
bool begin_knows(const struct begin *b, const struct http_request *req);

/* The route's handler: GET shows the page, POST is its button. */
void begin_answer(struct signin *s, struct http_exchange *x, const struct http_request *req);

#endif
