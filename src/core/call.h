/*
 * call: one operation in flight, from a consumer to a provider.
 *
 * The router owns the call. The two data pointers belong to the families at both ends: one (set
 * through call_open) leads the consumer's family to the request that waits on its hop, the other
 * (set in the `open` verb) leads the provider's family to the request that it sent. A handle is
 * never reused, so a family that must name a call outside of the process (a sealed requestState)
 * names it by handle.
 */
#ifndef RIALTO_CORE_CALL_H
#define RIALTO_CORE_CALL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"
#include "core/catalog.h"
#include "core/kept_request.h"

struct router;
struct view;

enum call_state {
    CALL_WAITING, /* for a slot, or for its provider to come up */
    CALL_OPEN,    /* handed to its provider */
    CALL_ENDING,  /* taken off its provider; the consumer's `done` runs now or comes next */
    CALL_HELD,    /* until a person allows it (core/approval.h) */
};

/* An operator's decision about a held call. If the consumer has to call again first, the decision
 * is kept until then. */
enum word { WORD_NONE, WORD_YES, WORD_NO };

struct call {
    uint64_t handle;
    enum op op;
    enum call_state state;
    struct router *router;

    struct peer *consumer;
    void *consumer_data;
    struct list in_consumer;
    struct peer *caller;         /* the consumer; with request.behalf: the caller of that call */
    struct principal *principal; /* the caller's, held; or NULL */
    const char *objection;       /* why a tap objects, while the call is being opened; or NULL */
    bool counts;                 /* against the principal's limits, with `bytes` */
    bool goes_first; /* the router's own: other calls wait until it has ended (subscriptions.c) */
    size_t bytes;    /* of the params */

    struct provider *provider; /* NULL for standing calls */
    void *provider_data;
    struct list in_provider; /* provider->open, ->waiting or ->held */

    struct view *view;         /* standing calls: the view whose changes are told */
    struct list standing;      /* in router->standing; of a held call in router->held */
    struct map uris;           /* standing calls: subscribed resources (subscriptions.c) */
    uint64_t told[ITEM_KINDS]; /* digests of the lists that the consumer was last told of */

    unsigned rule;  /* while held: the number of the rule that asks for a person; 0 = none */
    enum word word; /* while held */
    uint64_t party;
    bool anybody;
    bool answered; /* by its provider */
    unsigned answers;
    unsigned lacks;  /* ANSWERS_ bits of questions that the consumer could not answer */
    bool sees_whole; /* the call's view hides nothing of the provider */
    bool wants_progress;
    bool takes_structured;
    bool repeatable; /* read-only or idempotent: may be sent again after a crash */
    unsigned tries;  /* times the call was handed to its provider */
    uint64_t opened_at;
    uint64_t sent_at; /* when it was handed to its provider first; valid if `tries` */
    uint64_t timeout; /* ms, as requested; 0 = that of the provider's policy */
    struct timer deadline;
    uint64_t armed_at;  /* when the deadline was started, not counting progress */
    bool asked_sign_in; /* a person was asked to sign in for this call (provider.h) */
    struct list asks;   /* struct open_ask, in the order they were asked */
    size_t n_asks;
    struct kept_request kept;
    /* While the consumer cancels the call: the params of its notification, unchanged, and where the
     * id of the consumer's request stands in them. Mostly empty. */
    struct span cancel_params;
    struct cut cancel_id_at;
    size_t name_n;
    char name[]; /* of the tool, prompt or resource, as the provider calls it; a NUL follows */
};

/* --- for consumers --- */
/* NULL if the call has ended already; the consumer's `done` was called inside. */
struct call *call_open(struct router *r, struct peer *consumer, struct view *v,
                       const struct request *request, void *consumer_data);
/* What the rules and approvals would decide about this call now. Nothing is logged or recorded. */
enum call_prospect { PROSPECT_FREE, PROSPECT_ASKED, PROSPECT_DENIED };
enum call_prospect call_foresee(const struct router *r, struct view *v,
                                const struct request *request);
void call_cancel(struct call *c, enum failure why);
/* The consumer leaves: all calls that it opened are cancelled. It must not open calls meanwhile. */
void call_cancel_all(struct peer *consumer);
/* End all calls of principals that have ended (principal.h), as refused; answers of the servers to
 * these calls are dropped. */
void call_end_principals(struct router *r);

/* Is the call recorded, and counted against limits? Not if it is a notification, or goes to a
 * built-in provider without `told_as`: the calls that such a provider makes for it are. */
bool call_concerns_people(const struct call *c);

/* --- for providers --- */
void call_event(struct call *c, const struct event *event);
void call_done(struct call *c, const struct outcome *outcome);

/* Move the call to another provider, which offers the same item by the same name. Only for calls
 * whose request was kept, such as those that wait for a sign-in (provider.h). */
void call_move(struct call *c, struct provider *to);

/* --- for provider.c: the provider has started or ended --- */
void call_provider_ready(struct provider *p);
void call_provider_ended(struct provider *p, enum failure why);

/* --- for hub/ and provider.c --- */
/* The calls that wait for `from` wait for `to` instead, which offers the same items by the same
 * names: all of them, or (`seen_only`) those of consumers that see `to`. */
void call_hand_over(struct provider *from, struct provider *to, bool seen_only);

#endif
