/*
 * nats_message: a message of the bus as NATS carries it.
 *
 * The body is the payload; everything else is a header, envelope headers under their own keys and
 * the fields as rb-message-id, rb-message-type, rb-correlation-id, rb-reply-to, rb-source,
 * rb-destination and rb-timestamp (milliseconds of Unix time).
 */
#ifndef RIALTO_BUS_NATS_MESSAGE_H
#define RIALTO_BUS_NATS_MESSAGE_H

#include "bus/message.h"

#include <nats/nats.h>

/* `once`: when not NULL, JetStream keeps only the first message with this text. */
natsMsg *nats_message_new(const char *subject, const char *reply, const struct message *m,
                          const char *once);
/*
 * `m` points into `msg` and `scratch`. What is missing is filled in as RockBot's reader does.
 * Negative when a field is longer than one may be.
 */
MUST_CHECK int nats_message_read(struct message *m, natsMsg *msg, struct buf *scratch,
                                 struct err *err);

#endif
