/*
 * hop: one neighbour of the conductor, and the requests in flight on it.
 *
 * A hop frames lines, reads each message once and keeps two tables: the requests the neighbour
 * works on, by our ids, and the requests the neighbour waits for, by its own ids. Ids never cross a
 * hop: an answer is routed back through its struct pending.
 *
 * Nouns: hop_, pending_, failure_.
 */
#ifndef RIALTO_ACP_HOP_H
#define RIALTO_ACP_HOP_H

#include "acp/batch.h"
#include "acp/command_line.h"
#include "acp/flow.h"
#include "acp/stderr_tail.h"
#include "acp/trace.h"
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
    char label[ACP_LABEL_SIZE]; /* "Client", "Proxy(0)", "Agent" */
    struct stream *stream;
    struct lines lines;
    struct buf discard; /* takes what is written after the neighbour has gone */
    size_t line_at;     /* where the message being written starts */
    uint64_t last_id;
    struct idmap out;           /* our id -> struct pending that the neighbour works on */
    struct list in;             /* the pendings that the neighbour waits for */
    struct list sent;           /* the pendings of `out`, in order */
    enum proxy_dialect dialect; /* P_UNKNOWN until told or configured */
    bool nested;                /* envelopes of this neighbour hold whole messages */
    struct flow flow;

    /* components */
    const struct command_line *line;
    struct child *child;
    char *closed; /* why the pipe is closed; NULL while open */
    struct stderr_tail stderr_tail;
    int64_t version;           /* protocol version that initialize asked the component for */
    struct greeting *greeting; /* initialize is on its way through this proxy */
    bool greeted;
    struct list spare; /* in the conductor's `spares`, unless the hop is in the chain */
};

/* A request in flight on a hop. */
struct pending {
    struct list node;
    struct list waiting; /* in from->in */
    struct conductor *c;
    struct hop *to; /* NULL: the MCP client of a channel (`owner`) works on the request */
    uint64_t id;
    struct hop *from; /* the neighbour that waits for the answer; NULL: we do, or nobody any more */
    char *from_id;
    char short_id[24]; /* where from_id points if the id fits */
    char *inner_id;    /* id of a whole message in an envelope: the answer needs the same form */
    struct batch *batch;
    bool sent_nested;
    bool cancelled;
    uint64_t trace;
    /* Sees the answer before it is passed on. True: the answer has been handled here. */
    bool (*answered)(struct pending *p, const struct acp_message *m);
    /* The request will not be answered and is about to be freed. May be NULL. */
    void (*dropped)(struct pending *p);
    void *owner;
};

/* An error object for every requester that waits. The text may be long and the requesters many, so
 * only the first ones get the long form. */
struct failure {
    struct buf whole;
    struct buf brief; /* empty: the whole is short enough for all */
    unsigned told;
};

/* Where a message goes next: a neighbour, and whether the message comes from the neighbour's right
 * side and so goes into an envelope (`wrapped`). */
struct hop_place {
    struct hop *hop; /* NULL: nobody there */
    bool wrapped;
};

/* The error object for the next requester. */
struct span failure_tell(struct failure *f);
void failure_fini(struct failure *f);

void hop_init(struct hop *h, struct conductor *c, int index, const char *label);
void hop_fini(struct hop *h);
void hop_free(struct hop *h);
/* Use this stream as the hop's pipe from now on. */
void hop_attach(struct hop *h, struct stream *stream, const struct stream_events *on, void *owner);
/* The pipe has been closed. */
void hop_detach(struct hop *h);
void hop_feed(struct hop *h, struct span chunk);
void hop_feed_end(struct hop *h);
/* Receive one message as if it had just been read; batch NULL when the message came alone. */
void hop_receive(struct hop *h, struct span text, struct batch *batch);
/* The request with this raw id that the hop waits for, or NULL; the newest if several have the
 * id. */
struct pending *hop_asked(const struct hop *h, struct span id);
struct buf *hop_begin(struct hop *h);
void hop_end(struct hop *h);
/* Answer a request of this hop at once: with a result, a raw error object, an error. */
void hop_result(struct hop *h, const struct acp_message *m, struct span result);
void hop_refuse(struct hop *h, const struct acp_message *m, struct span error);
void hop_error(struct hop *h, const struct acp_message *m, int code, const char *text,
               const char *data);
/* A new request to `to`, not sent yet. `from` NULL: a request of ours. */
struct pending *pending_new(struct hop *to, struct hop *from, const struct acp_message *m);
void pending_free(struct pending *p);
/* The requester has been answered in another way, or is gone. */
void pending_let_go(struct pending *p);
void pending_result(struct pending *p, struct span result);
void pending_error(struct pending *p, struct span error);
/* Every request that this hop works on fails with `why`; the requests that the hop waited for are
 * cancelled. */
void hop_gone(struct hop *h, struct failure *why);
/* Cancel a request. `said`: the params of the cancellation, which are passed on with the id that
 * the request has on this hop. */
void pending_cancel(struct pending *p, struct span said);
/* Write a request (id > 0) or notification in the form that `to` expects. `method` is raw, with
 * quotes. */
void hop_place_send(struct hop_place to, const struct pending *p, struct span method,
                    struct span params);

#endif
