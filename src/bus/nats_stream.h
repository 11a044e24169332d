/*
 * nats_stream: the streams and consumers that the bus needs in JetStream.
 *
 * Topics with the same first segment share a stream. It keeps a message until every group that
 * subscribed to its topic has acknowledged it, as queues on an exchange do; dead letters are kept
 * for three days instead. A stream that is there already and holds the subject is used as it is.
 *
 * These functions ask the server and wait for its answer: for the link's thread only.
 */
#ifndef RIALTO_BUS_NATS_STREAM_H
#define RIALTO_BUS_NATS_STREAM_H

#include "base/buf.h"

#include <nats/nats.h>

/* The time a message may go without a sign of life until somebody else gets it. */
enum { NATS_ACK_WAIT_MS = 15000 };

struct nats_stream_wish {
    natsConnection *connection;
    jsCtx *js;
    const char *prefix;
    struct span subject;
};
/* NATS_OK and the stream's name, or another status and a reason in `out`. */
natsStatus nats_stream_ensure(const struct nats_stream_wish *w, struct buf *out);
/* A consumer of `stream` that the members of `group` share. Its name, or a reason, in `out`. */
natsStatus nats_consumer_ensure(jsCtx *js, const char *stream, const char *group,
                                const char *subject, bool ephemeral, struct buf *out);
/* Is there a JetStream at all? */
natsStatus nats_stream_check(jsCtx *js, struct buf *why);

#endif
