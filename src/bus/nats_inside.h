/*
 * nats_inside: what the files of the NATS engine share.
 *
 * nats_link.c is the connection: which server, TLS, logging in, pings, the end. nats.c is the
 * engine: publishing, and learning that what was published has arrived. nats_sub.c is what comes
 * in: subscriptions, and messages that are handed over and wait to be settled. nats_wish.c finds
 * and makes JetStream's streams and consumers. nats_words.c and nats_message.c translate,
 * nats_login.c signs.
 *
 * Nouns: nats_. Files: nats, nats_link, nats_login, nats_message, nats_sub, nats_wish, nats_words.
 */
#ifndef RIALTO_BUS_NATS_INSIDE_H
#define RIALTO_BUS_NATS_INSIDE_H

#include "base/id.h"
#include "base/map.h"
#include "bus/engine.h"
#include "bus/nats_wish.h"
#include "bus/nats_words.h"
#include "io/stream.h"
#include "io/tls.h"
#include "wire/nats.h"

enum {
    NATS_TICK_MS = 5000,
    NATS_MAX_TOLD = 48,   /* servers of the cluster that another one told us of */
    NATS_ANSWERS_SID = 1, /* the subscription to our inbox */
};

enum nats_state {
    NATS_DOWN,
    NATS_REACHING,  /* TCP */
    NATS_GREETING,  /* the server's INFO is awaited */
    NATS_LOGIN,     /* CONNECT is sent */
    NATS_PREPARING, /* is there a JetStream? */
    NATS_UP,
    NATS_LEAVING, /* a last PING is sent */
};

struct nats_place { /* a server of the cluster */
    char *target;   /* HOST:PORT */
    char *name;     /* as its certificate must have it */
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
    size_t at;             /* the one that is used, or was last */
    size_t tries;          /* servers that are still to be tried before bus.c hears of a failure */
    struct timer deadline; /* of the handshake, and of saying goodbye */
    char *complaint;       /* the server's last -ERR */
    char *lost_why;        /* to be reported */
    bool ended;            /* engine_closed is to be reported */
    struct deferred later; /* reports that must not come from inside an op */
    unsigned pings;        /* that are not answered yet */
    unsigned silent;       /* ticks since anything came */
    bool moving;           /* this server shuts down: to another one once it has sent all it had */
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
    uint64_t last_id; /* of legs, which are subscriptions to the server, and of wishes */

    /* publishing (nats.c) */
    struct buf headers; /* of the message that is being written */
    struct list unsure; /* of struct nats_unsure: sent, and has it arrived? */
    uint64_t last_unsure, asked_upto;
    struct timer ask;     /* whether what is unsure has arrived */
    uint64_t fresh_until; /* see is_fresh */
    bool was_up;
    struct buf parked;  /* numbers of messages that cannot be sent yet, and stay in the outbox */
    struct timer again; /* publishes them */
    struct map roots;   /* JetStream: of struct nats_root, streams for what we publish */
    size_t holds;

    /* subscriptions (nats_sub.c) */
    struct list subs;   /* of struct nats_sub */
    struct idmap legs;  /* their subjects, by id */
    struct idmap items; /* handed over and not settled, by tag */
    uint64_t last_tag;
    struct nats_item *current; /* being handed over: must outlive that */
    struct deferred work;      /* hands over what there is room for again */
    uint64_t warned, dropped;  /* when the log was told of a dead letter, of lost messages */

    struct idmap wishes; /* nats_wish.c */
};

/* --- nats_link.c --- */
int nats_link_init(struct nats_client *e, struct err *err) MUST_CHECK;
void nats_link_fini(struct nats_client *e);
/* One server after the other, until one lets us in (nats_up) or none is left (engine_lost). */
void nats_link_connect(struct nats_client *e);
/* Ends in engine_closed. */
void nats_link_leave(struct nats_client *e);
bool nats_link_is_open(const struct nats_client *e);
/* Where to append what is to be sent; call nats_link_wrote afterwards. Only while it is open. */
struct buf *nats_link_out(struct nats_client *e);
void nats_link_wrote(struct nats_client *e);
/* A few words; `reply` may be empty. Nothing happens when there is no connection. */
void nats_link_say(struct nats_client *e, struct span subject, struct span reply,
                   const char *words);
/* nats_pong is called when the server has handled all that was sent before. */
void nats_link_ping(struct nats_client *e);
/* Every NATS_TICK_MS while it is up: is anybody there? */
void nats_link_tick(struct nats_client *e);

/* --- nats.c: what the connection reports --- */
void nats_up(struct nats_client *e);
/* Nothing of the connection may be left. */
void nats_down(struct nats_client *e);
void nats_pong(struct nats_client *e);
void nats_answer(struct nats_client *e, const struct nats_op *op);
void nats_free(struct nats_client *e);

/* --- nats.c: publishing --- */
/* JetStream: a consumer is on its way, and gets only what is published once it is there: who
 * subscribes and then asks must not miss the answer. Publishes wait until it is, or has failed. */
void nats_hold(struct nats_client *e);
void nats_release(struct nats_client *e);
/* nats_sub_is_sure is called when what was sent by now has arrived. */
void nats_make_sure(struct nats_client *e, uint64_t leg);

/* --- nats_sub.c --- */
void nats_subs_drop(struct nats_client *e);
void nats_subs_tick(struct nats_client *e);
/* The server is to send no more, and keeps the connection. */
void nats_subs_mute(struct nats_client *e);
void nats_sub_open(void *engine, struct engine_sub *sub);
/* What is unsettled goes back to the group, where NATS can do that. */
void nats_sub_close(void *engine, struct engine_sub *sub);
void nats_sub_settle(void *engine, struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict);
void nats_sub_message(struct nats_client *e, const struct nats_op *op);
void nats_sub_is_sure(struct nats_client *e, uint64_t leg);

#endif
