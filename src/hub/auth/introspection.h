/*
 * introspection: tokens that only their issuer can read: the issuer is asked about each (RFC 7662).
 *
 * The answer holds for a minute at most. While a token's owner has something open here (a session,
 * a stream, a call), the issuer is asked again before the minute is over, so that what the owner of
 * a revoked token has open ends. That a token is not valid is remembered for ten seconds; that the
 * issuer did not answer, for two seconds.
 */
#ifndef RIALTO_HUB_AUTH_INTROSPECTION_H
#define RIALTO_HUB_AUTH_INTROSPECTION_H

#include "hub/auth/trust.h"

struct introspection;

/* `news`: an answer has come. */
struct introspection *introspection_new(struct loop *l, struct http_client *client,
                                        const struct config *c, struct passes *passes,
                                        void (*news)(void *arg), void *arg);
/* Ends the passes of its tokens. */
void introspection_free(struct introspection *i);
/* Are the settings for introspection in `c` the same as those of introspection_new? */
bool introspection_is_same(const struct introspection *i, const struct config *c);
/* As trust_judge. */
enum trust_answer introspection_judge(struct introspection *i, struct span token,
                                      const struct pass **pass, const char **why);

#endif
