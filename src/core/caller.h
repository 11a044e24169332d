/*
 * caller: who sent one request: the owner of its token, the way it came in, and its view. Names
 * only, no policy.
 *
 * hub/front.c makes a caller for each request and passes it down as an argument to every function
 * that decides about access: nothing about access is stored elsewhere. The names are valid during
 * the request; code that needs the principal longer must hold it (principal_hold).
 */
#ifndef RIALTO_CORE_CALLER_H
#define RIALTO_CORE_CALLER_H

#include "core/principal.h"

enum caller_way {
    CALLER_NETWORK,
    CALLER_SOCKET,    /* by a Unix socket, and not from one of our own servers */
    CALLER_SITE,      /* a page of a site that may offer tools, but use none */
    CALLER_EXTENSION, /* the same for a browser extension that no setting names */
};

struct caller {
    enum caller_way way;
    struct principal *principal; /* the owner of the token that was shown; NULL: none was needed */
    const char *view;            /* the token's view; NULL: everything */
    bool trusted;                /* tokens are required, and this one may see everything */
    bool viewer;                 /* the token's owner may read, and change nothing */
    bool shown;                  /* answers are for a person's eyes: secrets are hidden in them */
};

#endif
