/*
 * http_signer: where the link to an HTTP server gets its access token from.
 *
 * hub/signin.c fills the table and owns the struct, which outlives the link. Tokens are numbered,
 * so that an answer to a request with an old token is not taken for one to the new token. Nothing
 * here waits: the link asks whether it may send, and is told later if it must wait for a token.
 */
#ifndef RIALTO_MCP_SERVER_HTTP_SIGNER_H
#define RIALTO_MCP_SERVER_HTTP_SIGNER_H

#include "base/buf.h"
#include "base/list.h"

#include <stdint.h>

/* Embedded in what waits. `fire` is called from the loop, once. */
struct http_signer_wait {
    struct list node;
    void (*fire)(struct http_signer_wait *w);
};

/* An answer 401 or 403. */
struct http_refusal {
    int status;
    uint64_t number;       /* of the token that the request had; 0 = none */
    struct span challenge; /* all WWW-Authenticate headers, with commas between */
    bool beside; /* the request was none of MCP's: what it says of the token is no proof */
};

enum http_signed {
    HTTP_SIGNED_NOT,   /* the request was refused for another reason */
    HTTP_SIGNED_AGAIN, /* there is, or will be, another token: ask `ready`, and send it again */
    HTTP_SIGNED_LATER, /* there is no token for the moment */
    HTTP_SIGNED_OUT,   /* there is none before somebody has signed in */
};

struct http_signer {
    /* The token for a request that is sent now, and its number; NULL: none. Valid until the next
     * turn of the loop. */
    const char *(*token)(struct http_signer *s, uint64_t *number);
    /* May a request be sent now? False: a token is on its way, and `w` is called then. */
    bool (*ready)(struct http_signer *s, struct http_signer_wait *w);
    /* The server refused a request; what now? Unless it is to be sent again, `why` tells people
     * what to do, or is empty. */
    enum http_signed (*refused)(struct http_signer *s, const struct http_refusal *r,
                                struct buf *why);
};

#endif
