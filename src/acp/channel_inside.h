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
    uint64_t waited;        /* ms spent waiting for the session's id */
    bool insists;           /* the component has refused a connect without a session id */
    bool told;              /* the last connect had a session id */
    char *connection;       /* raw string */
    struct map asked;       /* the client's raw id -> struct exchange */
    struct map requests;    /* M4's raw id -> struct exchange */
    struct list exchanges;  /* all of the exchanges */
    struct list asks;       /* struct pending: the server's requests to the client */
    uint64_t last_exchange; /* number in the ids of M0's and M4's requests */
    char token[16];         /* part of these ids that makes them unique among channels */
    bool dead;              /* closed inside one of the channel's own events */
    unsigned busy;          /* events on the stack */
};

/* A request of the client that the server works on. */
struct exchange {
    struct list node;
    struct acp_channel *channel;
    struct pending *sent;
    char *id;         /* the client's, raw */
    char *request_id; /* as the server knows it, raw; M0 and M4 */
    char *token;      /* progress token, raw, as the server knows it; M0 and M0b */
    char *own_token;  /* progress token, raw, as the client knows it */
    char *kept;       /* the message, while it may have to be sent again with other method names */
    enum mcp_dialect sent_as;
};

/* --- channel.c --- */
struct conductor *channel_conductor(const struct acp_channel *ch);
const struct mcp_row *channel_row(const struct acp_channel *ch);
/* The place that leads to the servers: messages go to the agent's predecessor as if the agent had
 * sent them. */
struct hop_place channel_way(struct conductor *c);
/* Remember or forget the name by which a server knows the channel; `kind` keeps ids of different
 * kinds apart. */
void channel_map(struct acp_channel *ch, char kind, struct span raw, bool on);
/* Send to the client: the answer to the request with this raw id; a message of the server, about
 * the client's request `x` if that is known. */
void channel_answer(struct acp_channel *ch, struct span id, bool ok, struct span body);
void channel_deliver(struct acp_channel *ch, struct hop *from, const struct acp_message *m,
                     const struct acp_carried *said, const struct exchange *x);

/* --- exchange.c --- */
void exchange_open(struct acp_channel *ch, const struct rpc_message *m, struct span own_id);
void exchange_free(struct exchange *x);
/* A new id (quoted) that no other channel uses. */
char *exchange_new_name(struct acp_channel *ch);
/*
 * Servers of the stateless dialect name a subscription by the id that the subscribing request has
 * over ACP, and servers without connections may have been given another progress token. This puts
 * the client's own id and token back. `object` is the params or the result that the server sent;
 * the returned span may point into `scratch`. `x` may be NULL.
 */
struct span exchange_own_names(const struct exchange *x, struct span object, struct buf *scratch);

/* --- unnamed.c --- */
/* The (quoted) URL of a server whose name is part of the method. */
void unnamed_put_url(struct buf *url, const struct acp_carried *said);
/* The (quoted) URL of the server that a message names; empty when it names none. */
struct span unnamed_url(const struct acp_message *m, const struct acp_carried *said,
                        struct buf *scratch);
/* Is there a client of a server that has this URL and knows no connections? */
bool unnamed_has(const struct conductor *c, struct span url);
/* Deliver a message of a server without connections to the client it is about. */
void unnamed_divert(struct conductor *c, struct hop *from, const struct acp_message *m,
                    const struct acp_carried *said, struct span url);
/*
 * Clients choose progress tokens as they like, and a server without connections sees the tokens of
 * all its clients: in the params of a request, a token that another client is using now is
 * replaced. The returned span may point into `scratch`.
 */
struct span unnamed_token(struct exchange *x, struct span params, struct buf *scratch);
/* The id of a request inside its envelope: the client's own, unless that is not known or another
 * request to this server has it now. */
char *unnamed_id(struct acp_channel *ch, struct span own_id);

#endif
