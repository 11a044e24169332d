/*
 * caller: who is calling, by which way, and with which view: names, no policy.
 *
 * The front door makes one for each request (hub/front.c) and hands it down as an argument, to
 * whatever decides by it: nothing that decides about access is kept between two functions. The
 * names are the configuration's and live as long as that.
 */
#ifndef RIALTO_CORE_CALLER_H
#define RIALTO_CORE_CALLER_H

#include <stdbool.h>
#include <string.h>

enum caller_way {
    CALLER_NETWORK,
    CALLER_SOCKET,    /* a Unix socket, and not by one of our own servers */
    CALLER_SITE,      /* a page of a site that may offer tools, and use nobody's */
    CALLER_EXTENSION, /* the same of a browser extension that nobody has named */
};

struct caller {
    enum caller_way way;
    const char *principal; /* the owner of the token that was shown; NULL: none was needed */
    const char *view;      /* that token's; NULL: everything */
    bool trusted;          /* tokens are asked for, and this one may see all there is */
};

/* Do both names (each may be NULL) mean the same owner? */
static inline bool caller_same(const char *principal, const char *other)
{
    return principal == other || (principal && other && strcmp(principal, other) == 0);
}

#endif
