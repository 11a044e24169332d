/*
 * batch: the answers to a JSON-RPC batch. A peer that sends one array gets one array back.
 *
 * The messages of a batch are relayed one by one, because most peers refuse arrays; only the
 * answers wait here for each other. Every request of the batch that is not answered yet holds the
 * batch; the last holder to release the batch writes the array and frees the batch. All functions
 * take NULL for a message that came alone.
 */
#ifndef RIALTO_ACP_BATCH_H
#define RIALTO_ACP_BATCH_H

#include "base/buf.h"

struct batch;
struct hop;

/* The hop must outlive the batch. The caller holds the new batch once. */
struct batch *batch_new(struct hop *hop);
void batch_hold(struct batch *b);
void batch_release(struct batch *b);

/* Write one answer between these two calls. With batch NULL, the answer is sent to the hop as a
 * line of its own. */
struct buf *batch_begin(struct batch *b, struct hop *hop);
void batch_end(struct batch *b, struct hop *hop);

#endif
