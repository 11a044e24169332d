/*
 * kept_request: a request that outlives the message it came in.
 */
#ifndef RIALTO_CORE_KEPT_REQUEST_H
#define RIALTO_CORE_KEPT_REQUEST_H

#include "base/buf.h"
#include "core/peer.h"

/* A request kept beyond the callback that brought it: for calls that wait and for calls that may be
 * sent again. */
struct kept_request {
    struct request request;
    struct buf bytes;
};

/* Copies everything the request points to; the caller frees the copy with buf_fini(&k->bytes). */
void kept_request_set(struct kept_request *k, const struct request *q);

#endif
