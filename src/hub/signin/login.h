/*
 * login: one sign-in of a person to one server, from the search for the authorization server to the
 * token in signin.json.
 *
 * By the browser (authorization code with PKCE): the owner shows an address, and hands over the
 * query with which the browser comes back. Or by a device code (RFC 8628): the owner shows an
 * address and a code, and the authorization server is asked until the person is done. A login is
 * good for one sign-in and for ten minutes.
 *
 * The owner is hub/signin/signin.c, which finds the login by its `state`. Callbacks come from the
 * loop; free the login after `done`, or inside it.
 */
#ifndef RIALTO_HUB_SIGNIN_LOGIN_H
#define RIALTO_HUB_SIGNIN_LOGIN_H

#include "hub/signin/begin.h"
#include "hub/signin/grant.h"
#include "hub/signin/signin_file.h"
#include "hub/signin/signin_settings.h"

struct login;

struct login_spec {
    const struct signin_settings *settings; /* borrowed, like the file */
    struct signin_file *file;
    const char *user;         /* whose token it will be; NULL: everybody's */
    const char *redirect_uri; /* where the browser comes back to */
    const char *begin;        /* our page where it starts; NULL: at the authorization server */
    bool device;              /* by a device code */
};

struct login_events {
    /* To be shown to the person; the code is NULL unless it is to be entered there. */
    void (*address)(void *owner, const char *url, const char *code);
    /* NULL: signed in, and the token is in the file. */
    void (*done)(void *owner, const struct err *err);
};

struct login *login_start(struct loop *loop, struct http_client *client,
                          const struct login_spec *spec, const struct login_events *on,
                          void *owner);
/* NULL is fine. */
void login_free(struct login *l);

const struct login_spec *login_spec(const struct login *l);
/* The page where the browser starts, while the login waits for one; NULL: there is no such page. */
struct begin *login_begin(struct login *l);
/* The address to which that page sends the browser. */
const char *login_authorize(const struct login *l);
/* What to show; NULL as long as it is not known. */
const char *login_address(const struct login *l);
const char *login_code(const struct login *l);
/* Does this login wait for a callback with this state? Takes constant time. */
bool login_is_of(const struct login *l, struct span state);
/* Does this login wait for a callback at all? */
bool login_waits(const struct login *l);
/* The person came back: `query` is that of the callback, and its state is the login's. `done`
 * is called soon. */
void login_come_back(struct login *l, struct span query);

#endif
