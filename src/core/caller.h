/*
 * caller: the owner of the token, the way in and the view of one request: names, no policy.
 *
 * hub/front.c makes a caller for each request and passes it down as an argument to every function
 * that decides about access: nothing about access is kept between two functions. The names are
 * valid during the request; who needs the principal longer holds it.
 */
#ifndef RIALTO_CORE_CALLER_H
#define RIALTO_CORE_CALLER_H

#include "core/principal.h"

enum caller_way {
    CALLER_NETWORK,
    CALLER_SOCKET,    /* a Unix socket, and not by one of our own servers */
    CALLER_SITE,      /* a page of a site that may offer tools, but use none */
    CALLER_EXTENSION, /* the same for a browser extension that no setting names */
};

struct caller {
    enum caller_way way;
    struct principal *principal; /* the owner of the token that was shown; NULL: none was needed */
    const char *view;            /* the token's view; NULL: everything */
    bool trusted;                /* tokens are asked for, and this one may see all there is */
    bool viewer;                 /* the token's owner may look, and change nothing */
    bool shown;                  /* answers are for a person's eyes: secrets are hidden in them */
};

#endif
