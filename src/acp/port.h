/*
 * port: declared servers, as the agent is given them.
 *
 * Each server of a set-up request has an address of its own, opened before the agent is told: a
 * loopback port for `conductor mcp PORT`, or an address of the host's HTTP server. Since everybody
 * on this machine can connect to a port, a port first asks for a secret, which is in the
 * environment of the agent's entry. A client that has shown the secret is handed to the host, and
 * reaches the server through a channel.
 */
#ifndef RIALTO_ACP_PORT_H
#define RIALTO_ACP_PORT_H

#include "acp/inside.h"
#include "acp/mcp_dialects.h"
#include "io/listen.h"

/* The servers of one session set-up request. */
struct setup {
    struct list node; /* in the conductor */
    struct conductor *c;
    char *session;         /* raw string; NULL while unknown */
    struct pending *asked; /* the set-up request, until it is answered */
    struct list servers;   /* struct acp_server */
};

/* A declared server of one set-up request. */
struct acp_server {
    struct list node;
    struct setup *setup;
    char *name;
    char *key; /* raw string: url, id or serverId */
    enum declared_as form;
    struct hop *owner;
    enum mcp_dialect dialect; /* the best guess so far */
    bool dialect_sure;        /* the component has answered in this dialect */
    struct list channels;
    char *greeting;          /* raw params of the last initialize of a client; NULL before */
    struct bridge_port port; /* stdio bridge */
    void *http;              /* HTTP bridge: the host's handle */
    struct acp_http_place place;
};

enum bridge_kind { BRIDGED_NOT, BRIDGED_STDIO, BRIDGED_HTTP };

/* The kind of address that this agent and our options allow. `--mcp-bridge http` is only a
 * preference: an agent that does not take HTTP servers is given stdio servers. */
enum bridge_kind port_kind(const struct conductor *c);
/* Give the server an address. */
MUST_CHECK int port_offer(struct acp_server *s);
void port_withdraw(struct acp_server *s);
/* Append the members by which the agent reaches the server; `map`: the entry is in a map. */
void port_put_members(struct buf *out, const struct acp_server *s, bool map);

/* Append the entry of the host's own server, under this (quoted) name. */
MUST_CHECK int port_put_extra(struct conductor *c, struct buf *out, struct span name, bool map);
void port_close_extra(struct conductor *c);

#endif
