/*
 * engine: what a message bus must implement to be used through bus.h.
 *
 * An engine is a row in the table of URL schemes (bus.c) and a file of its own. It connects when it
 * is told to and reports what happens; bus.c remembers subscriptions and unconfirmed messages, and
 * decides when to connect again. All reports come from the loop, none from inside an op, except
 * engine_sent, which `publish` may call directly.
 */
#ifndef RIALTO_BUS_ENGINE_H
#define RIALTO_BUS_ENGINE_H

#include "bus/bus.h"
#include "io/loop.h"

struct engine_sub { /* a subscription as an engine sees it */
    const char *topic;
    const char *group;
    unsigned prefetch;
    bool ephemeral, lossy;
    uint64_t id; /* unique in the bus, never used again */
    void *data;  /* the engine's own, NULL at first; freed by the engine in unsubscribe, when the
                    connection is lost, and in close */
};

struct engine_ops {
    const char *name; /* "RabbitMQ" */
    bool in_memory;   /* see bus_is_in_memory */
    /* Does not connect yet. NULL with a reason when the options make no sense. */
    void *(*open)(struct bus *b, struct loop *loop, const struct bus_options *options,
                  struct err *err);
    /* Begin to connect; ends in engine_up or engine_lost. Called again after each engine_lost, when
     * bus.c decides to. */
    void (*connect)(void *engine);
    /* Ends in engine_closed, which is the last report, whatever state the engine was in. */
    void (*close)(void *engine);
    void (*describe)(const void *engine, struct buf *out);
    size_t (*max_body)(const void *engine);
    struct broker *(*broker)(const void *engine); /* bus_broker; NULL = it never hosts one */

    /* The rest is called only while up. */
    const char *(*stall)(const void *engine); /* bus_stall; NULL = it never stalls */
    void (*subscribe)(void *engine, struct engine_sub *sub);
    void (*unsubscribe)(void *engine, struct engine_sub *sub);
    /* Ends in engine_sent with this `number` unless the connection is lost before. */
    void (*publish)(void *engine, uint64_t number, struct span topic, const struct message *m);
    void (*settle)(void *engine, struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict);
};

extern const struct engine_ops embedded_engine; /* embedded: and unix:, hosting or joining */
extern const struct engine_ops line_engine;     /* tcp:, joining a bus hosted elsewhere */
extern const struct engine_ops amqp_engine;
extern const struct engine_ops nats_engine;

/* --- reports, implemented in bus.c --- */
/* Makes the subscriptions and sends the outbox before it returns. */
void engine_up(struct bus *b);
/* The connection, or the attempt to connect, has ended. The engine must have forgotten all of its
 * tags and numbers. */
void engine_lost(struct bus *b, const char *why);
void engine_closed(struct bus *b);
void engine_sent(struct bus *b, uint64_t number, enum bus_sent how);
/* The messages of these numbers (uint64_t each) were not sent, or did not arrive. Empties
 * `numbers`, then publishes those messages again that are still in the outbox. */
void engine_again(struct bus *b, struct buf *numbers);
/* The message's spans are borrowed for the call; the tag is below 2^48. */
void engine_deliver(struct bus *b, struct engine_sub *sub, uint64_t tag, bool redelivered,
                    struct span topic, const struct message *m);

#endif
