/*
 * gate: the bearer tokens of callers (auth.tokens), as the configuration has them now.
 *
 * Only hashes of the tokens are known here. A caller that shows no valid token is refused as MCP's
 * authorization says: 401, with the address where the requirements can be read (RFC 9728). Tokens
 * come and go while the program runs: a token that is the same in two configurations keeps its
 * principal; the principal of one that was taken out, changed or has expired is `ended`, and the
 * owner of the gate is told, to end what the principal has open.
 */
#ifndef RIALTO_HUB_GATE_H
#define RIALTO_HUB_GATE_H

#include "config/config.h"
#include "config/problems.h"
#include "io/http_server.h"
#include "io/loop.h"

struct gate;

struct gate_token {
    struct principal *who;
    char *view; /* NULL: everything */
    enum config_role role;
    unsigned char hash[32];
    int64_t expires; /* ms of Unix time; 0: never */
};

/* Without tokens so far: everybody is let in. */
struct gate *gate_new(struct loop *loop);
void gate_free(struct gate *g);
/* The tokens are those of `c` from now on, which need not outlive the call. */
void gate_apply(struct gate *g, const struct config *c);
/* `ended` is called whenever principals have ended: inside gate_apply, and by the loop when a token
 * expires. */
void gate_on_ended(struct gate *g, void (*ended)(void *arg), void *arg);
/* Must callers show a token? */
bool gate_asks(const struct gate *g);

/* An address that other machines can reach needs tokens, or the explicit setting that everybody is
 * let in. */
void gate_check(const struct config *c, struct problems *problems);

/* The token that the request shows; NULL for none, or for one that is not valid. Takes equally long
 * for every wrong token. */
const struct gate_token *gate_find(const struct gate *g, const struct http_request *req);
/* Answer a request that shows no token of ours. */
void gate_refuse(const struct gate *g, struct http_exchange *x, const struct http_request *req);

/* What a caller may read before it has a token, at this path and below. */
#define GATE_METADATA "/.well-known/oauth-protected-resource"
/* `rest` is the part of the path after GATE_METADATA. */
void gate_describe(struct http_exchange *x, const struct http_request *req, struct span rest);

enum { GATE_HASH_SIZE = 72 }; /* "sha256:", 64 digits and the NUL */
/* The hash of a token, as it stands in the configuration. */
void gate_hash(struct span token, char out[GATE_HASH_SIZE]);

#endif
