/*
 * signin: our sign-ins to servers: tokens that are used, renewed, and asked for.
 *
 * An *identity* is who we are at one server: for everybody, or for one user (`auth.per_user`). It
 * has the token from signin.json, renews it before it ends (once, however many requests wait), and
 * is the link's signer (mcp/server/http_signer.h). Grants that need no person (client credentials,
 * a JWT of the platform, the caller's own token exchanged at its identity provider) are asked for
 * by the identity itself. For all other grants a person signs in: there is one login at a time,
 * shared by all who ask for it, and all of them are told how it ends.
 *
 * The bridge owns the struct, instances hold identities. Callbacks come from the loop.
 *
 * Nouns: signin_, identity_. Files: renewal.
 */
#ifndef RIALTO_HUB_SIGNIN_SIGNIN_H
#define RIALTO_HUB_SIGNIN_SIGNIN_H

#include "config/secret.h"
#include "core/principal.h"
#include "hub/graph/server.h"
#include "mcp/server/http_signer.h"

struct signin;
struct identity;
struct login;

struct signin *signin_new(struct loop *loop, const struct config *c);
/* All identities must have been dropped. */
void signin_free(struct signin *s);
/* The address where browsers come back to, for logins that begin from now on; NULL: each login
 * listens by itself for as long as it takes. `begin`: the page where browsers start
 * (hub/signin/begin); NULL: they start at the authorization server. */
void signin_set_redirect(struct signin *s, const char *uri, const char *begin);
const char *signin_redirect(const struct signin *s);

/* The login whose start page has this id in its address; NULL: forged, used, or too late. */
struct login *signin_find_begin(const struct signin *s, struct span id);
/* A browser came back with this query: the identity whose login waits for that (identity_waiting),
 * or NULL if none does: forged, used before, or too late. */
struct identity *signin_find_back(const struct signin *s, struct span query);
struct loop *signin_loop(const struct signin *s);
/* Is a page on its way to a browser? The program should not end before the page has arrived. */
bool signin_is_busy(const struct signin *s);
/* The callbacks that are open, for callback.c. */
struct list *signin_callbacks(struct signin *s);

/* Who we are at the server of this plan, for which server_signin must not be NULL; held. `caller`
 * matters only where each caller has a token of its own (server_is_per_user); or NULL. */
struct identity *identity_hold(struct signin *s, struct server_plan *plan,
                               struct principal *caller);
/* When nobody holds the identity any more, those who wait for a login are told that its server is
 * gone. */
void identity_drop(struct identity *id);
struct http_signer *identity_signer(struct identity *id);
/* Does a person sign in, or do we get tokens by ourselves? */
bool identity_wants_person(const struct identity *id);
bool identity_is_signed_in(struct identity *id);
/* Everybody's identity at the server of this plan; NULL: there is none. */
struct identity *signin_find(const struct signin *s, const struct server_plan *plan);

/* Gets the news of a login. Embedded in what waits; zeroed, with functions set, before
 * identity_login. */
struct identity_wait {
    struct list node;
    /* An address to be shown to a person, and a code to be entered there or NULL. */
    void (*address)(struct identity_wait *w, const char *url, const char *code);
    /* The login is over; `err` is NULL when somebody has signed in. `w` waits no longer. */
    void (*done)(struct identity_wait *w, const struct err *err);
};
/* Begin a login, or wait for the one that is under way. If its address is known already, `w` is
 * told in the next turn of the loop. */
void identity_login(struct identity *id, bool device, struct identity_wait *w);
/* Wait for the login that is under way. */
void identity_join(struct identity *id, struct identity_wait *w);
/* The login that is under way; NULL: none. For callback.c. */
struct login *identity_waiting(const struct identity *id);
/* A person has pasted the address where the browser ended, or the code in it. It does not matter
 * which browser that was, since the same person began the login. False: the login does not wait for
 * this. */
bool identity_paste(struct identity *id, struct span text);
/* May be called for a `w` that waits for nothing. The login itself goes on. */
void identity_leave(struct identity_wait *w);
enum login_state { LOGIN_NONE, LOGIN_WAITS, LOGIN_DONE, LOGIN_FAILED };
/* How the last login went, or whether one is under way; *err says why it failed. */
enum login_state identity_login_state(struct identity *id, const struct err **err);
/* Forget the token and revoke it at the authorization server; `done` is called after its answer.
 * `err` with a code: the token could not be forgotten, and is still in the file. `err` without one:
 * it is forgotten, but the authorization server did not revoke it. */
void identity_logout(struct identity *id, void (*done)(void *arg, const struct err *err),
                     void *arg);

/* Called when somebody has signed in or out, here or by another process. */
struct identity_watch {
    struct list node;
    void (*changed)(struct identity_watch *w);
};
void identity_watch(struct identity *id, struct identity_watch *w);

#endif
