/*
 * channel_inside: a channel as its own files see it.
 *
 *   channel.c   an MCP connection: its life, and the messages over it
 *   exchange.c  a request of the client on it
 *   unnamed.c   servers that know no connections: which client they mean
 */
#ifndef RIALTO_ACP_CHANNEL_INSIDE_H
#define RIALTO_ACP_CHANNEL_INSIDE_H

#include "acp/channel.h"
#include "acp/port.h"

enum channel_state { CHANNEL_NEW, CHANNEL_WAITING, CHANNEL_CONNECTING, CHANNEL_OPEN };

struct acp_channel {
    struct list node;    /* in the server */
    struct list unnamed; /* in the conductor, if the server knows no connections */
    struct acp_server *server;
    const struct channel_events *on;
    void *owner;
    enum channel_state state;
    struct timer timer;
    struct pending *connect;
    uint64_t waited;        /* ms, for the session's id */
    bool insists;           /* the component wants a session id in its connect ... */
    bool told;              /* ... and the last connect had one */
    char *connection;       /* raw string */
    struct map asked;       /* the client's raw id -> struct exchange */
    struct map requests;    /* M4's raw id -> struct exchange */
    struct list exchanges;  /* all of those */
    struct list asks;       /* struct pending: the server's requests to the client */
    uint64_t last_exchange; /* makes the ids of M0's and M4's requests */
    char token[16];         /* ... and this makes them unique among channels */
    bool dead;              /* closed inside one of its own events */
    unsigned busy;          /* events on the stack */
};

/* A request of the client that the server works on. */
struct exchange {
    struct list node;
    struct acp_channel *channel;
    struct pending *sent;
    char *id;         /* the client's, raw */
    char *request_id; /* the server's, raw string; M0 and M4 */
    char *token;      /* for progress, raw, as the server knows it; M0 and M0b */
    char *own_token;  /* ... and the client */
    char *kept;       /* the message, while it may have to be sent under other names */
    enum mcp_dialect sent_as;
};

/* --- channel.c --- */
struct conductor *channel_conductor(const struct acp_channel *ch);
const struct mcp_row *channel_row(const struct acp_channel *ch);
/* Toward the servers: what the agent's predecessor gets from the agent. */
struct hop_place channel_way(struct conductor *c);
/* Channels by what their servers call them; `kind` keeps keys of different kinds apart. */
void channel_map(struct acp_channel *ch, char kind, struct span raw, bool on);
/* To the client: the answer to its request, by its raw id; a message of the server, about the
 * client's request `x` if that is known. */
void channel_answer(struct acp_channel *ch, struct span id, bool ok, struct span body);
void channel_deliver(struct acp_channel *ch, struct hop *from, const struct acp_message *m,
                     const struct acp_carried *said, const struct exchange *x);
/* The client need not answer any more. `params`: in the server's words, with its own id. */
void channel_withdraw_ask(struct pending *p, struct span params);

/* --- exchange.c --- */
void exchange_open(struct acp_channel *ch, const struct rpc_message *m);
void exchange_free(struct exchange *x);
/* A (quoted) name that nobody else gives. */
char *exchange_new_name(struct acp_channel *ch);
/*
 * Servers of the stateless dialect name a subscription by the id that its request has over ACP, and
 * servers without connections may know a progress token by another one; the client knows both by
 * its own. `object` is params or a result of theirs; what is returned may stand in `scratch`. `x`
 * may be NULL.
 */
struct span exchange_own_names(const struct exchange *x, struct span object, struct buf *scratch);

/* --- unnamed.c --- */
/* The (quoted) URL of a server whose name stands in the method. */
void unnamed_put_url(struct buf *url, const struct acp_carried *said);
/* The (quoted) URL of the server that a message names; empty when it names none. */
struct span unnamed_url(const struct acp_message *m, const struct acp_carried *said,
                        struct buf *scratch);
/* Is there a client of a server that has this URL and knows no connections? */
bool unnamed_has(const struct conductor *c, struct span url);
/* A message of such a server, to the client whom it is about. */
void unnamed_divert(struct conductor *c, struct hop *from, const struct acp_message *m,
                    const struct acp_carried *said, struct span url);
/*
 * Clients choose progress tokens as they like, and such a server sees those of all its clients: in
 * the params of a request, one that another client uses right now is replaced. What is returned may
 * stand in `scratch`.
 */
struct span unnamed_token(struct exchange *x, struct span params, struct buf *scratch);

#endif
