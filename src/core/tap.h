/*
 * tap: sees every call with its params and result on the way through the router: for records.
 *
 * Watchers (events.h) are told that something happened, without contents; a tap is shown the
 * contents as well, and may object: if the operator has configured it, a call that cannot be
 * recorded is not made, or its result is not passed on. Taps are called from inside the router, in
 * the order in which they were added, so they must not call the router: they copy and read the
 * copies later.
 */
#ifndef RIALTO_CORE_TAP_H
#define RIALTO_CORE_TAP_H

#include "base/list.h"
#include "base/span.h"

struct ask;
struct call;
struct event;
struct outcome;
struct request;
struct router;

/* A step of a call between its opening and its end. The first time that a call is handed to its
 * provider is no step: struct call has the moment (sent_at). */
enum step_kind {
    STEP_WAITS,      /* for its provider: `why` says why */
    STEP_SENT,       /* to its provider, again */
    STEP_EVENT,      /* the provider told the consumer something: `event` */
    STEP_ASK,        /* the provider, or a call that is held, asks the consumer: `ask` */
    STEP_ANSWER,     /* to an ask: `outcome`; OUTCOME_FAILED: nobody could answer */
    STEP_UNASK,      /* the question was taken back: `event` */
    STEP_HELD,       /* until a person allows the call */
    STEP_RETRY,      /* the provider did not answer the call and will get it again: `why` */
    STEP_CANCEL,     /* the consumer takes the call back, or has left */
    STEP_CALLED_OFF, /* the provider is told to forget the call: `why` */
};

/* Only the members that the comment at its kind names are set. */
struct step {
    enum step_kind kind;
    const struct event *event;
    const struct ask *ask;
    const struct outcome *outcome;
    struct span why; /* for people */
};

/* Each function returns NULL, or why it objects: a text for the consumer, valid until the next call
 * of the tap. */
struct tap {
    struct list node;
    /* `c->provider` is NULL for a call of a name that no provider offers; such a call ends at once.
     * If the tap objects, the call ends before its provider gets it. */
    const char *(*opened)(struct tap *self, const struct call *c, const struct request *request);
    /* If the tap objects to a result or an error, the consumer and the taps after this one get the
     * objection instead. */
    const char *(*ended)(struct tap *self, const struct call *c, const struct outcome *outcome);
    /* A held call (core/approval.h) was allowed or refused, or a rule (core/rules.h) has decided
     * about a call that is not held; `by` names the person or the rule, for people. If the tap
     * objects to what a person allows, the call is not made. */
    const char *(*decided)(struct tap *self, const struct call *c, bool allowed, struct span by);
    /* May be NULL. */
    void (*stepped)(struct tap *self, const struct call *c, const struct step *step);
};

/* Calls that the router opens by itself are not shown. */
void tap_add(struct router *r, struct tap *tap);
/* May be called for a zeroed tap that was never added. */
void tap_remove(struct tap *tap);

#endif
