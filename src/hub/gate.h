/*
 * gate: the bearer tokens of callers (auth.tokens).
 *
 * Only hashes of the tokens are known here. A caller that shows no valid token is refused as MCP's
 * authorization says: 401, with the address where the requirements can be read (RFC 9728).
 */
#ifndef RIALTO_HUB_GATE_H
#define RIALTO_HUB_GATE_H

#include "config/config.h"
#include "config/problems.h"
#include "io/http_server.h"

struct gate;

/* NULL when the configuration has no tokens: everybody is let in. */
struct gate *gate_new(const struct config *c);
void gate_free(struct gate *g);
/* An address that other machines can reach needs tokens, or the explicit setting that everybody is
 * let in. */
void gate_check(const struct config *c, struct problems *problems);

/* The token that the request shows; NULL for none, or for one that is not ours. Takes equally long
 * for every wrong token. */
const struct config_token *gate_find(const struct gate *g, const struct http_request *req);
/* Answer a request that shows no token of ours. */
void gate_refuse(struct http_exchange *x, const struct http_request *req);

/* What a caller may read before it has a token, at this path and below. */
#define GATE_METADATA "/.well-known/oauth-protected-resource"
/* `rest` is the part of the path after GATE_METADATA. */
void gate_describe(struct http_exchange *x, const struct http_request *req, struct span rest);

enum { GATE_HASH_SIZE = 72 }; /* "sha256:", 64 digits and the NUL */
/* The hash of a token, as it stands in the configuration. */
void gate_hash(struct span token, char out[GATE_HASH_SIZE]);

#endif
