/*
 * inside: struct router and the functions that the router's files share. router.c has providers,
 * views and standing calls; call_open.c opens each call, and call.c takes it to its end.
 */
#ifndef RIALTO_CORE_INSIDE_H
#define RIALTO_CORE_INSIDE_H

#include "base/holdings.h"
#include "base/map.h"
#include "core/events.h"
#include "core/observers.h"
#include "core/router.h"
#include "core/tap.h"
#include "core/tasks.h"

struct approver;
struct rules;

struct router {
    struct timers *timers;
    uint64_t random;
    uint64_t last_handle;
    struct idmap calls;
    size_t max_catalog;  /* bytes that one provider may list */
    struct holding kept; /* copies of requests that wait or may be sent again, and subscriptions */
    struct list providers;
    struct list standing;
    struct list held; /* calls that wait for a person (core/approval.h) */
    void (*on_stopped)(void *arg, struct provider *p);
    void *on_stopped_arg;
    bool draining; /* no consumer may open a call any more (drain.h) */
    struct stats stats;
    struct events events;
    struct observers observers;
    const struct approver *approver; /* NULL: held calls are refused */
    const struct rules *rules;       /* NULL: there are none */
    struct tasks *tasks;
    struct list taps; /* struct tap */
    struct peer own;  /* consumer of the calls that the router opens by itself (subscriptions.c) */
};

extern const struct peer_verbs subscriptions_verbs;

/* A new call of this consumer, not handed to a provider yet. */
struct call *call_new(struct router *r, struct peer *consumer, enum op op, struct span name,
                      void *consumer_data);
/* Open a call of the router's own, ahead of the calls that wait; `request` has the item's name as
 * the provider knows it. `goes_first`: the provider's other calls wait until this one has ended. */
void call_open_own(struct provider *p, const struct request *request, bool goes_first);
/* Hand over calls that waited, if there are slots now. */
void call_go_on(struct provider *p);
/*
 * Hand the call to its provider if there is a slot, else let the call wait or refuse it: the call
 * may have ended afterwards. `request` may be the copy that the call keeps, if the call was
 * admitted before.
 */
void call_admit(struct call *c, const struct request *request);
/* End all calls but the standing ones with FAIL_SHUTDOWN. `waiting_only`: only calls that wait for
 * a slot, for their server or for a person, so that no server works on them. */
void call_end_all(struct router *r, bool waiting_only);
/* The same for calls that wait for a person. */
void call_end_held(struct router *r);
/* Keep a copy of the call's request. */
void call_keep(struct call *c, const struct request *request);
/* May the call go on to its provider? If not, the call was refused (its params exceed the limit of
 * memory, or a rule denies it) or is held (a person must allow it). */
bool call_may_pass(struct call *c, const struct request *request);
/* End the call; the text is for the consumer. */
void call_finish(struct call *c, const struct outcome *outcome);
void call_fail(struct call *c, enum failure why, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Why the provider does not take a call now, in a few words. */
const char *call_reason(const struct provider *p);
/* Start the call's deadline again, with the timeout for the call's present state. */
void call_arm_deadline(struct call *c);

/* --- tap.c; calls that the router opened by itself are not shown --- */
/* Both return the first objection, or NULL. */
const char *tap_show_opened(struct router *r, const struct call *c, const struct request *request);
const char *tap_show_decided(const struct call *c, bool allowed, struct span by);
/* Does nothing for standing calls. */
void tap_show(const struct call *c, const struct step *step);
/* The outcome that the consumer is to get: `instead`, filled in here, if a tap objects. */
const struct outcome *tap_show_end(struct router *r, const struct call *c,
                                   const struct outcome *outcome, struct outcome *instead);

#endif
