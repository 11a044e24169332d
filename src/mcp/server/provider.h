/*
 * provider: an MCP server as a provider, whatever pipe leads to it.
 *
 * It does the handshake, collects the four lists into catalogs, turns verbs into requests of its
 * own hop and the server's messages into verbs. The pipe is a *link* (stdio child, HTTP upstream):
 * a small table of functions plus the three calls by which the link reports back.
 *
 * Nouns: mcp_provider_.
 */
#ifndef RIALTO_MCP_SERVER_PROVIDER_H
#define RIALTO_MCP_SERVER_PROVIDER_H

#include "base/map.h"
#include "core/router.h"
#include "mcp/protocol.h"
#include "mcp/server/overrides.h"

struct mcp_provider;

/* A message on its way to the server, for links that must know what they carry. */
struct mcp_parcel {
    enum rpc_kind kind;
    uint64_t id;         /* of a request */
    const char *method;  /* of a request or notification */
    struct span name;    /* what the request is about: tool, prompt or uri; may be empty */
    const char *version; /* protocol revision to declare; NULL while none is agreed on */
    bool modern;         /* a request of the stateless era: headers repeat the body, no session */
    struct span headers; /* more header lines the request must carry on HTTP ("K: v\r\n") */
    uint64_t about;      /* answers and cancellations: the request of ours they concern, or 0 */
};

struct mcp_link_ops {
    /* Begin to connect; reports by mcp_provider_connected or _closed, but not from inside. */
    void (*open)(void *link);
    /* Where to append the next message, and send it. */
    struct buf *(*begin)(void *link);
    void (*end)(void *link, const struct mcp_parcel *parcel);
    /*
     * A request was given up. Links with a stream per request close it and return true: the server
     * knows then. Otherwise, and without this function, a cancel notification is sent.
     */
    bool (*forget)(void *link, uint64_t id);
    /*
     * The server does not speak what was tried. A link that knows another way to reach it takes
     * that, reports mcp_provider_connected again (not from inside) and returns true.
     */
    bool (*fall_back)(void *link);
    /* Close; mcp_provider_closed follows when nothing is left. */
    void (*close)(void *link);
    void (*free)(void *link);
    /* Every request is answered or reported as failed, so silence says nothing about the server. */
    bool reports_failures;
    /* Fill in what is known of the other end; may be NULL. */
    void (*describe)(const void *link, struct provider_facts *facts);
};

/* What else is made of the things that the server offers. */
struct mcp_extras {
    bool resources_as_tools, prompts_as_tools; /* as_tools.h */
    const struct mcp_context_row {
        const char *name;      /* of a prompt; * and ? match */
        const char *arguments; /* a valid JSON object, or NULL */
    } * context;               /* context.h */
    size_t n_context;
};

/* Which dialect to speak; MCP_ERA_AUTO asks the server. */
enum mcp_era { MCP_ERA_AUTO, MCP_ERA_LEGACY, MCP_ERA_MODERN };

struct mcp_provider *mcp_provider_new(const char *alias, const struct mcp_link_ops *ops,
                                      void *link);
/* Only when down and out of the router. Frees the link. */
void mcp_provider_free(struct mcp_provider *p);
struct provider *mcp_provider_core(struct mcp_provider *p);
void mcp_provider_set_era(struct mcp_provider *p, enum mcp_era era);
/*
 * Its only client does the talking: no handshake, no lists and no words of our own. Every message
 * passes as it is, as OP_OTHER and OP_TELL one way, as EVENT_OTHER and asks the other; ids are of
 * their hop all the same. Before it is started.
 */
void mcp_provider_set_plain(struct mcp_provider *p);
/* Borrowed: the rows must outlive the provider. */
void mcp_provider_set_overrides(struct mcp_provider *p, const struct mcp_overrides *overrides);
/* The same; before it is started. */
void mcp_provider_set_extras(struct mcp_provider *p, const struct mcp_extras *extras);
/* What a session's agent can be asked, for an instance of its own; before it is started. */
void mcp_provider_set_answers(struct mcp_provider *p, unsigned answers);
/* Ask for a sign of life after this long without one; 0 = never. Before it is started. */
void mcp_provider_set_ping(struct mcp_provider *p, uint64_t interval_ms);
/* The party that had this server added may not read its address: why it failed is for the log
 * alone. */
void mcp_provider_set_discreet(struct mcp_provider *p);
/* Called when the server asked something that could belong to several calls, or to none. */
void mcp_provider_on_orphan(struct mcp_provider *p, void (*fn)(void *arg), void *arg);
/* Called when the provider has published what the server offers. */
void mcp_provider_on_lists(struct mcp_provider *p, void (*fn)(void *arg), void *arg);
/* Ask for all lists again, if the server is up: not every server says when they change. */
void mcp_provider_relist(struct mcp_provider *p);
/* The version that was agreed on: "2025-11-25"; empty before the handshake. */
const char *mcp_provider_version(const struct mcp_provider *p);
/* How far the last start came. */
enum mcp_phase {
    MCP_OPENING,   /* the link was told to open */
    MCP_CONNECTED, /* a program runs; a remote server may be spoken to */
    MCP_GREETED,   /* the server has answered: version and capabilities are known */
    MCP_LISTED,    /* and its lists */
    MCP_PHASES,
};
/* When the phase was reached, in microseconds of the monotonic clock; 0 when it was not. */
uint64_t mcp_provider_phase(const struct mcp_provider *p, enum mcp_phase phase);
/* The server's serverInfo: a raw object with name and version; empty before the handshake. */
struct span mcp_provider_info(const struct mcp_provider *p);
/* The server's own instructions; NULL when it has none. */
const char *mcp_provider_instructions(const struct mcp_provider *p);

/* --- for the link --- */
void mcp_provider_connected(struct mcp_provider *p);
/*
 * One message from the server. `about` is the id of our request on whose stream it came, 0 when the
 * link cannot know: what a server asks or tells while it works on a call then finds its owner.
 */
void mcp_provider_receive(struct mcp_provider *p, struct span text, uint64_t about);
/*
 * A request will not be answered: it could not be delivered (status 0) or was answered by an HTTP
 * status without a message in it. `delivered` is false if the server surely never saw it.
 */
void mcp_provider_failed(struct mcp_provider *p, uint64_t id, int status, bool delivered,
                         const char *why);
/* Does this request of ours still wait for its answer? */
bool mcp_provider_expects(const struct mcp_provider *p, uint64_t id);
/*
 * The server has forgotten the session: introduce ourselves again. The link keeps the requests that
 * were refused for that reason and sends them once notifications/initialized has gone out.
 */
void mcp_provider_greet_again(struct mcp_provider *p);
/* A message came that was too large to be taken; `head` is how it began. */
void mcp_provider_too_long(struct mcp_provider *p, struct span head, size_t limit);
/* Before mcp_provider_closed: the server turned us away for want of credentials. */
void mcp_provider_locked(struct mcp_provider *p);
void mcp_provider_closed(struct mcp_provider *p, const char *why);

#endif
