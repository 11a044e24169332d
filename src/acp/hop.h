/*
 * hop: one neighbour of the conductor, and the requests in flight on it.
 *
 * A hop frames lines, reads each message once and keeps two tables: what it works on by our ids,
 * and what it waits for by its own. Ids never cross a hop: an answer finds its way back by its
 * pending.
 *
 * Nouns: hop_, pending_, failure_.
 */
#ifndef RIALTO_ACP_HOP_H
#define RIALTO_ACP_HOP_H

#include "acp/batch.h"
#include "acp/command_line.h"
#include "acp/flow.h"
#include "acp/last_words.h"
#include "acp/words.h"
#include "base/list.h"
#include "base/map.h"
#include "io/child.h"
#include "wire/lines.h"

struct conductor;
enum { HOP_UPSTREAM = -1, HOP_MAX_MESSAGE = 32 * 1024 * 1024 };

struct pending;
struct greeting;

/* A neighbour: the client (or the conductor around this one), a proxy, the agent. */
struct hop {
    struct conductor *c;
    int index;
    char label[16]; /* "Client", "Proxy(0)", "Agent" */
    struct stream *stream;
    struct lines lines;
    struct buf discard; /* takes what is sent to one that has gone */
    size_t line_at;     /* where the message being written starts */
    uint64_t last_id;
    struct idmap out;           /* our id -> struct pending that it works on */
    struct map in;              /* its raw id -> struct pending that it waits for */
    struct list sent;           /* the pendings of `out`, in order */
    enum proxy_dialect dialect; /* P_UNKNOWN until told or configured */
    bool nested;                /* its envelopes hold whole messages */
    struct flow flow;

    /* components */
    const struct command_line *line;
    struct child *child;
    char *closed; /* why its pipe is closed; NULL while it is not */
    struct last_words last_words;
    int64_t version;           /* protocol version that its initialize asked for */
    struct greeting *greeting; /* initialize is on its way through this proxy */
    bool greeted;
    struct list spare; /* in the conductor's `spares` unless it stands in the chain */
};

/* A request in flight on a hop. */
struct pending {
    struct list node;
    struct conductor *c;
    struct hop *to; /* NULL: an MCP client behind `channel` works on it */
    uint64_t id;
    struct hop *from; /* who waits for the answer; NULL: we do, or nobody any more */
    char *from_id;
    char short_id[24]; /* where from_id points to if the id fits */
    bool found;        /* from->in has this request; false once a later one came with the same id */
    char *inner_id;    /* it came as a whole message in an envelope: so does its answer */
    struct batch *batch;
    bool sent_nested;
    bool cancelled;
    uint64_t trace;
    /* Sees the answer before it is passed on; true: it has been dealt with. */
    bool (*answered)(struct pending *p, const struct acp_message *m);
    /* It will not be answered and is about to be freed. May be NULL. */
    void (*dropped)(struct pending *p);
    void *owner;
};

/* An error object for whoever waits. It may be long, and they may be many: only the first are told
 * the whole of it. */
struct failure {
    struct buf whole;
    struct buf brief; /* empty: the whole is short enough for everybody */
    unsigned told;
};

/* Where a message goes next: a neighbour, and whether it comes from that one's right side. */
struct hop_place {
    struct hop *hop; /* NULL: nobody there */
    bool wrapped;
};

/* The error object for the next one. */
struct span failure_tell(struct failure *f);
void failure_fini(struct failure *f);

void hop_init(struct hop *h, struct conductor *c, int index, const char *label);
void hop_fini(struct hop *h);
void hop_free(struct hop *h);
/* The hop's pipe is this stream from now on. */
void hop_attach(struct hop *h, struct stream *stream, const struct stream_events *on, void *owner);
/* The pipe is closed. */
void hop_detach(struct hop *h);
void hop_feed(struct hop *h, struct span chunk);
void hop_feed_end(struct hop *h);
/* One message as if it had just been read; batch NULL when it came alone. */
void hop_receive(struct hop *h, struct span text, struct batch *batch);
struct buf *hop_begin(struct hop *h);
void hop_end(struct hop *h);
/* Answer a request of this hop at once: with a result, a raw error object, an error. */
void hop_result(struct hop *h, const struct acp_message *m, struct span result);
void hop_refuse(struct hop *h, const struct acp_message *m, struct span error);
void hop_error(struct hop *h, const struct acp_message *m, int code, const char *text,
               const char *data);
/* A request to `to`, not sent yet. `from` NULL: ours. */
struct pending *pending_new(struct hop *to, struct hop *from, const struct acp_message *m);
void pending_free(struct pending *p);
/* Whoever asked has its answer from elsewhere, or is not there any more. */
void pending_let_go(struct pending *p);
void pending_result(struct pending *p, struct span result);
void pending_error(struct pending *p, struct span error);
/* Everything this hop works on has failed; what it waited for is given up. */
void hop_gone(struct hop *h, struct failure *why);
void pending_cancel(struct pending *p);
/* Write a request (id > 0) or notification as `to` must see it. `method` is raw, with quotes. */
void hop_place_send(struct hop_place to, const struct pending *p, struct span method,
                    struct span params);

#endif
