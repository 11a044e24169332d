/*
 * broker: the embedded bus itself, a router of messages inside this process.
 *
 * Members join it: the process's own engine (embedded.c) and every connection of the line server.
 * Each (group, pattern) has one queue; the subscriptions that name both take its messages in turn.
 * A published message gets into one queue of every group that has a matching pattern. A queue holds
 * messages that wait, that are delivered and not settled, and that wait for a retry; all of them
 * count against its limits. A message that does not fit into each of its queues is refused as a
 * whole (exceptions: may_be_put). A message that nobody subscribed to is dropped.
 *
 * BUS_RETRY brings a message back after 1 s, 2 s and 4 s, then it is dead; dead letters are kept in
 * a ring. The last McpServersIndexed for each server is kept and put into a queue for
 * tool.meta.mcp.* when the queue gets its first subscriber, so that it does not matter who starts
 * first.
 *
 * Deliveries come from the loop, never from inside a function of this header. Inside a delivery
 * every function here may be called except broker_free.
 */
#ifndef RIALTO_BUS_BROKER_H
#define RIALTO_BUS_BROKER_H

#include "bus/bus.h"

struct broker;
struct broker_member;
struct broker_sub;

struct broker_options {
    size_t queue_messages; /* 0 = 1024 */
    size_t queue_bytes;    /* 0 = 64 MiB */
    size_t total_bytes;    /* of all queues; 0 = 256 MiB */
    uint64_t durable_ms;   /* how long a durable queue waits for a subscriber; 0 = 60 s */
    uint64_t retry_ms;     /* before the first retry; 0 = 1 s */
};

struct broker_events {
    /* The spans are borrowed for the call. */
    void (*deliver)(void *owner, struct broker_sub *sub, uint64_t tag, bool redelivered,
                    struct span topic, const struct message *m);
    /* Can the member take more now? A member that is slow to read answers no, and calls
     * broker_member_ready later. */
    bool (*is_ready)(void *owner);
};

struct broker *broker_new(struct loop *loop, const struct broker_options *options);
/* All members must have left. */
void broker_free(struct broker *b);

struct broker_member *broker_join(struct broker *b, const struct broker_events *on, void *owner);
/* The member's unsettled messages go back to their groups. */
void broker_leave(struct broker_member *m);
void broker_member_ready(struct broker_member *m);

/* NULL when the bus has too many subscriptions. `data` is for the member. */
struct broker_sub *broker_subscribe(struct broker_member *m, const struct bus_subscription *s,
                                    void *data);
void *broker_sub_data(const struct broker_sub *sub);
void broker_unsubscribe(struct broker_sub *sub);
/* Unknown tags are ignored. */
void broker_settle(struct broker_member *m, uint64_t tag, enum bus_verdict verdict);
/* BUS_SENT or BUS_FULL. The message must have its id, source and time. */
enum bus_sent broker_publish(struct broker *b, struct span topic, const struct message *m);

/* --- dead letters --- */
struct dead_letter {
    uint64_t number; /* counts from 1 */
    uint64_t at_ms;  /* Unix time */
    const char *why;
    struct span topic, group;
    struct message message; /* valid until the next call of a function of the broker */
};
/* The oldest dead letter with a number above `after`; false when there is none. */
bool broker_dead_letter(const struct broker *b, uint64_t after, struct dead_letter *out);
/* Publishes the dead letter again, to the present subscribers of its topic, and removes it from the
 * ring. -ENOENT when none has this number, -EAGAIN when a queue is full. */
MUST_CHECK int broker_resend(struct broker *b, uint64_t number);

/* --- for operators --- */
struct broker_queue {
    struct span group, pattern;
    size_t messages, bytes; /* that wait or are not settled */
    size_t subscribers;
};
/* `changed` is called from inside the broker when the queues or the dead letters have changed; NULL
 * = nobody is told. */
void broker_watch(struct broker *b, void (*changed)(void *arg), void *arg);
/* In no particular order: start with *at = 0; false at the end. */
bool broker_next_queue(const struct broker *b, size_t *at, struct broker_queue *out);

#endif
