/*
 * open_request: a request that a shim has passed on and that is not answered yet.
 *
 * The shim has lists of them: the host's requests, the daemon's questions to the host, and the
 * subscriptions, whose id is their address.
 */
#ifndef RIALTO_CMD_OPEN_REQUEST_H
#define RIALTO_CMD_OPEN_REQUEST_H

#include "base/list.h"
#include "base/span.h"

#include <stdint.h>

struct open_request {
    struct list node;
    uint64_t at;   /* where it begins in the stream of bytes to the daemon */
    bool batched;  /* one of several in its line */
    size_t id_n;   /* of the raw id */
    size_t text_n; /* the message, if it may be sent twice; else 0 */
    char bytes[];
};

/* In no list yet. Both texts are copied; `text` may be empty. */
struct open_request *open_request_new(struct span id, struct span text);
/* Takes the request out of its list. */
void open_request_free(struct open_request *r);
/* NULL when no request of the list has this id. */
struct open_request *open_request_find(struct list *all, struct span id);

struct span open_request_id(const struct open_request *r);
/* Empty when the request may not be sent twice. */
struct span open_request_text(const struct open_request *r);

#endif
