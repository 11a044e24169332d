/*
 * nats_request: JetStream's streams and consumers, found or made by requests to the server.
 *
 * A request belongs to the connection it was made on: it is granted, refused (also when no answer
 * comes in time), or dropped with the connection. `done` is called by nats_request_answer and by a
 * timer, never from inside the other functions.
 */
#ifndef RIALTO_BUS_NATS_REQUEST_H
#define RIALTO_BUS_NATS_REQUEST_H

#include "wire/nats.h"

struct nats_client;
struct nats_request;
/* `text`: what was asked for (the stream, or where to ask the consumer for messages), or why not.
 * The request is gone when this is called. */
typedef void nats_request_fn(struct nats_client *e, void *owner, bool granted, const char *text);
/* Asks whether there is a JetStream at all. */
void nats_request_jetstream(struct nats_client *e, nats_request_fn *done, void *owner);
/* Asks for a stream that takes this subject: any that exists, else one that we make. With a group,
 * also for a consumer of that stream, which the members of the group share. */
struct nats_request *nats_request_stream(struct nats_client *e, const char *subject,
                                         const char *group, bool ephemeral, nats_request_fn *done,
                                         void *owner);
/* `done` is not called any more. */
void nats_request_drop(struct nats_request *r);
void nats_requests_drop(struct nats_client *e);
void nats_request_answer(struct nats_client *e, uint64_t id, const struct nats_op *op);

#endif
