/*
 * callback: where browsers come back to after a sign-in: /oauth/callback.
 *
 * The daemon has it at its own address (callback_answer is the route's handler); a login without a
 * daemon, or where the daemon has no address that a browser could use, opens a small server on this
 * machine for as long as it takes.
 */
#ifndef RIALTO_HUB_CALLBACK_H
#define RIALTO_HUB_CALLBACK_H

#include "hub/signin.h"
#include "io/http_server.h"

#define CALLBACK_PATH        "/oauth/callback"
#define CALLBACK_CLIENT_PATH "/oauth/client"

struct callback;

/* Answers with a page that says whether the person is signed in, when that is known. */
void callback_answer(struct signin *s, struct http_exchange *x, const struct http_request *req);

/* The document that describes us, beside the callback, for authorization servers that take its
 * address for an id (servers.*.auth.client_metadata_url). */
void callback_describe(const struct signin *s, struct http_exchange *x);

/* Listens at the port of the daemon if that is free, so that the address stays the same, else at
 * any other. NULL with a reason. */
struct callback *callback_new(struct signin *s, const struct config *c, struct err *err);
/* The address for authorization servers: http://127.0.0.1:PORT/oauth/callback. */
const char *callback_uri(const struct callback *c);
/* Answers that are under way are sent; it frees itself from the loop. */
void callback_close(struct callback *c);

#endif
