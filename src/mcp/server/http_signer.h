/*
 * http_signer: where the link to an HTTP server gets its access token from.
 *
 * hub/signin/signin.c and hub/graph/profile.c implement it and own the struct, which outlives the
 * link. Tokens are numbered, so that the refusal of an old token is not taken for one of the new
 * token. No function here blocks: if the link must wait for a token, it is called back later.
 */
#ifndef RIALTO_MCP_SERVER_HTTP_SIGNER_H
#define RIALTO_MCP_SERVER_HTTP_SIGNER_H

#include "base/buf.h"
#include "base/list.h"

#include <stdint.h>

/* Embedded in the object that waits. `fire` is called from the loop, once. */
struct http_signer_wait {
    struct list node;
    void (*fire)(struct http_signer_wait *w);
};

/* An answer 401 or 403. */
struct http_refusal {
    int status;
    uint64_t number;       /* of the token that the request had; 0 = none */
    struct span challenge; /* all WWW-Authenticate headers, with commas between */
    bool beside; /* not a request of MCP: its refusal does not prove that the token is invalid */
};

enum http_signed {
    HTTP_SIGNED_NOT,   /* the request was refused for another reason */
    HTTP_SIGNED_AGAIN, /* there is, or will be, another token: ask `ready`, then send again */
    HTTP_SIGNED_LATER, /* there is no token for the moment */
    HTTP_SIGNED_OUT,   /* there is no token until somebody has signed in */
};

struct http_signer {
    /* The token for a request that is sent now, and its number; NULL: none. Valid until the next
     * turn of the loop. */
    const char *(*token)(struct http_signer *s, uint64_t *number);
    /* May a request be sent now? False: a token is being fetched; `w` fires when that ends. */
    bool (*ready)(struct http_signer *s, struct http_signer_wait *w);
    /* The server refused a request: what to do? Unless the request is to be sent again, `why` tells
     * people what to do, or is empty. */
    enum http_signed (*refused)(struct http_signer *s, const struct http_refusal *r,
                                struct buf *why);
};

#endif
