/*
 * proxy_parts: the proxy as its own files see it.
 *
 * proxy.c listens and keeps the list of servers; remote.c is one server elsewhere as a provider,
 * with its calls in remote_calls.c; errand.c asks a bridge something and waits for the answer;
 * remote_words.c turns answers into what MCP calls them.
 */
#ifndef RIALTO_ROCKBOT_PROXY_PARTS_H
#define RIALTO_ROCKBOT_PROXY_PARTS_H

#include "base/id.h"
#include "base/map.h"
#include "rockbot/proxy.h"
#include "rockbot/rockbot.h"

enum { MANAGE_WAIT_MS = 30 * 1000, REMOTES_MAX = 1000, REPLIES_PREFETCH = 256, ALIAS_MAX = 64 };
enum { REMOTE_ITEMS_MAX = 100000 }; /* of a kind, of one server */

struct errand;
struct first_request;

struct bus_proxy {
    struct loop *loop;
    struct bus *bus;
    const struct bus_host *host;
    struct bus_proxy_options options;
    char instance[9];                 /* which of the proxies under this agent's name we are */
    char *result_topic;               /* where calls are answered */
    char *managed_topic;              /* and where everything else is */
    struct bus_sub *meta;             /* announcements */
    struct bus_sub *result, *managed; /* NULL before the first question */
    struct map remotes;               /* name in lower case -> struct remote */
    struct map errands;               /* correlation id -> struct errand */
    bool is_up;
    struct first_request *first; /* NULL when it has arrived */
    struct timer patience;       /* set while the bus is away */
    char away[256];              /* why it is */
    struct deferred ended;
    void (*done)(void *arg);
    void *done_arg;
};

/* One server elsewhere. */
struct remote {
    struct provider core;
    struct bus_proxy *proxy;
    char *name;   /* the bridge's name for it */
    char *alias;  /* ours */
    bool indexed; /* announced by the index: there are details to be asked for */
    bool has_resources;
    char *announced;       /* the newest fingerprint we heard of; NULL if there is none */
    char *known;           /* that of the catalog */
    struct list errands;   /* struct errand.node */
    struct errand *asking; /* for its details or its resources; NULL when nothing is asked */
    bool stale;            /* news came while we were asking */
    struct catalog *fetching;
    struct timer late; /* to report a start that failed at once */
};

struct errand_kind {
    enum rockbot_record request, response;
    bool is_invoke; /* goes to the invoke topic, else it is management */
    /* The answer has come; the errand is out of every list, and freed afterwards. */
    void (*answered)(struct errand *e, enum rockbot_record type, struct span body);
    /* It will not come. `text` for people. */
    void (*failed)(struct errand *e, enum failure why, bool retryable, const char *text);
};

/* A question on its way. */
struct errand {
    const struct errand_kind *kind;
    struct remote *remote;
    struct call *call; /* whom it is for; NULL: for ourselves */
    char id[ID_TOKEN_SIZE];
    struct timer timer;
    struct list node; /* in remote->errands; on no list once it is over */
    bool sending;     /* the bus still has something to tell about it */
};

/* --- errand.c --- */
/* `wait_ms` is how long the answer may take; an invocation has the deadline of its call. */
struct errand *errand_send(struct remote *r, const struct errand_kind *kind, struct call *call,
                           struct span body, struct message *m, uint64_t wait_ms);
/* Nobody wants to know any more; nothing is told. */
void errand_drop(struct errand *e);
/* The bus has lost what it was given: callers whose question was sent are told. */
void errand_lose_all(struct remote *r);

/* --- remote.c --- */
struct remote *remote_new(struct bus_proxy *x, struct span name);
/* Gone from the router, its calls ended. */
void remote_free(struct remote *r);
/* One of ours has its alias now: it gets another. Calls under way do not notice. */
void remote_rename(struct remote *r);
/* It was announced; `fingerprint` may be empty. */
void remote_indexed(struct remote *r, struct span fingerprint, bool has_resources);
/* A whole list of tools came with the announcement (raw arrays); false: it has none left. */
bool remote_tools(struct remote *r, struct span tools, struct span removed);
/* For its details; once more afterwards if we are asking already. */
void remote_ask(struct remote *r);
/* Whatever its state is. Not from inside its verbs or ops. */
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
