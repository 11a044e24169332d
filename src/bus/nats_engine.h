/*
 * nats_engine: the loop's side of the NATS engine, as its files share it.
 *
 * nats.c is the engine itself: it opens, connects, closes and turns news into reports. nats_pipe.c
 * is the connection as the loop uses it: reading, writing, sending and learning that what was sent
 * has arrived. nats_sub.c is what comes in: subscriptions, messages that are handed over and wait
 * to be settled, and the requests that tell a JetStream consumer how many more we take.
 */
#ifndef RIALTO_BUS_NATS_ENGINE_H
#define RIALTO_BUS_NATS_ENGINE_H

#include "base/id.h"
#include "base/map.h"
#include "bus/engine.h"
#include "bus/nats_link.h"
#include "io/poll.h"

struct nats_item;

/* What is on its way to the server. */
struct nats_pipe {
    natsConnection *connection; /* NULL = there is none to be used */
    struct poll *poll;
    natsSubscription *answers; /* on our inbox */
    struct list backlog;       /* of messages that libnats' buffer has no room for */
    struct list held;          /* of messages that wait for subscriptions; see nats_pipe_hold */
    size_t holds;
    struct list unsure; /* of struct nats_unsure: sent, and has it arrived? */
    uint64_t last_unsure, asked_upto;
    struct list unheard;  /* messages to be sent again, by this timer */
    struct timer again;   /* JetStream: all that is not stored is */
    uint64_t fresh_until; /* see nats_pipe_is_fresh */
    bool opened;          /* not for the first time */
    struct timer ask;     /* whether what is unsure has arrived */
    bool nobody;          /* heard the message before the question that is answered next */
    bool asking;          /* our question about them is on its way */
    struct map roots;     /* of struct nats_root: streams for what we publish */
    bool heard;           /* something came since the last tick */
    unsigned n_silent;    /* ticks without */
};

struct nats_client {
    struct bus *bus;
    struct loop *loop;
    const struct bus_options *options;
    struct nats_address address;
    struct nats_link_options link_options;
    char inbox[sizeof "_INBOX." + ID_TOKEN_SIZE];
    struct mailbox *box;
    struct nats_link *link;
    struct nats_pipe pipe;
    size_t max_payload; /* of the server; 0 = not known yet */
    bool up;
    bool closing;         /* nothing is reported any more but the end */
    uint64_t last_id;     /* of legs and roots */
    struct deferred work; /* see nats_work_later */
    struct timer tick;

    struct list subs;   /* of struct nats_sub */
    struct idmap legs;  /* their subjects, by id */
    struct idmap items; /* handed over and not settled, by tag */
    uint64_t last_tag;
    struct nats_item *current; /* being handed over: must outlive that */
    uint64_t warned;           /* of a dead letter, when */
};

/* Something has come, or is to be sent, or there is room again: at the end of the turn messages are
 * handed over and everything that was sent leaves in one write. */
void nats_work_later(struct nats_client *e);

/* --- nats_pipe.c --- */
void nats_pipe_init(struct nats_client *e);
void nats_pipe_fini(struct nats_client *e);
void nats_pipe_attach(struct nats_client *e, struct nats_news *n);
void nats_pipe_let_go(struct nats_client *e);
/* Connected: may the others begin? */
bool nats_pipe_open(struct nats_client *e);
/* The connection is lost: nothing of it is left. */
void nats_pipe_drop(struct nats_client *e);
bool nats_pipe_is_live(const struct nats_client *e);
/* Reconnected a moment ago: a message whose reply subject is INBOX.n is sent again when nobody
 * heard it. */
bool nats_pipe_is_fresh(const struct nats_client *e);
/* Takes the message over. number 0: nobody wants to know what becomes of it. */
void nats_pipe_publish(struct nats_client *e, uint64_t number, natsMsg *msg);
void nats_pipe_stream(struct nats_client *e, struct nats_news *n);
/* JetStream: a consumer is on its way, and gets only what is published once it is there: who
 * subscribes and then asks must not miss the answer. Publishes wait until it is, or has failed. */
void nats_pipe_hold(struct nats_client *e);
void nats_pipe_release(struct nats_client *e);
/* A few words to the server; `reply` may be NULL. */
void nats_pipe_say(struct nats_client *e, const char *subject, const char *reply,
                   const char *words);
/* A subscription with a queue of its own, of limited length; NULL when the connection is broken. */
natsSubscription *nats_pipe_subscribe(struct nats_client *e, const char *subject,
                                      const char *group);
/* Calls nats_leg_is_sure when what was sent by now has arrived. */
void nats_pipe_make_sure(struct nats_client *e, uint64_t leg);
void nats_pipe_read_answers(struct nats_client *e);
void nats_pipe_write(struct nats_client *e);
/* Every NATS_TICK_MS: is anybody there? */
void nats_pipe_tick(struct nats_client *e);
/* The next message of a subscription, if there is one; the caller destroys it. */
natsMsg *nats_next(natsSubscription *sub);

/* --- nats_sub.c --- */
void nats_subs_init(struct nats_client *e);
void nats_subs_fini(struct nats_client *e);
void nats_subs_drop(struct nats_client *e);
/* Hands over what there is room for; true when there is more to be done. */
bool nats_subs_work(struct nats_client *e);
void nats_subs_tick(struct nats_client *e);
void nats_sub_open(void *engine, struct engine_sub *sub);
/* What is unsettled goes back to the group, where NATS can do that. */
void nats_sub_close(void *engine, struct engine_sub *sub);
void nats_sub_settle(struct nats_client *e, uint64_t tag, enum bus_verdict verdict);
void nats_leg_consumer(struct nats_client *e, struct nats_news *n);
void nats_leg_is_sure(struct nats_client *e, uint64_t leg);

enum { NATS_TICK_MS = 5000 };

#endif
