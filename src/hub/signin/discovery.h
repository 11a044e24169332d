/*
 * discovery: which authorization server a server has, and what the authorization server offers.
 *
 * The server is asked without a token; its challenge, or one of two well-known addresses, leads to
 * the metadata of the resource (RFC 9728), and that to the metadata of the authorization server
 * (RFC 8414, OpenID Connect). Servers of 2025-03-26 have no metadata of the resource: their own
 * host is the authorization server.
 *
 * The addresses come from peers, so the requests are limited: https, or http within this machine;
 * to addresses of this machine and of private networks only if the server itself has such an
 * address; without redirects; 256 KiB, and 10 s each.
 */
#ifndef RIALTO_HUB_SIGNIN_DISCOVERY_H
#define RIALTO_HUB_SIGNIN_DISCOVERY_H

#include "hub/signin/signin_settings.h"
#include "io/document.h"
#include "wire/oauth.h"

struct discovery;

enum { DISCOVERY_TIMEOUT_MS = 10 * 1000 }; /* of each request, also of registering in login.c */

/* Valid as long as the discovery. */
struct discovered {
    const char *resource; /* how we name the server in all requests */
    const char *scopes;   /* that the server asks for; NULL: it does not say */
    struct oauth_server as;
    struct reach reach; /* where requests to the authorization server may go */
};

/* Called once, from the loop. On failure `found` is NULL and `err` says why; `passing`: trying
 * again later may help. */
typedef void discovery_done_fn(void *owner, const struct discovered *found, const struct err *err,
                               bool passing);

/* `held`: the issuer of the token that we had before, which is preferred; or NULL. The settings are
 * borrowed. */
struct discovery *discovery_start(struct loop *loop, struct http_client *client,
                                  const struct signin_settings *settings, const char *held,
                                  discovery_done_fn *done, void *owner);
/* Cancels what is under way, and frees the result. NULL is fine. Allowed inside the callback. */
void discovery_free(struct discovery *d);

#endif
