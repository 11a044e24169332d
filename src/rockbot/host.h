/*
 * host: what the worker and the proxy need from the bridge.
 *
 * This folder uses no configuration except the rules for files in calls, and no MCP transport;
 * hub/bus_host.c provides these functions.
 * A worker is a consumer of the servers' own views, a proxy adds providers.
 */
#ifndef RIALTO_ROCKBOT_HOST_H
#define RIALTO_ROCKBOT_HOST_H

#include "base/err.h"
#include "config/config_server.h"
#include "core/router.h"
#include "io/document.h"

/* A server that an agent on the bus registers: raw values, checked by the host. */
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
    uint64_t timeout_ms;       /* the server's own limit, which wins over the caller's; 0 = none */
    bool agent_owned;          /* registered over the bus */
    bool handback;             /* agents answer the server's questions */
};

/* What becomes of a server's questions during calls from the bus. */
struct bus_asking {
    bool off;                  /* the server is told that nobody can be asked */
    bool handback;             /* handed to agents that can answer; else declined */
    uint64_t max;              /* questions on one call that are handed back; more are declined */
    const char *const *denied; /* names of fields that agents are never asked for */
    size_t n_denied;
};

/* An HTTP request to a server's host outside of MCP, with the server's own headers and token. */
struct bus_request {
    const char *method;
    const char *path; /* on the host of the server's url */
    const char *type; /* of the body; may be NULL */
    struct buf *body; /* taken over; may be NULL */
    size_t max;       /* bytes of the answer */
    uint64_t timeout; /* ms for all of it */
};
typedef void bus_answer_fn(void *owner, const struct document_answer *a);
struct side_request;

struct bus_host {
    struct router *router;
    void *arg;
    /* The server after `p`, the first for NULL; NULL past the end. The `alias` is the server's name
     * on the bus. */
    struct provider *(*next)(void *arg, const struct provider *p);
    /* The view of this server alone: own names, filters applied. */
    struct view *(*view)(void *arg, struct provider *p);
    void (*facts)(void *arg, const struct provider *p, struct bus_server_facts *facts);
    struct bus_asking (*asking)(void *arg, const struct provider *p);
    /* What the configuration says of files in calls of the server; NULL when it says nothing. */
    const struct config_attachments *(*files)(void *arg, const struct provider *p);
    /* NULL: the server is not reached by HTTP. `done` (which may be NULL) is called from the loop;
     * the request is freed after that, or by `withdraw`. */
    struct side_request *(*request)(void *arg, const struct provider *p,
                                    const struct bus_request *request, bus_answer_fn *done,
                                    void *owner);
    void (*withdraw)(struct side_request *r);
    /* Ask the server for its lists again, if it is up: a new generation of its catalog follows. */
    void (*relist)(void *arg, struct provider *p);
    /* Add or remove a server for an agent, also in the configuration file. 0, or negative with a
     * reason for the agent. Adding only starts the server: the provider's state shows the rest. */
    int (*add)(void *arg, const struct bus_new_server *s, struct err *err);
    int (*remove)(void *arg, struct span name, struct err *err);
    /* Put a proxy's provider, which is in the router already, into the views. It leaves the views
     * when it is removed from the router. */
    void (*admit)(void *arg, struct provider *p);
};

#endif
