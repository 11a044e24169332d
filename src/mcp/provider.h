/*
 * provider: an MCP server as a provider, whatever pipe leads to it.
 *
 * It does the handshake, collects the four lists into catalogs, turns verbs into requests of its
 * own hop and the server's messages into verbs. The pipe is a *link* (stdio child, HTTP upstream):
 * a small table of functions plus the three calls by which the link reports back.
 */
#ifndef RIALTO_MCP_PROVIDER_H
#define RIALTO_MCP_PROVIDER_H

#include "base/map.h"
#include "core/router.h"
#include "mcp/protocol.h"

struct mcp_provider;

/* A message on its way to the server, for links that must know what they carry. */
struct mcp_parcel {
    enum rpc_kind kind;
    uint64_t id;        /* of a request */
    const char *method; /* of a request or notification */
    struct span name;   /* what the request is about: tool, prompt or uri; may be empty */
};

struct mcp_link_ops {
    /* Begin to connect; reports by mcp_provider_connected or _closed, but not from inside. */
    void (*open)(void *link);
    /* Where to append the next message, and send it. */
    struct buf *(*begin)(void *link);
    void (*end)(void *link, const struct mcp_parcel *parcel);
    /* A request was given up; links with a stream per request close it. May be NULL. */
    void (*forget)(void *link, uint64_t id);
    /* Close; mcp_provider_closed follows when nothing is left. */
    void (*close)(void *link);
    void (*free)(void *link);
};

struct mcp_provider *mcp_provider_new(const char *alias, const struct mcp_link_ops *ops,
                                      void *link);
/* Only when down and out of the router. Frees the link. */
void mcp_provider_free(struct mcp_provider *p);
struct provider *mcp_provider_core(struct mcp_provider *p);

/* --- for the link --- */
void mcp_provider_connected(struct mcp_provider *p);
void mcp_provider_receive(struct mcp_provider *p, struct span text);
/* A message came that was too large to be taken; `head` is how it began. */
void mcp_provider_too_long(struct mcp_provider *p, struct span head, size_t limit);
void mcp_provider_closed(struct mcp_provider *p, const char *why);

#endif
