/*
 * amqp: AMQP 0-9-1 from the client's side, without I/O; this half reads, amqp_put.h writes.
 *
 * The reader is fed bytes and gives frames; a frame that lies whole in a chunk is not copied. Data
 * that a broker passes on from other clients (properties, with nested tables) is checked as a whole
 * before any of it is used.
 *
 * Everything read from a frame is valid until the callback that got the frame returns.
 *
 * Nouns: amqp_reader_, amqp_read_.
 */
#ifndef RIALTO_WIRE_AMQP_H
#define RIALTO_WIRE_AMQP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdint.h>

enum {
    AMQP_MIN_FRAME = 4096, /* every peer must accept frames of this size */
    AMQP_WORD = 255,       /* the longest name, key or id */
    AMQP_HEADERS = 64,     /* text headers of a message that are read; others are ignored */
    AMQP_DEPTH = 16,       /* of nested tables */
};

enum amqp_kind { AMQP_METHOD = 1, AMQP_HEADER = 2, AMQP_BODY = 3, AMQP_BEAT = 8 };

struct amqp_frame {
    enum amqp_kind kind;
    uint16_t channel;
    struct span payload;
};

struct amqp_reader {
    struct buf partial;
    size_t frame_max;
    bool stopped;
};

typedef void amqp_frame_fn(void *owner, const struct amqp_frame *f);

void amqp_reader_init(struct amqp_reader *r);
void amqp_reader_fini(struct amqp_reader *r);
/* 0, ERR_PROTOCOL or ERR_SIZE. The callback may stop the reader and change frame_max. */
MUST_CHECK int amqp_reader_feed(struct amqp_reader *r, struct span chunk, amqp_frame_fn *on_frame,
                                void *owner);
/* No more frames come. */
void amqp_reader_stop(struct amqp_reader *r);

enum amqp_method_id {             /* methods that a server sends to a client */
                      AMQP_OTHER, /* a method that we do not handle */
                      AMQP_START,
                      AMQP_TUNE,
                      AMQP_OPEN_OK,
                      AMQP_CLOSE,
                      AMQP_CLOSE_OK,
                      AMQP_BLOCKED,
                      AMQP_UNBLOCKED,
                      AMQP_CHANNEL_OPEN_OK,
                      AMQP_CHANNEL_FLOW,
                      AMQP_CHANNEL_CLOSE,
                      AMQP_CHANNEL_CLOSE_OK,
                      AMQP_EXCHANGE_DECLARE_OK,
                      AMQP_QUEUE_DECLARE_OK,
                      AMQP_QUEUE_BIND_OK,
                      AMQP_QUEUE_DELETE_OK,
                      AMQP_QOS_OK,
                      AMQP_CONSUME_OK,
                      AMQP_CANCEL, /* the server ended a consumer */
                      AMQP_CANCEL_OK,
                      AMQP_DELIVER,
                      AMQP_ACK,
                      AMQP_NACK,
                      AMQP_CONFIRM_OK,
};

struct amqp_method { /* which members count depends on `id` */
    enum amqp_method_id id;
    uint64_t tag;            /* DELIVER, ACK, NACK */
    bool multiple;           /* ACK, NACK: all up to `tag` */
    bool redelivered;        /* DELIVER */
    bool active;             /* CHANNEL_FLOW */
    struct span routing_key; /* DELIVER */
    uint16_t code;           /* CLOSE, CHANNEL_CLOSE */
    struct span text;        /* CLOSE, CHANNEL_CLOSE, BLOCKED: why; START: mechanisms */
    uint32_t messages;       /* QUEUE_DECLARE_OK, QUEUE_DELETE_OK */
    uint16_t channel_max, heartbeat;
    uint32_t frame_max; /* TUNE */
};

/* 0, or ERR_PROTOCOL when the payload of a METHOD frame is no method. */
MUST_CHECK int amqp_read_method(struct span payload, struct amqp_method *m);

struct amqp_header {
    struct span key, value;
};

struct amqp_properties { /* of a message; empty or 0 = absent */
    struct span content_type, correlation_id, reply_to, message_id, type;
    uint64_t timestamp; /* seconds */
    struct amqp_header headers[AMQP_HEADERS];
    size_t n_headers;
};

/* The size of the body that follows a HEADER frame. ERR_PROTOCOL when the frame is too short or
 * its class is not basic. */
MUST_CHECK int amqp_read_body_size(struct span payload, uint64_t *size);
/* Headers that are not texts are left out. ERR_PROTOCOL or ERR_DEPTH when the properties are
 * malformed or nested too deep. */
MUST_CHECK int amqp_read_properties(struct span payload, struct amqp_properties *p);

#endif
