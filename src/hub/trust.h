/*
 * trust: the issuers whose JWT access tokens are taken (auth.jwt), and the checks of such a token.
 *
 * A token is read by wire/jwt, its issuer picks the entry and so the set of keys (hub/keyset), and
 * every check has to be passed, in the order of the file: form, algorithm, type, issuer, key,
 * signature, times, audience, subject, scope. A token is never passed on to any server.
 *
 * Nouns: trust_.
 */
#ifndef RIALTO_HUB_TRUST_H
#define RIALTO_HUB_TRUST_H

#include "hub/pass.h"
#include "io/http_client.h"
#include "wire/jwt.h"

struct trust;

enum trust_answer {
    TRUST_PASSES,
    TRUST_REFUSES,  /* the token is wrong in some way */
    TRUST_NO_SCOPE, /* it is right, but none of its scopes opens anything */
    TRUST_WAIT,     /* for keys or for an answer: `news` will be called */
    TRUST_DOWN,     /* there are no keys, or no answer, to be had */
    TRUST_NOT_OURS, /* it is of another kind, or of another issuer */
};

/* `news`: what was waited for has come. `public_url` may be NULL. */
struct trust *trust_new(struct loop *l, struct http_client *client, const struct config *c,
                        struct passes *passes, void (*news)(void *arg), void *arg);
/* Ends the passes of its tokens. */
void trust_free(struct trust *t);
/* Is the configuration, where this is concerned, the same as the one of trust_new? */
bool trust_is_same(const struct trust *t, const struct config *c);

/* Judges a token; `pass` is set if it passes, `why` (constant) if it is refused. */
enum trust_answer trust_judge(struct trust *t, struct span token, const struct pass **pass,
                              const char **why);

/* --- what introspection decides alike --- */

/* What of the configuration decides by claims. */
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
