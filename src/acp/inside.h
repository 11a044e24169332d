/*
 * inside: the conductor as its own files see it.
 *
 *   hop.c        one neighbour: lines in and out, requests in flight
 *   flow.c       a neighbour that reads more slowly than others write to it
 *   component.c  a neighbour that is a child process
 *   stderr_tail.c the end of a component's stderr
 *   conductor.c  which neighbour gets a message
 *   greet.c      initialize along the chain
 *   questions.c  finding out which dialect a proxy speaks
 *   setup.c      session set-up requests: declared MCP servers, and closing the session
 *   port.c       the addresses by which agents reach such servers
 *   channel.c    one MCP connection carried by ACP, with exchange.c and unnamed.c
 */
#ifndef RIALTO_ACP_INSIDE_H
#define RIALTO_ACP_INSIDE_H

#include "acp/conductor.h"
#include "acp/hop.h"
#include "base/id.h"

/* A port for `conductor mcp PORT`. */
struct bridge_port {
    struct listener *listener; /* NULL: closed */
    char secret[ID_TOKEN_SIZE];
};

enum conductor_state { CHAIN_FRESH, CHAIN_OPENING, CHAIN_OPEN, CHAIN_FAILED, CHAIN_ENDING };

struct conductor {
    struct loop *loop;
    struct conductor_options options;
    struct acp_host host;
    enum conductor_mode mode;
    enum conductor_state state;
    struct hop up;
    struct hop **components;
    size_t n;
    struct list spares;  /* struct hop: further processes of proxies, see questions.c */
    struct timer late;   /* fires when initialize takes too long */
    int slow;            /* index of the component to blame then */
    struct hop *reading; /* the hop whose bytes are being handled; NULL outside of that */
    int64_t version;     /* of the protocol, as the agent answered */
    bool parent_offered; /* the parent is of a dialect that wants its offer echoed */
    bool may_retry;      /* initialize failed by a component's own answer and may be sent again */
    bool dying;  /* a component ended; open requests are answered, then the conductor ends */
    bool at_eof; /* the client closed its end */
    bool told_ended;
    int status;
    struct failure failure; /* the answer to every request, once something has failed */
    struct list idle;       /* struct pending, memory to be used again */
    size_t n_idle;
    struct list held; /* messages that the client sent before initialize was answered */
    size_t held_bytes;
    struct timer end;

    bool native_url, native_type; /* the agent itself takes servers declared in this form */
    bool takes_http, takes_stdio;
    struct map owners;   /* key of a declared server -> the hop that declared it */
    struct list setups;  /* struct setup */
    size_t n_servers;    /* in all set-ups */
    struct map channels; /* names of MCP connections -> struct acp_channel */
    struct list unnamed; /* struct acp_channel: open channels to servers that know no connections */
    uint64_t last_ask, last_channel;
    struct bridge_port extra; /* for the host's own server */
    struct list unproven; /* struct unproven: clients at a port that have not shown the secret */
    size_t n_unproven;
    uint64_t told_secret; /* when a client without the secret was last logged */
};

/* --- conductor.c --- */
void conductor_receive(struct hop *from, struct acp_message *m);
struct hop_place conductor_right_of(struct conductor *c, int index);
struct hop_place conductor_left_of(struct conductor *c, int index);
bool conductor_is_agent(const struct hop *h);
/* Pass a message on. Returns the pending of a request; NULL for a notification, or if the request
 * was refused. */
struct pending *conductor_relay(struct hop *from, const struct acp_message *m, struct hop_place to,
                                struct span params);
void conductor_fail(struct conductor *c, struct span error);
/* The same with a long and a short form. Takes over the buffers of `why`, unless something has
 * failed before. */
void conductor_fail_as(struct conductor *c, struct failure *why);
void conductor_opened(struct conductor *c);
void conductor_check_end(struct conductor *c);

/* --- component.c --- */
MUST_CHECK int component_start(struct hop *h, struct err *err);
void component_put_name(struct buf *out, const struct hop *h);
/* The component has failed; `how` says in which way, for example "exited with 1". component_put_end
 * writes the short form alone. */
void component_put_failure(struct failure *out, const struct hop *h, const char *how);
void component_put_end(struct buf *out, const struct hop *h, const char *how);
void component_stop(struct hop *h);

/* --- greet.c --- */
void greet_upstream(struct conductor *c, const struct acp_message *m);
void greet_onward(struct hop *from, const struct acp_message *m);
/* Answer an initialize request: the first with a result or a raw error object, the second with an
 * error of our own. */
void greet_finish(struct pending *p, bool ok, struct span body);
void greet_finish_wrong(struct pending *p, struct conductor *c, const char *text);
/* The chain waits for no component any more. */
void greet_over(struct conductor *c);

/* --- questions.c --- */
/* Initialise a proxy. */
void questions_begin(struct hop *h, struct hop *from, const struct acp_message *m,
                     struct span params);
/* A proxy sent an envelope. True: the envelope held our question, sent back by the proxy, and has
 * been answered. */
bool questions_heard(struct hop *h, const struct acp_message *m, enum proxy_dialect d);
/* A process of a proxy ended. True: another process of the proxy is still there, so this end does
 * not matter. */
bool questions_outlive(struct hop *h, const char *how);
/* The error of one process of a proxy, or how that process ended, while other processes are still
 * being asked; or empty. */
struct span questions_error(const struct hop *h);
/* Is this a process of a proxy other than the one in the chain? */
bool questions_is_spare(const struct hop *h);
void questions_drop(struct hop *h);

/* --- setup.c --- */
void setup_note_owners(struct hop *from, const struct acp_message *m);
void setup_relay(struct hop *from, const struct acp_message *m, struct hop_place to);
void setup_close_relay(struct hop *from, const struct acp_message *m, struct hop_place to);
void setup_learn_agent(struct conductor *c, struct span result);
/* Append the agent's initialize result in the form that everybody to the left of the agent must
 * see. */
void setup_put_welcome(struct conductor *c, struct buf *out, struct span result);
/* The client has closed its end: connections that are not open yet get only a little more time. */
void setup_hurry(struct conductor *c);
void setup_free_all(struct conductor *c);

#endif
