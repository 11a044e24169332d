/*
 * client_metadata: what we tell authorization servers about ourselves as a client (RFC 7591).
 */
#ifndef RIALTO_HUB_SIGNIN_CLIENT_METADATA_H
#define RIALTO_HUB_SIGNIN_CLIENT_METADATA_H

#include "wire/oauth.h"

/* Members of a JSON object. `device`: we sign in by device codes as well. */
void client_metadata_put(struct buf *out, const char *redirect_uri, enum oauth_method method,
                         bool device);

#endif
