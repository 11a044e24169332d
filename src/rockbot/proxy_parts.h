/*
 * proxy_parts: the structs and functions that the files of the proxy share.
 *
 * proxy.c subscribes and keeps the list of servers; remote.c is one remote server as a provider,
 * with its calls in remote_calls.c; remote_request.c sends a request to a bridge and waits for the
 * answer; remote_words.c converts answers to MCP.
 */
#ifndef RIALTO_ROCKBOT_PROXY_PARTS_H
#define RIALTO_ROCKBOT_PROXY_PARTS_H

#include "base/id.h"
#include "base/map.h"
#include "rockbot/proxy.h"
#include "rockbot/rockbot.h"

enum { MANAGE_WAIT_MS = 30 * 1000, REMOTES_MAX = 1000, REPLIES_PREFETCH = 256, ALIAS_MAX = 64 };
enum { WORKER_NAME_MAX = 200 };
enum { REMOTE_ITEMS_MAX = 100000 }; /* items of a kind that one server may have */

struct remote_request;
struct first_request;

struct bus_proxy {
    struct loop *loop;
    struct bus *bus;
    const struct bus_host *host;
    struct bus_proxy_options options;
    char instance[9];                 /* tells this proxy from others under the same agent's name */
    char *result_topic;               /* where calls are answered */
    char *managed_topic;              /* where all other requests are answered */
    struct bus_sub *meta;             /* announcements */
    struct bus_sub *result, *managed; /* NULL before the first request */
    struct map remotes;               /* name in lower case -> struct remote */
    struct map requests;              /* correlation id -> struct remote_request */
    bool is_up;
    struct first_request *first; /* NULL once it was sent */
    struct timer patience;       /* set while the bus is away */
    char away[256];              /* why the bus is away */
    struct deferred ended;
    void (*done)(void *arg);
    void *done_arg;
};

/* One remote server. */
struct remote {
    struct provider core;
    struct bus_proxy *proxy;
    char *name;   /* the bridge's name of the server */
    char *alias;  /* our name of the server */
    char *worker; /* who announced it last; may be NULL */
    uint64_t heard_at;
    bool indexed; /* announced by the index: its details can be asked for */
    bool has_resources;
    char *announced;               /* the newest announced fingerprint; NULL if there is none */
    char *known;                   /* the fingerprint of the catalog */
    struct list requests;          /* struct remote_request.node */
    struct remote_request *asking; /* request for details or resources; NULL when there is none */
    bool stale;                    /* an announcement came during the request */
    struct catalog *fetching;
    struct timer late; /* reports, from the loop, a start that failed at once */
};

struct remote_request_kind {
    enum rockbot_record request, response;
    bool is_invoke; /* goes to the invoke topic, else to the manage topic */
    /* The answer has come; the request is out of every list, and freed afterwards. */
    void (*answered)(struct remote_request *q, enum rockbot_record type, struct span body);
    /* No answer will come. `text` is for people. */
    void (*failed)(struct remote_request *q, enum failure why, bool retryable, const char *text);
};

/* A request that waits for its answer. */
struct remote_request {
    const struct remote_request_kind *kind;
    struct remote *remote;
    struct call *call; /* the call it is made for; NULL: for the proxy itself */
    char id[ID_TOKEN_SIZE];
    struct timer timer;
    struct list node; /* in remote->requests; on no list once it is over */
    bool sending;     /* the bus has not called on_sent yet */
};

/* --- remote_request.c --- */
/* `wait_ms` is the time limit for the bus to take the request, and for the answer; the answer to an
 * invocation has the deadline of its call. */
struct remote_request *remote_request_send(struct remote *r, const struct remote_request_kind *kind,
                                           struct call *call, struct span body, struct message *m,
                                           uint64_t wait_ms);
/* Drops the request without calling `answered` or `failed`. */
void remote_request_drop(struct remote_request *q);
/* The bus has lost its messages: requests of calls that were sent fail. */
void remote_request_lose_all(struct remote *r);

/* --- remote.c --- */
struct remote *remote_new(struct bus_proxy *x, struct span name);
/* Ends the calls and removes the provider from the router. */
void remote_free(struct remote *r);
/* Chooses another alias, because a server of our own has it now. Open calls go on. */
void remote_rename(struct remote *r);
/* The index announced the server; `fingerprint` may be empty. */
void remote_indexed(struct remote *r, struct span fingerprint, bool has_resources);
/* The announcement had a list of tools (raw arrays); false: the server has none left. */
bool remote_tools(struct remote *r, struct span tools, struct span removed);
/* Asks for the server's details; again after the answer if a request is under way. */
void remote_ask(struct remote *r);
/* Drops all requests; a provider that starts or is ready is lost. Must not be called inside the
 * provider's verbs or ops. */
void remote_lost(struct remote *r, const char *why);

/* --- remote_calls.c --- */
extern const struct peer_verbs remote_verbs;

/* --- remote_words.c --- */
void remote_add_tool(struct catalog *c, struct span tool);
void remote_add_prompt(struct catalog *c, struct span prompt);
void remote_add_resource(struct catalog *c, struct span resource, enum item_kind kind);
/* Append the MCP result of a ToolInvokeResponse; false if it cannot be read. */
bool remote_put_result(struct buf *out, struct span body, bool *is_error, struct buf *why);
bool remote_put_prompt(struct buf *out, struct span body, struct buf *error);
bool remote_put_contents(struct buf *out, struct span body, struct buf *error);

#endif
