/*
 * channel_inside: a channel as its two files see it: channel.c (its life) and channel_traffic.c
 * (what goes over it).
 */
#ifndef RIALTO_ACP_CHANNEL_INSIDE_H
#define RIALTO_ACP_CHANNEL_INSIDE_H

#include "acp/bridge.h"
#include "acp/channel.h"

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
    struct map requests;    /* the server's raw id -> struct exchange */
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

struct conductor *channel_conductor(const struct acp_channel *ch);
const struct mcp_row *channel_row(const struct acp_channel *ch);
/* Toward the servers: what the agent's predecessor gets from the agent. */
struct hop_place channel_way(struct conductor *c);

/* Channels by what their servers call them; `kind` keeps keys of different kinds apart. */
void channel_map(struct acp_channel *ch, char kind, struct span raw, bool on);
struct acp_channel *channel_find(struct conductor *c, char kind, struct json_slot raw);

void exchange_free(struct exchange *x);
/* The owner may close the channel inside of its events: it is freed when the last one returns. */
void channel_enter(struct acp_channel *ch);
void channel_leave(struct acp_channel *ch);
/* End it from our side, telling both. */
void channel_kill(struct acp_channel *ch, const char *why);

#endif
