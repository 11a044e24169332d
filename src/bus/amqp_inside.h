/*
 * amqp_inside: what the files of the RabbitMQ engine share.
 *
 * amqp.c is the connection: handshake, heartbeats, publishing with confirms, the end.
 * amqp_channel.c is a subscription: one channel that declares RockBot's queues, consumes, and comes
 * back when the broker ends it. amqp_words.c reads URLs and turns messages into properties and
 * headers.
 *
 * Nouns: amqp_. Files: amqp, amqp_channel, amqp_words.
 */
#ifndef RIALTO_BUS_AMQP_INSIDE_H
#define RIALTO_BUS_AMQP_INSIDE_H

#include "base/id.h"
#include "bus/engine.h"
#include "io/stream.h"
#include "io/tls.h"
#include "wire/amqp_put.h"

/* --- words --- */
struct amqp_address {
    char *user, *password, *vhost;
    char *host;   /* as the certificate must name it */
    char *target; /* HOST:PORT to connect to */
    bool tls;
    uint16_t heartbeat; /* s */
};
/* Adds the password to the log's list of secrets. */
MUST_CHECK int amqp_address_parse(struct amqp_address *a, const char *url, struct err *err);
void amqp_address_fini(struct amqp_address *a);

/* Append a publish. ERR_SIZE when its properties do not fit. */
MUST_CHECK int amqp_write_message(struct buf *out, uint16_t channel, size_t frame_max,
                                  struct span exchange, struct span topic, const struct message *m);
/* `payload` is that of the HEADER frame; a message without an id gets one, stored in `made_id`. */
MUST_CHECK int amqp_take_message(struct span payload, struct message *m,
                                 char made_id[ID_TOKEN_SIZE]);

/* --- connection --- */
struct amqp_channel;

enum amqp_state {
    AMQP_DOWN,
    AMQP_REACHING,  /* TCP, TLS */
    AMQP_GREETING,  /* the protocol header is sent */
    AMQP_LOGIN,     /* user and password are sent */
    AMQP_ENTERING,  /* the virtual host is asked for */
    AMQP_PREPARING, /* the publishing channel is being made */
    AMQP_UP,
    AMQP_LEAVING, /* subscriptions are being ended */
    AMQP_BYE,     /* close is sent */
};

/* Messages published and not confirmed: a ring of bus.c's numbers; 0 = confirmed before an older
 * one. */
struct amqp_confirms {
    uint64_t *numbers;
    size_t cap, head, n;
    uint64_t first; /* the broker's number of the first message */
};

struct amqp_connection {
    struct bus *bus;
    struct loop *loop;
    const struct bus_options *options;
    struct amqp_address address;
    char *exchange, *dlx;
    struct tls_context *tls; /* NULL = none */

    enum amqp_state state;
    struct connect *connecting;
    struct stream *stream;
    struct amqp_reader reader;
    size_t frame_max;
    struct timer deadline; /* of the handshake, and of saying goodbye */
    struct timer beat;
    uint64_t beat_ms;      /* half the agreed heartbeat */
    unsigned silent_beats; /* beats since the broker sent anything */

    struct amqp_channel **channels; /* by number */
    size_t n_channels, channel_max;
    struct amqp_confirms confirms;
    size_t max_body; /* lowered when the broker names its limit */
    struct buf held; /* numbers of publishes that wait: see `blocked` and `starting` */
    char *blocked;   /* why the broker takes no messages, NULL = it does */
    size_t starting; /* subscriptions being made: publishes wait, or answers could be missed */

    struct deferred later; /* reports that must not come from inside an op */
    char *lost_why;        /* to be reported */
    bool ended;            /* engine_closed is to be reported */
};

/* Where to append what is to be sent now; call amqp_wrote afterwards. */
struct buf *amqp_out(struct amqp_connection *e);
void amqp_wrote(struct amqp_connection *e);
/* Drops the connection as unusable. bus.c is told at the end of the turn. */
void amqp_lose(struct amqp_connection *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* --- channels --- */
void amqp_channel_start(struct amqp_connection *e, struct engine_sub *sub);
void amqp_channel_end(struct engine_sub *sub);
void amqp_channel_settle(struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict);
void amqp_channel_frame(struct amqp_channel *ch, const struct amqp_frame *f);
/* Frees the channel after the connection is lost. */
void amqp_channel_drop(struct amqp_channel *ch);
/* In amqp.c: a subscription is ready, or has failed and is tried again later. */
void amqp_channel_settled(struct amqp_connection *e);
/* In amqp.c: the last channel is closed. */
void amqp_channels_gone(struct amqp_connection *e);

#endif
