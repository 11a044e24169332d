/*
 * introspection: tokens that only their issuer can read; it is asked about each (RFC 7662).
 *
 * The answer holds for a minute at most. While a token's owner has something open here (a session,
 * a stream, a call), the issuer is asked again before that is over, so that what a revoked token
 * has open ends. That a token is not valid is remembered for ten seconds, and that the issuer did
 * not answer for two.
 */
#ifndef RIALTO_HUB_INTROSPECTION_H
#define RIALTO_HUB_INTROSPECTION_H

#include "hub/trust.h"

struct introspection;

/* `news`: an answer has come. */
struct introspection *introspection_new(struct loop *l, struct http_client *client,
                                        const struct config *c, struct passes *passes,
                                        void (*news)(void *arg), void *arg);
/* Ends the passes of its tokens. */
void introspection_free(struct introspection *i);
/* Is the configuration, where this is concerned, the same as the one it was made with? */
bool introspection_is_same(const struct introspection *i, const struct config *c);
/* As trust_judge. */
enum trust_answer introspection_judge(struct introspection *i, struct span token,
                                      const struct pass **pass, const char **why);

#endif
