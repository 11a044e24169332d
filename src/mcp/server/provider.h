/*
 * provider: an MCP server as a provider, on any transport.
 *
 * The provider does the handshake, collects the four lists into catalogs, turns verbs into requests
 * of its own hop and the server's messages into verbs. The transport is a *link* (child process,
 * HTTP, WebSocket): a small table of functions, and the functions below that the link calls.
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
struct traffic;

/* Describes a message to the server, for links that put parts of the message into headers. */
struct mcp_parcel {
    enum rpc_kind kind;
    uint64_t id;         /* of a request */
    const char *method;  /* of a request or notification */
    struct span name;    /* the tool, prompt or uri of the request; may be empty */
    const char *version; /* protocol revision to declare; NULL while none is agreed on */
    bool modern;         /* a request of the stateless era: headers repeat the body, no session */
    struct span headers; /* more header lines the request must carry on HTTP ("K: v\r\n") */
    struct span own_id;  /* the raw id that the client gave the request, where it is known */
};

struct mcp_link_ops {
    /* Begin to connect; mcp_provider_connected or _closed follows, _closed not from inside. */
    void (*open)(void *link);
    /* `begin` returns the buffer to append the next message to; `end` sends the message. */
    struct buf *(*begin)(void *link);
    void (*end)(void *link, const struct mcp_parcel *parcel);
    /*
     * A request was given up. Links with a stream per request close that stream, which tells the
     * server, and return true. Otherwise, and without this function, a cancel notification is sent.
     */
    bool (*forget)(void *link, uint64_t id);
    /*
     * The server refused the transport that was tried. A link that knows another way to the server
     * tries that, reports mcp_provider_connected again (not from inside) and returns true.
     */
    bool (*fall_back)(void *link);
    /* Close the link; mcp_provider_closed follows when that is done. */
    void (*close)(void *link);
    void (*free)(void *link);
    /* The link reports every request that fails, so silence says nothing about the server. */
    bool reports_failures;
    /* The server does not end with the link, and neither do its tasks. */
    bool outlived;
    /* Another daemon takes over: see mcp_provider_is_promised, _promise, _leave. May be NULL. */
    bool (*is_promised)(const void *link);
    bool (*promise)(const void *link, struct buf *out);
    bool (*leave)(void *link, struct buf *note, int fds[3], struct buf *early);
    /* Fill in what the link knows of the server; may be NULL. */
    void (*describe)(const void *link, struct provider_facts *facts);
};

/* Tools and instructions that are made of the server's resources and prompts. */
struct mcp_extras {
    bool resources_as_tools, prompts_as_tools; /* as_tools.h */
    const struct mcp_context_row {
        const char *name;      /* of a prompt; * and ? match */
        const char *arguments; /* a valid JSON object, or NULL */
    } * context;               /* context.h */
    size_t n_context;
    const char *const *resources; /* URIs of resources whose text is context, too */
    size_t n_resources;
};

/* Which dialect to speak: MCP_ERA_AUTO speaks the stateless era if the server knows it,
 * _LEGACY_FIRST the initialize era. */
enum mcp_era { MCP_ERA_AUTO, MCP_ERA_LEGACY, MCP_ERA_MODERN, MCP_ERA_LEGACY_FIRST };

struct mcp_provider *mcp_provider_new(const char *alias, const struct mcp_link_ops *ops,
                                      void *link);
/* Only when down and out of the router. Frees the link. */
void mcp_provider_free(struct mcp_provider *p);
struct provider *mcp_provider_core(struct mcp_provider *p);
void mcp_provider_set_era(struct mcp_provider *p, enum mcp_era era);
/*
 * The server's only client talks to the server itself: we send no handshake, ask for no lists and
 * add nothing. Every message passes as it is, as OP_OTHER and OP_TELL one way, as EVENT_OTHER and
 * asks the other way; only ids are replaced on each hop. Before the provider is started.
 */
void mcp_provider_set_plain(struct mcp_provider *p);
/* Borrowed: the rows must outlive the provider. */
void mcp_provider_set_overrides(struct mcp_provider *p, const struct mcp_overrides *overrides);
/* Borrowed: what `extras` points to must outlive the provider. Before the provider is started. */
void mcp_provider_set_extras(struct mcp_provider *p, const struct mcp_extras *extras);
/* What the agent can be asked, for an instance of one session; before the provider is started. */
void mcp_provider_set_answers(struct mcp_provider *p, unsigned answers);
/* Ping the server after this long without a message; 0 = never. Before the provider is started. */
void mcp_provider_set_ping(struct mcp_provider *p, uint64_t interval_ms);
/* The party that added this server may not read the server's address: reasons of failures go only
 * to the log. */
void mcp_provider_set_discreet(struct mcp_provider *p);
/*
 * `admits` decides about each tool as the server lists it, before overrides: a tool for which it
 * returns false is neither listed nor called. NULL: all tools are offered. It is not asked about
 * lists that were fetched before: for that, call mcp_provider_relist.
 */
void mcp_provider_set_judge(struct mcp_provider *p,
                            bool (*admits)(void *arg, const char *alias, struct span name,
                                           struct span tool),
                            void *arg);
/* Called when the server asks a question without saying on which call. */
void mcp_provider_on_orphan(struct mcp_provider *p, void (*fn)(void *arg), void *arg);
/* Called when the provider has published what the server offers. */
void mcp_provider_on_lists(struct mcp_provider *p, void (*fn)(void *arg), void *arg);
/* Ask for all lists again, if the server is up: not every server says when they change. */
void mcp_provider_relist(struct mcp_provider *p);
/* Was the server last spoken to in the stateless era? */
bool mcp_provider_is_modern(const struct mcp_provider *p);
/* The version that was agreed on: "2025-11-25"; empty before the handshake. */
const char *mcp_provider_version(const struct mcp_provider *p);
/* How far the last start came. */
enum mcp_phase {
    MCP_OPENING,   /* the link was told to open */
    MCP_CONNECTED, /* the program runs, or messages can be sent to a remote server */
    MCP_GREETED,   /* the server has answered: version and capabilities are known */
    MCP_LISTED,    /* the lists are known as well */
    MCP_PHASES,
};
/* When the phase was reached, in microseconds of the monotonic clock; 0 when it was not. */
uint64_t mcp_provider_phase(const struct mcp_provider *p, enum mcp_phase phase);
/* The last messages of the connection, without those of calls. */
const struct traffic *mcp_provider_traffic(const struct mcp_provider *p);
/* The server's serverInfo: a raw object with name and version; empty before the handshake. */
struct span mcp_provider_info(const struct mcp_provider *p);
/* The server's capabilities: a raw object; empty before the handshake. */
struct span mcp_provider_capabilities(const struct mcp_provider *p);
/* The server's own instructions; NULL when it has none. */
const char *mcp_provider_instructions(const struct mcp_provider *p);

/* --- another daemon takes over --- */
/* Identifies the server in the next daemon; without a key the server is not handed over. Before the
 * provider is started. */
void mcp_provider_set_key(struct mcp_provider *p, const char *key);
const char *mcp_provider_key(const struct mcp_provider *p);
/* Will the daemon before us hand this server's program over to us? */
bool mcp_provider_is_promised(const struct mcp_provider *p);
/* The running program, as the other daemon expects it (io/inherited_child.h). False: there is none
 * that could be handed over. */
MUST_CHECK bool mcp_provider_promise(const struct mcp_provider *p, struct buf *out);
/*
 * Hand the program over: its pipes in `fds`, which the caller closes, what the other daemon must
 * know in `note` (members of an object), and in `early` the output that was read but not handled.
 * `moving`: how many open calls are handed over as well. False: not possible now.
 */
MUST_CHECK bool mcp_provider_leave(struct mcp_provider *p, size_t moving, struct buf *note,
                                   int fds[3], struct buf *early);
/* Can this open call, which waits for its agent's answers, go on in another daemon? Then members
 * for struct going_on are appended. */
MUST_CHECK bool mcp_provider_put_going_on(const struct mcp_provider *p, const struct call *call,
                                          struct buf *out);

/* --- for the link --- */
void mcp_provider_connected(struct mcp_provider *p);
/* The same for a program that was handed over to us, in this era, with the note of
 * mcp_provider_leave. */
void mcp_provider_inherited(struct mcp_provider *p, bool modern, struct span note);
/*
 * One message from the server. `about` is the id of our request on whose stream it came; 0 when the
 * link cannot know. By `about`, asks and notifications of the server find the call they belong to.
 */
void mcp_provider_receive(struct mcp_provider *p, struct span text, uint64_t about);
/*
 * A request will not be answered: the request could not be delivered (status 0), or got an HTTP
 * status without a message. `delivered` is false if the server certainly never saw the request.
 */
void mcp_provider_failed(struct mcp_provider *p, uint64_t id, int status, bool delivered,
                         const char *why);
/* Does this request of ours still wait for its answer? */
bool mcp_provider_expects(const struct mcp_provider *p, uint64_t id);
/*
 * The server has forgotten the session: do the handshake again. The link keeps the requests that
 * were refused for that reason and sends them after notifications/initialized.
 */
void mcp_provider_greet_again(struct mcp_provider *p);
/* A message came that is longer than `limit`; `head` is its beginning. */
void mcp_provider_too_long(struct mcp_provider *p, struct span head, size_t limit);
/* Before mcp_provider_closed: the server refused us because credentials are missing. */
void mcp_provider_locked(struct mcp_provider *p);
void mcp_provider_closed(struct mcp_provider *p, const char *why);

#endif
