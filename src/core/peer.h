/*
 * peer: an attached party and the six verbs it speaks.
 *
 * A peer is a provider (offers tools, resources, prompts), a consumer (calls them), or both. A
 * family (mcp, acp, browser, bus) embeds struct peer in its own object, fills in the verbs of the
 * roles it plays, and translates its wire to them; the core knows no wire. docs/decisions/001
 * works the verbs through for every dialect.
 *
 *     consumer's family          router            provider's family
 *     call_open        ------->  finds, admits  -->  verbs->open
 *     verbs->event     <-------  call_event     <--  (progress, log)
 *     verbs->ask       <-------  ask_put        <--  (elicitation, sampling, roots, consent)
 *     ask_answer       ------->                 -->  verbs->answer
 *     call_cancel      ------->                 -->  verbs->cancel
 *     verbs->done      <-------  call_done      <--  (result or error)
 *
 * Payloads are raw JSON in MCP's shapes, the one vocabulary that all families can express. Spans
 * are valid only during the call they are passed to: copy what is needed longer.
 */
#ifndef RIALTO_CORE_PEER_H
#define RIALTO_CORE_PEER_H

#include "base/list.h"
#include "base/span.h"

#include <stdint.h>

struct call;
struct peer;
struct principal;
struct provider;

/* What a consumer may open. The standing call carries events and asks that belong to no request. */
enum op {
    OP_STANDING,
    OP_CALL_TOOL,
    OP_READ_RESOURCE,
    OP_GET_PROMPT,
    OP_COMPLETE,
    OP_SUBSCRIBE,
    OP_UNSUBSCRIBE,
    OP_SET_LEVEL,
    OP_ROOTS_CHANGED, /* told to a provider that may ask for roots; ends at once */
    OP_OTHER,         /* any other request, unchanged, to the only provider of a view (view_only) */
    OP_TELL,          /* the same for a notification; ends at once */
    /* Requests about a task (core/tasks.h): `name` is its id. */
    OP_TASK_GET,
    OP_TASK_RESULT,
    OP_TASK_CANCEL,
    OP_TASK_UPDATE,
    OP_COUNT,
};

/* A piece of a request's params, or of an item; n == 0 when there is none. */
struct cut {
    uint32_t at, n;
};

/* The kinds of asks that a consumer is able to answer; providers are told only of these. */
enum {
    ANSWERS_ELICIT_FORM = 1u << 0,
    ANSWERS_ELICIT_URL = 1u << 1,
    ANSWERS_SAMPLING = 1u << 2,
    ANSWERS_SAMPLING_TOOLS = 1u << 3,
    ANSWERS_ROOTS = 1u << 4,
    ANSWERS_ROOTS_CHANGED = 1u << 6,    /* the consumer also reports changes of its roots */
    ANSWERS_SAMPLING_CONTEXT = 1u << 7, /* a sampling ask may include context of servers */
    /* A consumer of this dialect resumes calls by itself: `input_required` results pass through. */
    ANSWERS_BY_RETRY = 1u << 5,
    /* A consumer of this dialect whose call was held (approval.h): questions come as asks. */
    ANSWERS_HELD_RETRY = 1u << 9,
    ANSWERS_ANY_RETRY = ANSWERS_BY_RETRY | ANSWERS_HELD_RETRY,
    ANSWERS_TASKS = 1u << 8, /* a consumer of this dialect accepts a task as result of a call */
};

/* A call that the daemon before us has sent, and whose server waits for answers of the agent. The
 * server's process was handed over to us. */
struct going_on {
    uint64_t id;     /* of the request on the server's hop */
    int pid;         /* of the server */
    char *asks;      /* raw array of {key, id, method, params}: the agent's key, the server's id */
    char *responses; /* raw object of the agent's answers, by the agent's keys; or NULL */
};

/*
 * An operation to open. Nothing in it belongs to the consumer's hop: no id, no token, no
 * session. Only `params` still contain the `_meta` of that hop, which the provider's family
 * replaces by its own `_meta` plus `meta_keep`.
 */
struct request {
    enum op op;
    struct span name;        /* tool, prompt or uri: the router is given the public name, the
                              * provider its own; of OP_OTHER and OP_TELL: the method */
    struct span params;      /* raw JSON object, or empty */
    struct cut name_at;      /* the name's raw value inside params */
    struct cut arguments_at; /* the same for the arguments of a tool, if that is known */
    struct cut meta_at;      /* `_meta`'s raw value inside params */
    struct span meta_keep;   /* members of `_meta` that travel on: "\"k\":v,..." or empty */
    struct span log_level;   /* most verbose log level wanted on this call; empty = no logs */
    unsigned answers;        /* ANSWERS_ bits */
    struct span declares;    /* raw object: what else the consumer declares, as it is; or empty */
    bool wants_progress;
    bool takes_structured; /* the consumer knows structuredContent in the results of tools */
    uint64_t timeout;      /* ms; 0 = as the provider's policy says */
    uint64_t party;        /* which agent calls, when one consumer speaks for several; else 0 */
    bool anybody;          /* calls of this party may still be of several agents */
    bool resumes;          /* params continue a call that ended with `input_required` */
    struct span own_id;    /* OP_OTHER: the consumer's raw id, shown to servers of ACP's M0 */
    bool as_task;          /* the consumer wants a task as the result of this call */
    const struct going_on *goes_on; /* the daemon before us has sent this call already; or NULL */
    const struct call *behalf; /* the call that this one is made for, whose caller counts as the
                                * caller of both; NULL: the consumer calls by itself */
    const char *task_owner;    /* while a call is opened: the owner of the task that an operator
                                * means; NULL: the caller itself */
};

/* How a call or an ask ended. */
enum outcome_kind {
    OUTCOME_RESULT, /* body: raw result */
    OUTCOME_ERROR,  /* body: raw error object {code, message, data?} from the other end */
    OUTCOME_FAILED, /* the bridge ended the call or ask: `why` and `text` */
};

enum failure {
    FAIL_NONE,
    FAIL_UNKNOWN,     /* no provider offers this name */
    FAIL_UNAVAILABLE, /* the provider is not running and did not come up in time */
    FAIL_CRASHED,     /* the provider ended while the call was open */
    FAIL_TIMEOUT,     /* the deadline passed */
    FAIL_BUSY,        /* the queue is full, or there is no room to start the provider */
    FAIL_CANCELLED,   /* the consumer cancelled the call, or left */
    FAIL_REFUSED,     /* the consumer cannot answer the ask; or a person did not allow the call */
    FAIL_DENIED,      /* a rule of the configuration denies the call (core/rules.h) */
    FAIL_ARGUMENTS,   /* parsers may read the arguments differently: no rule can judge them */
    FAIL_PROTOCOL,    /* the provider's answer is invalid */
    FAIL_SHUTDOWN,    /* the bridge, or the provider, is being stopped */
    FAIL_LIMITED,     /* a limit of the caller's token is reached (principal.h) */
    FAIL_COUNT,
};

struct outcome {
    enum outcome_kind kind;
    struct span body;
    enum failure why;
    struct span text;  /* for people; OUTCOME_FAILED: names the provider */
    bool retryable;    /* calling again may help and does no harm that the first call did not */
    bool locked;       /* OUTCOME_FAILED: the provider wants credentials that it was not given */
    uint64_t retry_ms; /* FAIL_LIMITED: when to call again; 0 = this call never fits the limit */
    bool is_error;     /* OUTCOME_RESULT: the tool says that it failed; `text` may say why */
};

enum event_kind {
    EVENT_PROGRESS, /* params with the token's place; only on calls that want progress */
    EVENT_LOG,
    EVENT_CHANGED, /* lists changed: `changed` has a bit per item kind; standing call only */
    EVENT_UPDATED, /* a subscribed resource changed: `name` is its uri, the provider's own for
                    * the router and the public one for consumers */
    EVENT_OTHER,   /* any other notification: method and params, passed on as they are */
    EVENT_UNASKED, /* the provider took an ask back: `name` is the ask's key; no answer is wanted.
                    * Params of the provider's notification, or empty */
    EVENT_TASK,    /* a task changed: `name` is its id, `params` its state; standing call only */
    EVENT_SETTLED, /* no subscription is pending any more (subscriptions_pending); standing call
                      only */
};

struct event {
    enum event_kind kind;
    struct span method;  /* EVENT_OTHER */
    struct span params;  /* raw object, or empty */
    struct cut token_at; /* EVENT_PROGRESS: the provider's token inside params; EVENT_OTHER and
                          * EVENT_UPDATED: the uri;
                          * EVENT_UNASKED: the id that the call or ask has on the provider's
                          * hop, if params contain it */
    struct span name;
    struct span level; /* EVENT_LOG */
    unsigned changed;  /* EVENT_CHANGED: 1u << enum item_kind */
    bool whole;        /* EVENT_TASK: `params` include any result, error or questions */
    struct provider *from;
};

struct ask {
    struct span key;    /* chosen by the provider, unique among the call's open asks */
    struct span method; /* elicitation/create, sampling/createMessage, roots/list, ... */
    struct span params; /* raw object, or empty */
    unsigned needs;     /* the ANSWERS_ bit a consumer must have; 0 = any */
};

struct peer_verbs {
    /* Provider role. None of these is called for a call after its `cancel` or call_done. `request`
     * is invalid, too, once the provider has ended the call inside `open`. */
    void (*open)(struct peer *self, struct call *call, const struct request *request);
    void (*answer)(struct peer *self, struct call *call, struct span key,
                   const struct outcome *outcome);
    /* Forget the call; tell the server if the protocol can. No call_done may follow for this call.
     */
    void (*cancel)(struct peer *self, struct call *call, enum failure why);

    /* Consumer role. */
    void (*event)(struct peer *self, struct call *call, const struct event *event);
    void (*ask)(struct peer *self, struct call *call, const struct ask *ask);
    /* The end, exactly once. The call is gone when this returns. */
    void (*done)(struct peer *self, struct call *call, const struct outcome *outcome);
};

struct peer {
    const struct peer_verbs *verbs;
    /* Of a consumer, borrowed: */
    struct principal *principal; /* the owner of its token; NULL = not known */
    const char *client;   /* its clientInfo, raw JSON; NULL = not known, or each request says it */
    const char *session;  /* names its session in records; NULL: there is none */
    const char *endpoint; /* the address or way by which it comes; NULL = not known */
    struct list opened;   /* calls this peer opened (struct call.in_consumer) */
};

static inline void peer_init(struct peer *p, const struct peer_verbs *verbs)
{
    p->verbs = verbs;
    p->principal = NULL;
    p->client = p->session = p->endpoint = NULL;
    list_init(&p->opened);
}

#endif
