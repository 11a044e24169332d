/*
 * nats_inside: what the files of the NATS engine share.
 *
 * nats_link.c is the connection: which server, TLS, logging in, pings, the end. nats.c is the
 * engine: publishing, and learning that what was published has arrived. nats_sub.c is what comes
 * in: subscriptions, and messages that are handed over and wait to be settled. nats_request.c finds
 * and makes JetStream's streams and consumers. nats_words.c and nats_message.c translate,
 * nats_login.c signs.
 *
 * Nouns: nats_. Files: nats, nats_link, nats_login, nats_message, nats_request, nats_sub,
 * nats_words.
 */
#ifndef RIALTO_BUS_NATS_INSIDE_H
#define RIALTO_BUS_NATS_INSIDE_H

#include "base/id.h"
#include "base/map.h"
#include "bus/engine.h"
#include "bus/nats_request.h"
#include "bus/nats_words.h"
#include "io/stream.h"
#include "io/tls.h"
#include "wire/nats.h"

enum {
    NATS_TICK_MS = 12500,
    NATS_MAX_TOLD = 48,   /* servers of the cluster that other servers announced */
    NATS_ANSWERS_SID = 1, /* the subscription to our inbox */
};

enum nats_state {
    NATS_DOWN,
    NATS_REACHING,  /* TCP */
    NATS_GREETING,  /* the server's INFO is awaited */
    NATS_LOGIN,     /* CONNECT is sent */
    NATS_PREPARING, /* asking whether there is a JetStream */
    NATS_UP,
    NATS_LEAVING, /* a last PING is sent */
};

struct nats_place { /* a server of the cluster */
    char *target;   /* HOST:PORT */
    char *name;     /* the host name that its certificate must have */
};

/* --- the connection (nats_link.c) --- */
struct nats_link {
    enum nats_state state;
    struct connect *connecting;
    struct stream *stream;
    struct nats_reader reader;
    struct tls_context *tls;                                    /* NULL until TLS is needed */
    struct nats_place places[NATS_MAX_SERVERS + NATS_MAX_TOLD]; /* the configured ones first */
    size_t n_own, n_places;
    size_t at;             /* the server that is used, or was used last */
    size_t tries;          /* servers still to be tried before the failure is reported */
    struct timer deadline; /* of the handshake, and of saying goodbye */
    char *complaint;       /* the server's last -ERR */
    char *lost_why;        /* to be reported */
    bool ended;            /* engine_closed is to be reported */
    struct deferred later; /* reports that must not come from inside an op */
    unsigned pings;        /* not answered yet */
    unsigned silent;       /* ticks since the server sent anything */
    bool moving;           /* the server shuts down: reconnect once it has sent all it had */
};

struct nats_client {
    struct bus *bus;
    struct loop *loop;
    const struct bus_options *options;
    struct nats_address address;
    char inbox[sizeof "_INBOX." + ID_TOKEN_SIZE];
    size_t max_payload; /* of the server; 0 = not known yet */
    struct nats_link link;
    struct timer tick;
    uint64_t last_id; /* of legs (one NATS subscription each) and of requests */

    /* publishing (nats.c) */
    struct buf headers; /* of the message that is being written */
    struct list unsure; /* of struct nats_unsure: sent, but perhaps not arrived */
    uint64_t last_unsure, asked_upto;
    struct list unstored;   /* of struct nats_unstored, the oldest first */
    struct idmap by_number; /* the same */
    struct timer late;      /* publishes them again */
    struct timer ask;       /* sends the PING that asks about `unsure` */
    uint64_t fresh_until;   /* see is_fresh */
    bool was_up;
    struct buf parked;  /* numbers of messages that cannot be sent yet, and stay in the outbox */
    struct timer again; /* publishes the parked messages */
    struct map roots;   /* JetStream: of struct nats_root, streams for what we publish */
    size_t holds;

    /* subscriptions (nats_sub.c) */
    struct list subs;   /* of struct nats_sub */
    struct idmap legs;  /* struct nats_leg by id */
    struct idmap items; /* handed over and not settled, by tag */
    uint64_t last_tag;
    struct timer progress;     /* set while JetStream waits for an item: says that we work on it */
    struct nats_item *current; /* being handed over: not freed before that ends */
    struct deferred work;      /* hands over items when there is room again */
    uint64_t warned, dropped;  /* when a dead letter and when lost messages were last logged */

    struct idmap requests; /* nats_request.c */
};

/* --- nats_link.c --- */
int nats_link_init(struct nats_client *e, struct err *err) MUST_CHECK;
void nats_link_fini(struct nats_client *e);
/* Tries one server after the other, until one accepts us (nats_up) or none is left
 * (engine_lost). */
void nats_link_connect(struct nats_client *e);
/* Ends in engine_closed. */
void nats_link_leave(struct nats_client *e);
bool nats_link_is_open(const struct nats_client *e);
/* Where to append what is to be sent; call nats_link_wrote afterwards. Only while the link is
 * open. */
struct buf *nats_link_out(struct nats_client *e);
void nats_link_wrote(struct nats_client *e);
/* Publishes a short text; `reply` may be empty. Does nothing when there is no connection. */
void nats_link_say(struct nats_client *e, struct span subject, struct span reply,
                   const char *words);
/* nats_pong is called when the server has handled all that was sent before. */
void nats_link_ping(struct nats_client *e);
/* Called every NATS_TICK_MS while up: checks that the server is still there. */
void nats_link_tick(struct nats_client *e);

/* --- nats.c: what the connection reports --- */
void nats_up(struct nats_client *e);
/* Forgets everything that belongs to the connection. */
void nats_down(struct nats_client *e);
void nats_pong(struct nats_client *e);
void nats_answer(struct nats_client *e, const struct nats_op *op);
void nats_free(struct nats_client *e);

/* --- nats.c: publishing --- */
/* JetStream: a new consumer gets only what is published after it was made. Publishes wait until it
 * is made or has failed, so that a caller who subscribes and then asks does not miss the answer. */
void nats_hold(struct nats_client *e);
void nats_release(struct nats_client *e);
/* nats_sub_is_sure is called when the server has handled all that was sent so far. */
void nats_make_sure(struct nats_client *e, uint64_t leg);

/* --- nats_sub.c --- */
void nats_subs_drop(struct nats_client *e);
void nats_subs_tick(struct nats_client *e);
/* Unsubscribes at the server and keeps the connection. */
void nats_subs_mute(struct nats_client *e);
void nats_sub_open(void *engine, struct engine_sub *sub);
/* Unsettled messages go back to the group where NATS can do that (JetStream). */
void nats_sub_close(void *engine, struct engine_sub *sub);
void nats_sub_settle(void *engine, struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict);
void nats_sub_message(struct nats_client *e, const struct nats_op *op);
void nats_sub_is_sure(struct nats_client *e, uint64_t leg);

#endif
