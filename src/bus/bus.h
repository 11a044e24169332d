/*
 * bus: a member of a message bus, whichever engine runs the bus.
 *
 * Publish to topics, subscribe to topic patterns (`.` between segments, `*` is one, `#` any number
 * of them). Subscriptions with the same group share their messages, each message going to one of
 * them; different groups get a copy each. A delivered message stays ours until it is settled.
 *
 * What this module does for every engine: it reconnects (with growing waits and jitter; the table
 * in bus.c has the times), makes the subscriptions again, and keeps what is published in an outbox
 * until the engine confirms it; after a reconnect the rest of the outbox is sent again with the
 * same message ids. So a message arrives at least once within its deadline; a receiver that must
 * not act twice remembers ids.
 *
 * No callback is called from inside bus_open, bus_publish, bus_subscribe or bus_close: all are
 * called from the loop. Inside a callback every function here may be called.
 *
 * Nouns: bus_, engine_.
 */
#ifndef RIALTO_BUS_BUS_H
#define RIALTO_BUS_BUS_H

#include "bus/message.h"
#include "io/loop.h"

struct bus;
struct bus_sub;

struct bus_options {
    const char *url;         /* embedded:, unix:PATH, tcp://, amqp(s)://, nats://, tls:// */
    const char *name;        /* who we are: the source of messages that name none */
    const char *token;       /* of an embedded bus that listens on TCP; NULL = none */
    const char *listen;      /* embedded: also listen on this loopback TCP address; NULL = no */
    bool join_only;          /* embedded: never host it, only join one that runs */
    uint64_t keep_ms;        /* embedded: how long a queue waits for a subscriber; 0 = 60 s */
    const char *exchange;    /* RabbitMQ: "rockbot" when NULL; its dead letters go to NAME.dlx */
    const char *prefix;      /* NATS: before every subject; NULL = none */
    bool jetstream;          /* NATS: keep messages until they are acknowledged */
    const char *credentials; /* NATS: file with the key of a user, and a JWT; NULL = none */
    const char *ca;          /* TLS: file with the authorities to trust; NULL = the system's */
    size_t max_message;      /* bytes; 0 = 16 MiB */
    size_t max_outbox;       /* bytes of unconfirmed messages; 0 = 64 MiB */
};

struct bus_events {
    void (*up)(void *owner);                    /* connected, subscriptions are being made */
    void (*down)(void *owner, const char *why); /* the bus reconnects by itself */
    void (*closed)(void *owner);                /* after bus_close; the bus is gone on return */
};

/* `options` and its texts must outlive the bus. NULL when the URL is invalid or an embedded bus
 * cannot be hosted. A server that cannot be reached is no error: `down` reports it. */
struct bus *bus_open(struct loop *loop, const struct bus_options *options,
                     const struct bus_events *on, void *owner, struct err *err);
/* Leaves: unsettled messages go back to their groups, unconfirmed ones end with BUS_CLOSED. */
void bus_close(struct bus *b);
bool bus_is_up(const struct bus *b);
/* True when the host of the bus keeps messages in memory only: what was sent is lost when it
 * ends. */
bool bus_is_in_memory(const struct bus *b);
/* The broker of an embedded bus that this program hosts; NULL for any other. */
struct broker;
struct broker *bus_broker(const struct bus *b);
/* "RabbitMQ at 127.0.0.1:5672": for logs and status; never with a password. */
const char *bus_describe(const struct bus *b);
/* Why nothing is sent although the bus is up: "RabbitMQ accepts no messages: low on disk". NULL
 * when messages are sent. */
const char *bus_stall(const struct bus *b);
/* The largest body that may be published now. */
size_t bus_max_body(const struct bus *b);

/* --- publishing --- */
enum bus_sent {
    BUS_SENT,      /* the engine has it (RabbitMQ: confirmed) */
    BUS_TOO_LARGE, /* refused, larger than the engine takes */
    BUS_FULL,      /* refused, the outbox or a subscriber's queue is full */
    BUS_EXPIRED,   /* not confirmed within the deadline: it may or may not have arrived */
    BUS_CLOSED,    /* the bus was closed first */
};
const char *bus_sent_name(enum bus_sent s);

typedef void bus_sent_fn(void *owner, enum bus_sent how);

/* `done` is called exactly once, later, from the loop; may be NULL. `wait_ms`: how long the message
 * is worth sending; 0 = until the bus is closed. An invalid topic (wildcards, blanks, too long) has
 * no subscribers: the message is dropped, and the log says so. */
void bus_publish(struct bus *b, struct span topic, const struct message *m, uint64_t wait_ms,
                 bus_sent_fn *done, void *owner);

/* --- subscribing --- */
enum bus_verdict {
    BUS_ACK,   /* done with it */
    BUS_RETRY, /* somebody should get it again, later */
    BUS_DEAD,  /* nobody can use it: to the dead letters */
};

struct bus_delivery {
    struct bus_sub *sub;
    uint64_t tag; /* identifies the delivery for bus_settle */
    bool redelivered;
    struct span topic;
    const struct message *message;
};

typedef void bus_deliver_fn(void *owner, const struct bus_delivery *d);

struct bus_subscription {
    const char *topic; /* pattern */
    const char *group; /* RabbitMQ: queue rockbot.GROUP; NATS: queue group */
    unsigned prefetch; /* unsettled messages at a time; 0 = 10 */
    bool ephemeral;    /* the group's queue goes away with its last subscriber */
    bool lossy;        /* for onlookers: a slow one misses messages, publishers are not refused */
};

/*
 * Texts are copied. What is published after this call is sent only once the subscription is made
 * (also after a reconnect): a caller that subscribes to a reply topic and then publishes a request
 * cannot miss the reply.
 */
struct bus_sub *bus_subscribe(struct bus *b, const struct bus_subscription *s,
                              bus_deliver_fn *deliver, void *owner);
/* No more deliveries after this returns; unsettled ones go back to the group. */
void bus_unsubscribe(struct bus_sub *sub);
/* Once for each delivery, in any order, now or later. A tag of a connection that is gone, or of an
 * unknown delivery, is ignored: the message is delivered again anyway. */
void bus_settle(struct bus_sub *sub, uint64_t tag, enum bus_verdict verdict);

#endif
