/*
 * gate: who comes by the network, told by their bearer tokens (auth.tokens).
 *
 * Of the tokens only hashes are known here. Whoever shows none of them is refused in the words of
 * MCP's authorization: 401, and where to read what would be accepted (RFC 9728).
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
/* An address that other machines reach needs tokens, or the word that everybody is let in. */
void gate_check(const struct config *c, struct problems *problems);

/* Whose token the request shows; NULL for none, or one that is not ours. Every wrong one takes as
 * long. */
const struct config_token *gate_find(const struct gate *g, const struct http_request *req);
/* Answer a request that shows no token of ours. */
void gate_refuse(struct http_exchange *x, const struct http_request *req);

/* What is to be known before one has a token, at this path and below. */
#define GATE_METADATA "/.well-known/oauth-protected-resource"
/* `rest` is what follows the path. */
void gate_describe(struct http_exchange *x, const struct http_request *req, struct span rest);

enum { GATE_HASH_SIZE = 72 }; /* "sha256:", 64 digits and the NUL */
/* The hash of a token, as it stands in the configuration. */
void gate_hash(struct span token, char out[GATE_HASH_SIZE]);

#endif
