/*
 * nats: the protocol of NATS from the client's side, without I/O.
 *
 * A server sends lines: INFO, MSG, HMSG, PING, PONG, +OK and -ERR; the line of MSG or HMSG is
 * followed by as many bytes as it says. The reader is fed bytes and gives operations. An operation
 * that lies whole in a chunk is not copied, and its spans are valid until the callback returns. The
 * nats_write functions append what a client sends.
 *
 * Nouns: nats_reader_, nats_write_, nats_read_, nats_headers_.
 */
#ifndef RIALTO_WIRE_NATS_H
#define RIALTO_WIRE_NATS_H

#include "base/buf.h"
#include "base/err.h"

enum {
    NATS_MAX_LINE = 64 * 1024, /* the longest is INFO, which lists the servers of a cluster */
    NATS_MAX_PAYLOAD = 64 * 1024 * 1024, /* no server can be configured to take more */
};

enum nats_kind { NATS_INFO, NATS_MSG, NATS_PING, NATS_PONG, NATS_OK, NATS_ERR };

struct nats_op {
    enum nats_kind kind;
    struct span text; /* INFO: the JSON; ERR: the reason, without quotes */
    size_t behind;    /* bytes of the same chunk behind the operation, not read yet */
    /* The members below are for MSG only; HMSG is given as MSG, too. */
    uint64_t sid; /* the number that the subscription was made with */
    struct span subject, reply;
    struct span headers; /* from "NATS/1.0" to the blank line; empty when there are none */
    struct span payload;
};

struct nats_reader {
    struct buf partial; /* the beginning of an operation */
    size_t need;        /* bytes that `partial` must have before it is read again */
    size_t max_payload;
    bool stopped;
};

typedef void nats_op_fn(void *owner, const struct nats_op *op);

void nats_reader_init(struct nats_reader *r);
void nats_reader_fini(struct nats_reader *r);
/* 0, ERR_PROTOCOL or ERR_SIZE. The callback may stop the reader. */
MUST_CHECK int nats_reader_feed(struct nats_reader *r, struct span chunk, nats_op_fn *on_op,
                                void *owner);
/* No more operations come. */
void nats_reader_stop(struct nats_reader *r);

/* --- what INFO says --- */
struct nats_info {
    size_t max_payload;
    bool tls_required, tls_available, headers, leaving /* lame duck: about to shut down */;
    struct span nonce; /* to be signed as it stands; empty = none */
    struct span urls;  /* JSON array of "HOST:PORT", the servers of the cluster; empty = none */
};
/* ERR_PROTOCOL when the text is no JSON object with a max_payload. */
MUST_CHECK int nats_read_info(struct nats_info *info, struct span json);

/* --- the headers of a message --- */
struct nats_headers {
    struct span rest;
    struct span key, value;
};
struct nats_headers nats_headers_of(struct span block);
/* The next header that has a name; false at the end. */
bool nats_headers_next(struct nats_headers *h);
/* The number behind "NATS/1.0": 503 = nobody is subscribed, 408 = request timeout; 0 = none. */
unsigned nats_headers_status(struct span block);

/* --- what a client sends --- */
void nats_write_connect(struct buf *out, struct span json);
/* `group` may be empty. */
void nats_write_sub(struct buf *out, struct span subject, struct span group, uint64_t sid);
void nats_write_unsub(struct buf *out, uint64_t sid);
/* `reply` and `headers` (a block made by the two functions below) may be empty. */
void nats_write_pub(struct buf *out, struct span subject, struct span reply, struct span headers,
                    struct span payload);
void nats_write_ping(struct buf *out);
void nats_write_pong(struct buf *out);

/* Begins the block when `block` is empty. A header whose key is not valid is left out; control
 * characters in a value become blanks, because a line break would begin another header. */
void nats_write_header(struct buf *block, struct span key, struct span value);
/* Ends the block with its blank line; appends nothing when there is no header. */
void nats_headers_end(struct buf *block);

#endif
