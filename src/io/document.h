/*
 * document: one small HTTP answer, fetched whole within bounds of size and time.
 *
 * For the requests of OAuth, such as key sets, metadata and introspection. Redirects are not
 * followed. The callback comes once, from the loop, unless the fetch is cancelled first; the
 * document is freed when the callback returns.
 */
#ifndef RIALTO_IO_DOCUMENT_H
#define RIALTO_IO_DOCUMENT_H

#include "io/http_client.h"

struct fetched_document;

struct document_spec {
    struct http_fetch_spec fetch;
    size_t max;       /* bytes of the body */
    uint64_t timeout; /* ms for all of it */
};

/* Valid inside the callback. */
struct document_answer {
    int code;        /* 0: the answer is complete, whatever its status */
    const char *why; /* for people, when the code is not 0 */
    struct http_head head;
    struct span body;
};

struct fetched_document *document_fetch(struct loop *l, struct http_client *c,
                                        const struct document_spec *spec,
                                        void (*done)(void *owner, const struct document_answer *a),
                                        void *owner);
void document_cancel(struct fetched_document *d);

/* How long the answer may be kept, in ms: max-age of Cache-Control within these bounds, or `least`
 * without a max-age. */
uint64_t document_freshness(const struct document_answer *a, uint64_t least, uint64_t most);

#endif
