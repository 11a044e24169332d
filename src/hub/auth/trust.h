/*
 * trust: the issuers whose JWT access tokens are accepted (auth.jwt), and the checks of such a
 * token.
 *
 * A token is read by wire/jwt; its issuer selects the entry and so the set of keys
 * (hub/auth/keyset). Every check has to be passed, in this order: form, algorithm, issuer, type,
 * key, signature, times, audience, subject, scope. A token is never passed on to any server.
 *
 * Nouns: trust_.
 */
#ifndef RIALTO_HUB_AUTH_TRUST_H
#define RIALTO_HUB_AUTH_TRUST_H

#include "hub/auth/pass.h"
#include "io/http_client.h"
#include "wire/jwt.h"

struct trust;

enum trust_answer {
    TRUST_PASSES,
    TRUST_REFUSES,  /* the token is wrong in some way */
    TRUST_NO_SCOPE, /* the token is valid, but none of its scopes opens anything */
    TRUST_WAIT,     /* for keys or for an answer: `news` will be called */
    TRUST_DOWN,     /* the keys or the answer cannot be fetched */
    TRUST_NOT_OURS, /* the token is of another kind, or of another issuer */
};

/* `news` is called when what was waited for has come. c->public_url may be NULL. */
struct trust *trust_new(struct loop *l, struct http_client *client, const struct config *c,
                        struct passes *passes, void (*news)(void *arg), void *arg);
/* Also ends the passes of the tokens that were judged here. */
void trust_free(struct trust *t);
/* Does the configuration have the same settings for this as the one of trust_new? */
bool trust_is_same(const struct trust *t, const struct config *c);

/* Judges a token; `pass` is set if it passes, `why` (constant) if it is refused. */
enum trust_answer trust_judge(struct trust *t, struct span token, const struct pass **pass,
                              const char **why);

/* --- shared with introspection --- */

/* The settings by which claims are judged. */
struct trust_terms {
    const char *audience;
    const char *public_url;
    struct config_pairs views;
};
/* Copied into the arena; `audience` NULL: public_url + /mcp. */
struct trust_terms trust_copy_terms(struct arena *a, const struct config *c, const char *audience,
                                    const struct config_pairs *views);
/* Checks times, audience, subject and scope, and fills `facts`, which points into the
 * claims, the terms and `scratch`. */
enum trust_answer trust_weigh(const struct trust_terms *terms, const struct jwt_claims *claims,
                              struct pass_facts *facts, struct buf *scratch, const char **why);

#endif
