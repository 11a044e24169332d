/*
 * batch: the answers to a JSON-RPC batch. Who sends one array is answered with one array.
 *
 * The messages of a batch are relayed one by one, because most peers refuse arrays; only their
 * answers wait here for each other. Everybody who may still answer one of them holds the batch;
 * the last to let go writes the array and frees it. All functions take NULL for a message that
 * came alone.
 */
#ifndef RIALTO_ACP_BATCH_H
#define RIALTO_ACP_BATCH_H

#include "base/buf.h"

struct batch;
struct hop;

/* Of a hop that outlives it; held once, by the caller. */
struct batch *batch_new(struct hop *hop);
void batch_hold(struct batch *b);
void batch_release(struct batch *b);

/* Append one answer between these two; without a batch it is a line of its own to the hop. */
struct buf *batch_begin(struct batch *b, struct hop *hop);
void batch_end(struct batch *b, struct hop *hop);

#endif
