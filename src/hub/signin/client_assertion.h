/*
 * client_assertion: a JWT that we sign to show who we are (private_key_jwt, RFC 7523).
 */
#ifndef RIALTO_HUB_SIGNIN_CLIENT_ASSERTION_H
#define RIALTO_HUB_SIGNIN_CLIENT_ASSERTION_H

#include "hub/signin/grant.h"

/* Append a new JWT, valid for a minute. Negative, with a reason, when the key cannot be used. */
MUST_CHECK int client_assertion_put(struct buf *out, const struct grant_client *c, struct err *err);

#endif
