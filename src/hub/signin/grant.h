/*
 * grant: one request to an authorization server with our credentials: for a token, for a device
 * code, to revoke a token.
 *
 * A form is posted with our id and, by a method that the server knows, our secret or a signed
 * assertion. Redirects are not followed, the size of the answer is limited, and every failure gives
 * an error for people, with the authorization server's own words.
 */
#ifndef RIALTO_HUB_SIGNIN_GRANT_H
#define RIALTO_HUB_SIGNIN_GRANT_H

#include "hub/signin/signin_settings.h"
#include "io/document.h"
#include "wire/oauth.h"

struct grant_request;

/* Who we are at an authorization server. */
struct grant_client {
    const char *id, *secret;
    enum oauth_method method;
    const char *private_key; /* OAUTH_JWT: path of a PEM file */
    const char *algs;        /* OAUTH_JWT: that the server knows, with blanks between; or NULL */
    const char *audience;    /* OAUTH_JWT: the issuer */
};

struct grant_spec {
    const char *alias; /* of the server that the token is for; for messages */
    const char *endpoint;
    const char *ca;
    const struct reach *reach;
    struct grant_client client;
    bool plain;       /* the answer is no token: only its body counts */
    bool is_exchange; /* the answer is of a token exchange */
};

/* Valid inside the callback. */
struct grant_answer {
    const struct oauth_token *token; /* NULL when there is none, also for `plain` */
    struct span body;                /* of the answer, whatever its status */
    bool ok;
    struct oauth_error error; /* as the server says it; code NULL when it says none */
    struct err err;           /* for people */
    bool passing;             /* the same request may succeed later */
};

typedef void grant_done_fn(void *owner, const struct grant_answer *a);

/* `form` is taken over; it has everything but our credentials. The spec is used only during this
 * call, but spec->reach must outlive the request. `done` is called once, from the loop. */
struct grant_request *grant_start(struct loop *loop, struct http_client *client,
                                  const struct grant_spec *spec, struct buf *form,
                                  grant_done_fn *done, void *owner);
/* NULL is fine. */
void grant_cancel(struct grant_request *g);

/* The method by which a client with a secret or a key authenticates; -1: the server knows none that
 * we could use. */
int grant_choose_method(const struct oauth_server *as, bool secret, bool key);

#endif
