/*
 * host: what the bus roles need of the bridge they stand in.
 *
 * The family knows no configuration and no MCP transport; hub/bus_host.c hands these in. A worker
 * is a consumer of the servers' own views, a proxy brings providers.
 */
#ifndef RIALTO_ROCKBOT_HOST_H
#define RIALTO_ROCKBOT_HOST_H

#include "base/err.h"
#include "core/router.h"

/* What a bus agent asks to be added: raw values, checked by the host. */
struct bus_new_server {
    struct span name;
    struct span type; /* sse, http, streamable-http, stdio; empty = stdio */
    struct span url;
    struct span command;
    struct span args; /* raw JSON array of strings, or empty */
    struct span env;  /* raw JSON object of strings, or empty */
};

struct bus_server_facts {
    struct span display_name, version, implementation, description, instructions;
    struct span server_id;     /* 12 hex digits */
    struct span identity_hash; /* 16 hex digits */
    uint64_t timeout_ms;       /* of its own, wins over the caller's; 0 = none */
    bool agent_owned;          /* registered over the bus */
};

struct bus_host {
    struct router *router;
    void *arg;
    /* The server behind `p`, the first for NULL; NULL past the end. Its `alias` is its name on the
     * bus. */
    struct provider *(*next)(void *arg, const struct provider *p);
    /* The view of this server alone: own names, filters applied. */
    struct view *(*view)(void *arg, struct provider *p);
    void (*facts)(void *arg, const struct provider *p, struct bus_server_facts *facts);
    /* Ask the server for its lists anew, if it is up: another generation of its catalog follows. */
    void (*relist)(void *arg, struct provider *p);
    /* Over the bus: add or remove a server, for good. 0, or negative with a reason for the agent.
     * Adding only starts it: what comes of it is seen in the provider's state. */
    int (*add)(void *arg, const struct bus_new_server *s, struct err *err);
    int (*remove)(void *arg, struct span name, struct err *err);
    /* A provider that a proxy brings, to be put into the views: it is in the router already. The
     * views forget it when the router does. */
    void (*admit)(void *arg, struct provider *p);
};

#endif
