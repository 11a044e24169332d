/*
 * callback: where browsers come back to after a sign-in: /oauth/callback.
 *
 * The daemon serves this path at its own address (callback_answer is the route's handler); a login
 * without a daemon, or with a daemon that has no address a browser could use, opens a small server
 * on this machine until the login ends.
 */
#ifndef RIALTO_HUB_SIGNIN_CALLBACK_H
#define RIALTO_HUB_SIGNIN_CALLBACK_H

#include "hub/signin/signin.h"
#include "io/http_server.h"

#define CALLBACK_PATH        "/oauth/callback"
#define CALLBACK_CLIENT_PATH "/oauth/client"

struct callback;

/* Answers when the login has ended, with a page that says whether the person is signed in. */
void callback_answer(struct signin *s, struct http_exchange *x, const struct http_request *req);

/* Answers with the document that describes us, for authorization servers that accept its address as
 * a client id (servers.*.auth.client_metadata_url). */
void callback_describe(const struct signin *s, struct http_exchange *x);

/* Listens at the port of the daemon if that is free, so that the address stays the same, else at
 * any free port. NULL, with a reason, when it cannot listen. */
struct callback *callback_new(struct signin *s, const struct config *c, struct err *err);
/* The address for authorization servers: http://127.0.0.1:PORT/oauth/callback. */
const char *callback_uri(const struct callback *c);
/* Answers that are under way are still sent; the callback is freed later, from the loop. */
void callback_close(struct callback *c);

#endif
