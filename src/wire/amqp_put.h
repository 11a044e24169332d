/*
 * amqp_put: the methods and messages that an AMQP 0-9-1 client sends, appended to a buffer as
 * frames.
 *
 * Names are at most AMQP_WORD bytes. The caller checks that, except for a published message, which
 * amqp_put_publish checks.
 */
#ifndef RIALTO_WIRE_AMQP_PUT_H
#define RIALTO_WIRE_AMQP_PUT_H

#include "wire/amqp.h"

void amqp_put_protocol(struct buf *out);
void amqp_put_start_ok(struct buf *out, struct span user, struct span password);
void amqp_put_tune_ok(struct buf *out, uint16_t channel_max, uint32_t frame_max,
                      uint16_t heartbeat);
void amqp_put_open(struct buf *out, struct span vhost);
void amqp_put_close(struct buf *out, struct span why);
void amqp_put_close_ok(struct buf *out);
void amqp_put_beat(struct buf *out);

void amqp_put_channel_open(struct buf *out, uint16_t channel);
void amqp_put_channel_close(struct buf *out, uint16_t channel);
void amqp_put_channel_close_ok(struct buf *out, uint16_t channel);
void amqp_put_flow_ok(struct buf *out, uint16_t channel, bool active);
void amqp_put_confirm_select(struct buf *out, uint16_t channel);

struct amqp_argument { /* of a queue: a text, or a number when the text is absent */
    const char *key;
    struct span text;
    int64_t number;
};
/* Durable, of type topic. */
void amqp_put_exchange_declare(struct buf *out, uint16_t channel, struct span name);
/* Durable. `passive` only asks whether the queue exists; the other arguments are ignored then. */
void amqp_put_queue_declare(struct buf *out, uint16_t channel, struct span name, bool passive,
                            const struct amqp_argument *arguments, size_t n);
void amqp_put_queue_bind(struct buf *out, uint16_t channel, struct span queue, struct span exchange,
                         struct span key);
void amqp_put_queue_delete(struct buf *out, uint16_t channel, struct span queue, bool if_unused,
                           bool if_empty);
void amqp_put_qos(struct buf *out, uint16_t channel, uint16_t prefetch);
void amqp_put_consume(struct buf *out, uint16_t channel, struct span queue, struct span consumer);
void amqp_put_cancel(struct buf *out, uint16_t channel, struct span consumer);
void amqp_put_ack(struct buf *out, uint16_t channel, uint64_t tag);
void amqp_put_nack(struct buf *out, uint16_t channel, uint64_t tag, bool requeue);

struct amqp_message { /* to publish; texts, except of headers, have at most AMQP_WORD bytes */
    struct span exchange, routing_key;
    struct span content_type, correlation_id, reply_to, message_id,
        type; /* all written, even if empty */
    uint64_t timestamp;
    const struct amqp_header *headers;
    size_t n_headers;
    struct span body;
};
/* Publishes a persistent message. ERR_SIZE, and nothing is written, when a name or id is too long
 * or the properties do not fit a frame. */
MUST_CHECK int amqp_put_publish(struct buf *out, uint16_t channel, size_t frame_max,
                                const struct amqp_message *m);

#endif
