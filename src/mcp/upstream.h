/*
 * upstream: the inside of an MCP provider, shared by the files that make it up:
 * provider.c (verbs and messages), handshake.c (getting acquainted), lists.c (catalogs),
 * params.c (splicing a request for the next hop).
 */
#ifndef RIALTO_MCP_UPSTREAM_H
#define RIALTO_MCP_UPSTREAM_H

#include "mcp/provider.h"

/* A request we sent and whose answer we expect. */
struct sent {
    uint64_t id;
    /* Takes the answer (RPC_RESULT or RPC_ERROR); the entry is freed by the caller afterwards. */
    void (*answered)(struct mcp_provider *p, const struct sent *sent, const struct mcp_message *m);
    /* The request will get no answer; status as in mcp_provider_failed. */
    void (*failed)(struct mcp_provider *p, const struct sent *sent, int status, const char *why);
    struct call *call;   /* for calls */
    enum item_kind kind; /* for lists */
};

struct mcp_provider {
    struct provider core;
    const struct mcp_link_ops *ops;
    void *link;
    char *alias;

    char version[16];
    unsigned declares; /* the asks we tell the server we can answer */
    unsigned offers;   /* OFFERS_ bits of its capabilities */
    bool has_tools;
    char *instructions;
    char verdict[160]; /* why we closed the link ourselves; empty when we did not */

    uint64_t last_id;
    struct idmap sent; /* id -> struct sent */

    struct catalog *fetching; /* the generation being collected; NULL when none is */
    unsigned kinds_left;      /* lists still to fetch for it */
    unsigned kinds_stale;     /* lists that changed meanwhile */
    size_t pages;
};

/* --- provider.c --- */
typedef void sent_answered_fn(struct mcp_provider *, const struct sent *,
                              const struct mcp_message *);
typedef void sent_failed_fn(struct mcp_provider *, const struct sent *, int, const char *);
struct sent *upstream_sent_new(struct mcp_provider *p, sent_answered_fn *answered,
                               sent_failed_fn *failed);
/* Send a whole request whose params are ready; empty params are left out. */
void upstream_request(struct mcp_provider *p, const struct sent *sent, const char *method,
                      struct span params);
void upstream_notify(struct mcp_provider *p, const char *method, struct span params);

/* --- handshake.c --- */
void upstream_greet(struct mcp_provider *p);

/* --- lists.c --- */
/* Fetch these kinds (bits) anew and publish; the first time also provider_up. */
void upstream_fetch(struct mcp_provider *p, unsigned kinds);
void upstream_fetch_abort(struct mcp_provider *p);

/* --- params.c --- */
/*
 * Append the request's params as the next hop must see them: the name replaced by the provider's
 * own, `_meta` replaced by `own_meta` ("k":v members, may be empty) plus what travels on.
 */
void upstream_put_params(struct buf *out, const struct request *r, struct span own_meta);

#endif
