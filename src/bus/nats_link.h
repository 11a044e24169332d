/*
 * nats_link: the connection to NATS, as far as it takes threads.
 *
 * Where libnats can be called without waiting (to publish, to subscribe, to read and write a socket
 * that is ready) the loop calls it itself. To connect, to ask JetStream for streams and consumers
 * and to close it blocks: that is done by a thread of ours, which carries out *orders* of the loop
 * one after the other. That thread and libnats' own send *news* to the loop's mailbox; they touch
 * nothing else of ours.
 *
 * libnats holds a lock while it reconnects. So the loop may call it only while the connection
 * `is_live`, which ends at the moment an error is found, and gives other things to the thread.
 */
#ifndef RIALTO_BUS_NATS_LINK_H
#define RIALTO_BUS_NATS_LINK_H

#include "bus/nats_words.h"
#include "io/mailbox.h"

#include <nats/nats.h>

struct nats_link;

struct nats_link_options {
    const struct nats_address *address;
    const char *name;   /* what the server calls us in its lists; NULL = none */
    const char *prefix; /* of subjects; NULL = none */
    const char *ca;
    bool jetstream;
};

enum nats_news_kind {
    NATS_ATTACHED, /* there is a socket: connection, fd. From now on the loop reads and writes it */
    NATS_POKED,    /* there is something to be written */
    NATS_LEAVING,  /* the connection is about to be closed: let go of it (nats_link_let_go) */
    NATS_UP,       /* connected, or again; max_payload */
    NATS_DOWN,     /* the connection is gone, libnats makes another; text */
    NATS_LOST,     /* nothing will happen by itself; text */
    NATS_STREAM,   /* what became of nats_link_find_stream: id, ok, text = a reason if not */
    NATS_CONSUMER, /* and of nats_link_find_consumer: id, ok, text = where to ask for messages */
    NATS_NOTE,     /* to be logged; text */
    NATS_GONE,     /* the thread is through, nothing follows */
};

struct nats_news {
    struct mail mail;
    enum nats_news_kind kind;
    natsConnection *connection;
    int fd;
    size_t max_payload;
    uint64_t id;
    bool ok;
    char *text;
};
void nats_news_free(struct nats_news *n);

/* `box` gets the news. To be called, as all below, from the loop. */
struct nats_link *nats_link_new(const struct nats_link_options *o, struct mailbox *box);
/* After NATS_GONE only: waits for the thread's last steps. Nothing is posted from here on. */
void nats_link_join(struct nats_link *l);
/* Joined, and with nothing of libnats left anywhere. */
void nats_link_free(struct nats_link *l);

bool nats_link_is_live(const struct nats_link *l);
/* How many sockets there were so far: what was sent on an earlier one may not have arrived. */
uint64_t nats_link_sockets(const struct nats_link *l);
/* Has libnats bytes to be written? */
bool nats_link_wants_write(const struct nats_link *l);

/* --- orders --- */
/* Ends in NATS_UP or NATS_LOST, an earlier connection being left first. */
void nats_link_connect(struct nats_link *l);
/* Sees to it that a stream takes this subject. */
void nats_link_find_stream(struct nats_link *l, uint64_t id, const char *subject);
/* And that it has a consumer for the group. */
void nats_link_find_consumer(struct nats_link *l, uint64_t id, const char *subject,
                             const char *group, bool ephemeral);
/* The end of a subscription. */
void nats_link_drop(struct nats_link *l, natsSubscription *sub);
/* The answer to NATS_LEAVING: the loop does not use the connection any more. */
void nats_link_let_go(struct nats_link *l);
/* Carries out what was ordered, then ends in NATS_GONE. */
void nats_link_stop(struct nats_link *l);

#endif
