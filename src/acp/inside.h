/*
 * inside: the conductor as its own files see it.
 *
 *   hop.c        one neighbour: lines in and out, requests in flight
 *   component.c  a neighbour that is a child process
 *   conductor.c  which way a message goes
 *   greet.c      initialize, and finding out what a proxy speaks
 *   setup.c      session set-up requests: declared MCP servers, and where they end
 *   channel.c    one MCP connection carried by ACP
 *   bridge.c     the sockets by which agents reach such connections
 */
#ifndef RIALTO_ACP_INSIDE_H
#define RIALTO_ACP_INSIDE_H

#include "acp/conductor.h"
#include "acp/words.h"
#include "base/list.h"
#include "base/map.h"
#include "io/child.h"
#include "wire/lines.h"

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

    /* components */
    const struct command_line *line;
    struct child *child;
    struct buf last_words; /* the end of its stderr */
    struct greeting *greeting;
    bool greeted;
};

/* A request in flight on a hop. */
struct pending {
    struct list node;
    struct hop *to; /* NULL: an MCP client behind `channel` works on it */
    uint64_t id;
    struct hop *from; /* who waits for the answer; NULL: we do, or nobody any more */
    char *from_id;
    char *inner_id; /* it came as a whole message in an envelope: so does its answer */
    bool sent_nested;
    bool cancelled;
    uint64_t trace;
    /* Sees the answer before it is passed on; true: it has been dealt with. */
    bool (*answered)(struct pending *p, const struct acp_message *m);
    /* It will not be answered and is about to be freed. May be NULL. */
    void (*dropped)(struct pending *p);
    void *owner;
};

/* Where a message goes next: a neighbour, and whether it comes from that one's right side. */
struct place {
    struct hop *hop; /* NULL: nobody there */
    bool wrapped;
};

enum conductor_state { CHAIN_FRESH, CHAIN_OPENING, CHAIN_OPEN, CHAIN_FAILED, CHAIN_ENDING };

struct conductor {
    struct loop *loop;
    struct conductor_options options;
    struct acp_host host;
    enum conductor_mode mode;
    enum conductor_state state;
    struct hop up;
    struct hop *components;
    size_t n;
    int64_t version;
    bool parent_offered; /* the parent is of a dialect that wants its offer echoed */
    bool may_retry;      /* initialize failed by a component's own answer: it may be sent again */
    bool dying;          /* a component ended; what waits is answered, then all ends */
    bool at_eof;         /* the client closed its end */
    bool told_ended;
    int status;
    struct buf failure; /* raw error object: the answer to everything */
    struct buf held;    /* what the client sent before initialize was answered */
    struct timer end;

    bool native_url, native_type; /* the agent takes such declarations by itself */
    bool takes_http, takes_stdio;
    struct map owners;   /* key of a declared server -> the hop that declared it */
    struct list setups;  /* struct setup */
    size_t n_servers;    /* in all of those */
    struct map channels; /* names of MCP connections -> struct acp_channel */
    uint64_t last_ask, last_channel;
    struct listener *extra; /* for the host's own server */
};

/* --- hop.c --- */
void hop_init(struct hop *h, struct conductor *c, int index, const char *label);
void hop_fini(struct hop *h);
void hop_feed(struct hop *h, struct span chunk);
void hop_feed_end(struct hop *h);
struct buf *hop_begin(struct hop *h);
void hop_end(struct hop *h);
void hop_error(struct hop *h, struct span id, int code, const char *text, const char *data);
/* A request to `to`, not sent yet. `from` NULL: ours. */
struct pending *pending_new(struct hop *to, struct hop *from, const struct acp_message *m);
void pending_free(struct pending *p);
/* Pass on an answer, a result, an error object. They free nothing. */
void pending_pass(struct pending *p, const struct acp_message *m);
void pending_result(struct pending *p, struct span result);
void pending_error(struct pending *p, struct span error);
/* Everything this hop works on has failed with that error object; what it waited for is given up.
 */
void hop_gone(struct hop *h, struct span error);
void pending_cancel(struct pending *p);
/* Write a request (id > 0) or notification as `to` must see it. `method` is raw, with quotes. */
void place_send(struct place to, const struct pending *p, struct span method, struct span params);

/* --- conductor.c --- */
void conductor_receive(struct hop *from, struct acp_message *m);
struct place conductor_right_of(struct conductor *c, int index);
struct place conductor_left_of(struct conductor *c, int index);
bool conductor_is_agent(const struct hop *h);
/* Pass a message on; the pending of a request, else NULL. */
struct pending *conductor_relay(struct hop *from, const struct acp_message *m, struct place to,
                                struct span params);
void conductor_fail(struct conductor *c, struct span error);
void conductor_opened(struct conductor *c);
void conductor_check_end(struct conductor *c);

/* --- component.c --- */
MUST_CHECK int component_start(struct hop *h, struct err *err);
void component_put_name(struct buf *out, const struct hop *h);
void component_stop(struct hop *h);

/* --- greet.c --- */
void greet_upstream(struct conductor *c, const struct acp_message *m);
void greet_onward(struct hop *from, const struct acp_message *m);
/* A proxy sent an envelope. True: it was our probe coming back, which has been answered. */
bool greet_heard(struct hop *h, const struct acp_message *m, enum proxy_dialect d);
/* The component of an unfinished greeting ended. True: it was started again. */
bool greet_restart(struct hop *h, struct span error);
void greet_drop(struct hop *h);

/* --- setup.c --- */
void setup_note_owners(struct hop *from, const struct acp_message *m);
void setup_relay(struct hop *from, const struct acp_message *m, struct place to);
void setup_close_relay(struct hop *from, const struct acp_message *m, struct place to);
void setup_learn_agent(struct conductor *c, struct span result);
/* Append the agent's initialize result as everybody left of it must see it. */
void setup_put_welcome(struct conductor *c, struct buf *out, struct span result);
void setup_free_all(struct conductor *c);

#endif
