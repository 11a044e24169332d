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

/* An operator's decision about a held call, kept until the consumer calls again if it must. */
enum word { WORD_NONE, WORD_YES, WORD_NO };

struct call {
    uint64_t handle;
    enum op op;
    enum call_state state;
    struct router *router;

    struct peer *consumer;
    void *consumer_data;
    struct list in_consumer;
    struct peer *caller;         /* the consumer, or the caller of the call that this is made for */
    struct principal *principal; /* the caller's, held; or NULL */
    const char *objection;       /* of a tap to the call, while it is opened; or NULL */
    bool counts;                 /* against the principal's limits, with `bytes` */
    bool goes_first; /* the router's own: other calls wait until it has ended (wishes.c) */
    size_t bytes;    /* of the params */

    struct provider *provider; /* NULL for standing calls */
    void *provider_data;
    struct list in_provider; /* provider->open, ->waiting or ->held */

    struct view *view;         /* standing calls: the view whose changes are told */
    struct list standing;      /* in router->standing; of a held call in router->held */
    struct map uris;           /* standing calls: subscribed resources (wishes.c) */
    uint64_t told[ITEM_KINDS]; /* digests of the lists that the consumer was last told of */

    unsigned rule;   /* while held: the number of the rule that wants a person's word; 0 = none */
    enum word word;  /* while held */
    bool comes_back; /* while held: the consumer got the question as a result, and calls again */
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
    bool asked_sign_in; /* somebody was asked to sign in for it (provider.h) */
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
/* NULL when the call has ended inside; `done` has told the consumer. */
struct call *call_open(struct router *r, struct peer *consumer, struct view *v,
                       const struct request *request, void *consumer_data);
/* What would become of the call as things are, by the rules and approvals of its tool; nothing is
 * written down. */
enum call_prospect { PROSPECT_FREE, PROSPECT_ASKED, PROSPECT_DENIED };
enum call_prospect call_foresee(const struct router *r, struct view *v,
                                const struct request *request);
void call_cancel(struct call *c, enum failure why);
/* The consumer leaves: all calls that it opened are cancelled. It must not open calls meanwhile. */
void call_cancel_all(struct peer *consumer);
/* All calls of principals that have ended (principal.h) end now, refused: whatever their servers
 * answer is not told. */
void call_end_principals(struct router *r);

/* Not a notification, and not of a built-in provider other than web pages: the calls that these
 * make for it are for people. */
bool call_concerns_people(const struct call *c);

/* --- for providers --- */
void call_event(struct call *c, const struct event *event);
void call_done(struct call *c, const struct outcome *outcome);

/* The call goes on at another provider, which offers the same by the same name. Only a call that
 * was kept: those that wait for a sign-in (provider.h) are. */
void call_move(struct call *c, struct provider *to);

/* --- for provider.c: the provider has started or ended --- */
void call_provider_ready(struct provider *p);
void call_provider_ended(struct provider *p, enum failure why);

/* --- for hub/ and provider.c --- */
/* The calls that wait for `from` wait for `to` instead, which offers the same by the same names:
 * all of them, or (`seen_only`) those of consumers that see `to`. */
void call_hand_over(struct provider *from, struct provider *to, bool seen_only);

#endif
