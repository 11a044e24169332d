/*
 * gate: who is let in by which bearer token, according to the current configuration (auth).
 *
 * A token is one of auth.tokens (of which only hashes are known here), a JWT of a trusted issuer
 * (hub/auth/trust), a token that its issuer is asked about (hub/auth/introspection), or a token of
 * our own issuer (hub/auth/issuer). The results for the last three kinds are kept: with the
 * connection, where they are found again by comparing bytes, and in a table for all connections
 * (hub/auth/pass).
 *
 * A caller that shows no valid token is refused as MCP's authorization says: 401, with the address
 * where the requirements can be read (RFC 9728). Tokens come and go while the program runs: the
 * principal of a token that was taken out, changed, revoked or has expired is `ended`, and the
 * owner of the gate is notified, so that it ends what the principal has open.
 */
#ifndef RIALTO_HUB_AUTH_GATE_H
#define RIALTO_HUB_AUTH_GATE_H

#include "config/config.h"
#include "config/problems.h"
#include "hub/auth/issuer.h"
#include "hub/auth/pass.h"
#include "io/http_server.h"
#include "io/loop.h"

struct gate;

/* Has no tokens before gate_apply: everybody is let in. */
struct gate *gate_new(struct loop *loop);
void gate_free(struct gate *g);
/* Use `auth` and `public_url` of `c` from now on; `c` need not outlive the call. */
void gate_apply(struct gate *g, const struct config *c);
/* `ended` is called whenever principals have ended: inside gate_apply, and by the loop. `news`:
 * judge the requests that wait (GATE_WAIT) again. */
void gate_on_change(struct gate *g, void (*ended)(void *arg), void (*news)(void *arg), void *arg);
/* Must callers show a token? */
bool gate_asks(const struct gate *g);
/* How others reach us, "https://host"; NULL when that is not configured. */
const char *gate_public_url(const struct gate *g);
struct issuer *gate_issuer(const struct gate *g);

/* An address that other machines can reach needs tokens, or the explicit setting that everybody is
 * let in. */
void gate_check(const struct config *c, struct problems *problems);

enum gate_answer {
    GATE_LETS_IN,
    GATE_NO_TOKEN,
    GATE_BAD_REQUEST, /* a token in the query, or two tokens */
    GATE_REFUSES,     /* the token is not valid */
    GATE_NO_SCOPE,    /* the token is valid, but allows nothing here */
    GATE_WAIT,        /* not known yet: `news` will be called */
    GATE_DOWN,        /* cannot be found out now */
};
struct gate_verdict {
    enum gate_answer answer;
    const struct pass *pass; /* valid during the request; NULL: not let in */
    const char *why;         /* for people, constant */
};
/* Takes equally long for every wrong token of auth.tokens. `x` NULL: nothing is kept. */
struct gate_verdict gate_judge(struct gate *g, struct http_exchange *x,
                               const struct http_request *req);
/* Answer a request that was not let in. */
void gate_refuse(const struct gate *g, struct http_exchange *x, const struct http_request *req,
                 const struct gate_verdict *v);

/* What a caller may read before it has a token, at this path and below. */
#define GATE_METADATA "/.well-known/oauth-protected-resource"
/* `rest` is the part of the path after GATE_METADATA. */
void gate_describe(const struct gate *g, struct http_exchange *x, const struct http_request *req,
                   struct span rest);

enum { GATE_HASH_SIZE = 72 }; /* "sha256:", 64 digits and the NUL */
/* The hash of a token, as it stands in the configuration. */
void gate_hash(struct span token, char out[GATE_HASH_SIZE]);

#endif
