/*
 * upstream: the private structs of an MCP provider, shared by the files that implement it:
 * provider.c (messages from the server, start and stop), notices.c (its notifications),
 * upstream_calls.c (verbs and requests), handshake.c, lists.c, params.c (a request's params for the
 * next hop), ping.c, upstream_modern.c, upstream_tasks.c, task_request.c, task_watch.c, as_tools.c,
 * context.c.
 */
#ifndef RIALTO_MCP_SERVER_UPSTREAM_H
#define RIALTO_MCP_SERVER_UPSTREAM_H

#include "base/backoff.h"
#include "mcp/server/overrides.h"
#include "mcp/server/provider.h"
#include "mcp/server/traffic.h"

/*
 * What we declare for all agents, in the handshake and in requests of our own, such as for lists.
 * MCP Apps need no support of a bridge: their resources and `_meta` pass as they are.
 */
#define UPSTREAM_DECLARES                                                                          \
    "{\"extensions\":{\"io.modelcontextprotocol/ui\":{\"mimeTypes\":["                             \
    "\"text/html;profile=mcp-app\"]}}}"

/* A request we sent and whose answer we expect, or a call that waits for answers to its asks. */
struct sent {
    struct list node; /* in the provider */
    uint64_t id;      /* 0 while no request is pending */
    /* Takes the answer (RPC_RESULT or RPC_ERROR). The entry is freed afterwards unless `keep`. */
    void (*answered)(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);
    /* The request will get no answer; status as in mcp_provider_failed. */
    void (*failed)(struct mcp_provider *p, struct sent *sent, int status, const char *why);
    bool keep;
    bool progress_only;    /* no answer is waited for: the id only names a progress token */
    struct call *call;     /* the call that the request was sent for; else NULL */
    enum item_kind kind;   /* the list that the request asks for */
    struct rounds *rounds; /* a call across eras, which may have to be sent again; else NULL */
    struct task_request
        *task_request; /* of a call that concerns a task (upstream_tasks.c); else NULL */
    enum op made;      /* the operation that a made tool stands for (as_tools.h); else 0 */
    bool subscribes;   /* a call that ends when a subscriptions/listen is acknowledged */
    uint64_t listen;   /* id of the first listen with its resource; 0: not sent yet */
};

struct mcp_provider {
    struct provider core;
    const struct mcp_link_ops *ops;
    void *link;
    char *alias;
    char *key; /* see mcp_provider_set_key; may be NULL */

    bool plain, discreet; /* see mcp_provider_set_plain and _discreet */
    enum mcp_era wanted_era;
    bool modern;            /* the server is spoken to in the stateless era */
    uint64_t legacy_until;  /* a probe found the initialize era: do not probe before this time */
    bool probed_again;      /* server/discover was sent a second time */
    bool knows_modern;      /* server/discover was answered, and no handshake failed since */
    struct timer probe;     /* ends the wait for an answer to server/discover */
    struct traffic traffic; /* the last messages that belong to no call */
    char version[16];
    unsigned declares; /* the asks we tell the server we can answer */
    unsigned offers;   /* OFFERS_ bits of the server's capabilities */
    struct buf extra;  /* the server's other capabilities (mcp_merge_extras) */
    bool has_tools;
    bool param_headers; /* some tool wants arguments repeated as headers */
    bool gives_any;     /* some tool is ITEM_GIVES_ANY */
    struct mcp_overrides overrides;
    struct mcp_extras extras;
    bool (*admits)(void *arg, const char *alias, struct span name, struct span tool);
    void *judge;
    struct map withheld; /* own names of tools that `admits` refused */
    struct map made;     /* own names of tools that we made -> struct made_tool */
    struct context *context;
    void (*on_orphan)(void *arg);
    void (*on_lists)(void *arg);
    void *orphan_arg, *lists_arg;
    char *instructions;
    char *info;         /* raw serverInfo; NULL while the server has not sent any */
    char *capabilities; /* raw, as the server sent them; NULL likewise */
    struct buf marks;   /* what core.bridges points into (circle.h) */
    uint64_t phase_at[MCP_PHASES];
    char verdict[160]; /* why we closed the link ourselves; empty when we did not */

    uint64_t last_id;
    struct idmap sent;    /* id -> struct sent */
    struct list all_sent; /* every struct sent */

    struct catalog *fetching; /* the catalog that is being collected, or NULL */
    unsigned kinds_asked;     /* lists that are fetched for `fetching` */
    unsigned kinds_left;      /* lists still to fetch for `fetching` */
    unsigned kinds_stale;     /* lists that changed since they were asked for */
    unsigned kinds_said;      /* lists that the server said have changed, not published since */
    size_t pages;
    uint64_t page_id;  /* our newest request for a page */
    struct timer page; /* ends the wait for its answer */

    uint64_t ping_interval; /* ms of silence before a ping; 0 = never */
    struct timer ping;
    struct sent *pinged; /* the ping that waits for its answer, or NULL */
    uint64_t pinged_at, heard_at;

    uint64_t listen_id;   /* our newest subscriptions/listen, or 0 */
    uint64_t listen_old;  /* the one that listen_id replaces, while it is still open; or 0 */
    bool listen_acked;    /* the newest is acknowledged */
    bool listen_due;      /* subscriptions have changed since the newest was sent */
    uint64_t listened_at; /* when the newest was sent */
    struct backoff listen_backoff;
    struct timer listen;      /* opens the subscription (again), or ends the replaced one */
    struct timer listen_wait; /* ends calls that wait for an acknowledgement for too long */
    struct map listen_uris;   /* resources that agents subscribed to */

    uint64_t instance;       /* of the process that knows its tasks; 0: tasks outlive the link */
    struct map watches;      /* tasks whose questions are collected -> struct task_request */
    struct map listen_tasks; /* tasks whose changes we subscribe to, until the table of tasks has
                                forgotten them or knows that they have ended */
};

/* --- upstream_calls.c --- */
extern const struct peer_verbs upstream_verbs;
/* Keep a message that belongs to no call, to be shown to people. */
void upstream_note(struct mcp_provider *p, bool in, struct span message);
/* Send what was written since the link's `begin`. */
void upstream_send(struct mcp_provider *p, struct mcp_parcel parcel);
typedef void sent_answered_fn(struct mcp_provider *, struct sent *, const struct mcp_message *);
typedef void sent_failed_fn(struct mcp_provider *, struct sent *, int, const char *);
struct sent *upstream_sent_new(struct mcp_provider *p, sent_answered_fn *answered,
                               sent_failed_fn *failed);
/* Give the entry a fresh id, so that it can be sent (again). */
void upstream_sent_renew(struct mcp_provider *p, struct sent *sent);
/* Give the entry the id of a request that the daemon before us has sent. */
void upstream_sent_resume(struct mcp_provider *p, struct sent *sent, uint64_t id);
void upstream_sent_free(struct mcp_provider *p, struct sent *sent);
/* The entry with this raw id of ours; NULL: there is none. */
struct sent *upstream_sent_of(const struct mcp_provider *p, struct span raw_id);
/* Send a request; `members` go into its params ("k":v,...; may be empty). */
void upstream_request(struct mcp_provider *p, const struct sent *sent, const char *method,
                      struct span members);
/* The same for a request about something with a name, which HTTP repeats as a header. */
void upstream_request_named(struct mcp_provider *p, const struct sent *sent, const char *method,
                            struct span name, struct span members);
void upstream_notify(struct mcp_provider *p, const char *method, struct span params);
/* Send a call's request; `extra` members go into its params first. */
void upstream_send_call(struct mcp_provider *p, const struct sent *sent,
                        const struct request *request, struct span extra);
/* The capabilities object with these bits and what else is declared (raw object, or empty). */
void upstream_put_capabilities(struct buf *out, unsigned answers, struct span declares);
/* Cancel a request of ours at the server. */
void upstream_withdraw(struct mcp_provider *p, uint64_t id, const char *reason);
/* The tool with this own name; NULL when there is none. */
const struct item *upstream_tool(const struct mcp_provider *p, struct span own);
/* Was the outputSchema of the tool with this own name changed for agents of the initialize era
 * (legacy.h)? Then its results are wrapped for them. */
bool upstream_gives_any(const struct mcp_provider *p, struct span own);

/* --- notices.c --- */
/* A notification; `about` as in mcp_provider_receive. */
void notices_receive(struct mcp_provider *p, const struct mcp_message *m, uint64_t about);
/* The same for a plain provider: passed on unread, except for an id in it, of a request of ours or
 * of the server: the client knows either by another id. */
void notices_pass(struct mcp_provider *p, const struct mcp_message *m, uint64_t about);

/* --- handshake.c --- */
/* Close the link and keep the reason for people. */
void handshake_give_up(struct mcp_provider *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void handshake_reached(struct mcp_provider *p, enum mcp_phase phase);
void handshake_start(struct mcp_provider *p);
/* What the next daemon must know of the server's era (members of an object). */
void handshake_put(const struct mcp_provider *p, struct buf *note);
/* The program has had its handshake with the daemon before us, in this era: ours is the same. */
void handshake_resume(struct mcp_provider *p, bool modern, struct span note);
void handshake_on_silence(struct timer *t);
/* The link has closed, perhaps because the server did not know server/discover. */
void handshake_ended(struct mcp_provider *p);

/* --- ping.c --- */
/* The link is up: start the timer of the pings. */
void ping_start(struct mcp_provider *p);
void ping_on_answer(struct timer *t);

/* --- lists.c --- */
/* Add an item that the server lists, or a tool that we made, to the catalog `fetching`. */
void lists_add_item(struct mcp_provider *p, enum item_kind kind, struct span raw);
/* Fetch the lists of these kinds (bits) again and publish; the first time also provider_up. */
void lists_fetch(struct mcp_provider *p, unsigned kinds);
/* The same after the server said that these lists have changed: consumers are told so, even if we
 * find nothing new in them. */
void lists_changed(struct mcp_provider *p, unsigned kinds);
void lists_abort(struct mcp_provider *p);
void lists_on_silence(struct timer *t);

/* --- params.c --- */
/*
 * Append the request's params as the next hop must see them: the name replaced by the provider's
 * own, `_meta` by `own_meta` ("k":v members, may be empty) plus members for the next hop. The
 * members `extra` come first.
 */
void params_put(struct buf *out, const struct request *r, struct span own_meta, struct span extra);

/*
 * Append the params of a server's request or notification as the client must see them: without
 * members of this hop, such as progress token and subscription id. The params must have a `_meta`.
 */
void params_put_foreign(struct buf *out, const struct mcp_message *m);

/* --- upstream_modern.c --- */
/* The members that every request of the stateless era has in `_meta`. */
void upstream_modern_put_meta(struct buf *out, unsigned answers, struct span declares);
/* Remember a call's request, which may have to be sent again: the consumer's era is not the
 * server's. */
void upstream_modern_keep(struct mcp_provider *p, struct sent *sent, const struct request *request);
/* A result with a resultType: true if it was handled here, false if it goes to the consumer. */
bool upstream_modern_ask_input(struct mcp_provider *p, struct sent *sent,
                               const struct mcp_message *m);
/*
 * An error of the initialize era that an agent of the stateless era does not know: the user must
 * visit pages first. True if it is handled here: the agent is asked to have the pages visited. The
 * keys of these asks begin with UPSTREAM_VISIT_KEY, as no id of a server does.
 */
#define UPSTREAM_VISIT_KEY "visit "
bool upstream_modern_ask_visits(struct mcp_provider *p, struct sent *sent,
                                const struct mcp_message *m);
/* An ask of a call with `rounds` was answered. */
void upstream_modern_answered(struct mcp_provider *p, struct sent *sent, struct span key,
                              const struct outcome *outcome);
void upstream_modern_free(struct rounds *rounds);
/* Declare these ANSWERS_ bits as well when the call is sent again. */
void upstream_modern_declare(struct rounds *rounds, unsigned answers);
/* Subscriptions: one subscriptions/listen stream for all of them. */
void upstream_listen(struct mcp_provider *p);
/* Streams that are open go to the next daemon, which ends them when its own is acknowledged. */
void upstream_listen_put(const struct mcp_provider *p, struct buf *note);
void upstream_listen_resume(struct mcp_provider *p, struct span note);
/* The server acknowledged the subscription with this id of ours. */
void upstream_listen_acknowledged(struct mcp_provider *p, uint64_t id);
/* OP_SUBSCRIBE: the call ends when the server has acknowledged the subscription, or after a short
 * time. */
void upstream_subscribe(struct mcp_provider *p, struct call *call, struct span uri);
void upstream_unsubscribe(struct mcp_provider *p, struct span uri);
void upstream_on_listen_silence(struct timer *t);
/* Subscribe to the changes of this task. */
void upstream_follow_task(struct mcp_provider *p, struct span own);
void upstream_on_listen(struct timer *t);

/* --- upstream_tasks.c --- */
/* Handles a request about a task (OP_TASK_*) completely. */
void upstream_tasks_open(struct mcp_provider *p, struct call *call, const struct request *request);
/* A tool is called on a server with tasks: members to add to its params. */
struct span upstream_tasks_begin(struct mcp_provider *p, struct sent *sent, struct request *r);
/* The answer to a call of upstream_tasks_begin: true if it was handled here. */
bool upstream_tasks_made(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m);
/* The server has sent a notification with the state of a task. */
void upstream_tasks_told(struct mcp_provider *p, const struct mcp_message *m);
/* The open call for the task with this raw id, or NULL. */
struct call *upstream_tasks_owner(const struct mcp_provider *p, struct span related);
/* Params that the server sent, with the id of their task as callers know it; `scratch` may hold
 * them. */
struct span upstream_tasks_relate(const struct mcp_provider *p, struct span params,
                                  struct buf *scratch);
/* A caller's answer with the id of its task as the server knows it. */
struct span upstream_tasks_relate_back(const struct sent *sent, struct span body,
                                       struct buf *scratch);

#endif
