/* Each call from its opening (call_open.c) to its end: queue, slot, deadline, cancelling, and
 * repeating after a provider's restart. Called by the families at both ends of a call, cmd/call.c,
 * and the other files of the router. */
#include "base/log.h"
#include "base/mem.h"
#include "core/doubts.h"
#include "core/inside.h"
#include "core/principal.h"
#include "core/subscriptions.h"

#include <stdarg.h>

void call_keep(struct call *c, const struct request *request)
{
    struct holding *kept = &c->router->kept;

    kept_request_set(&c->kept, request);
    if (kept->in)
        holding_set(kept, kept->bytes + c->kept.bytes.n);
}

/* Frees the copy of the request when the call ends. */
static void drop_kept(struct call *c)
{
    struct holding *kept = &c->router->kept;

    if (kept->in && c->kept.bytes.n)
        holding_set(kept, kept->bytes - c->kept.bytes.n);
    buf_fini(&c->kept.bytes);
}

void call_arm_deadline(struct call *c)
{
    const struct policy *policy = &c->provider->policy;
    uint64_t timeout = c->timeout ? c->timeout : policy->timeout;
    bool asks = !list_empty(&c->asks) || (c->provider->takes_turns && doubts_held(c->provider));
    uint64_t wait = asks ? policy->ask_timeout : timeout;

    if (c->state == CALL_HELD)
        wait = policy->approve_timeout;
    c->armed_at = c->router->timers->now;
    if (wait)
        timer_set(c->router->timers, &c->deadline, wait);
    else
        timer_clear(c->router->timers, &c->deadline);
}

/* --- where a call is: in the queue, with its provider, or ending --- */

/* Was the call opened by the router itself (subscriptions.c)? Such a call goes first: other calls
 * may depend on what it tells the provider. */
static bool is_routers(const struct call *c)
{
    return c->consumer == &c->router->own;
}

static void wait_for_provider(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_WAITING;
    list_append(is_routers(c) ? p->waiting.next : &p->waiting, &c->in_provider);
    p->n_waiting++;
    p->stats.queued++;
    c->router->stats.queued++;
}

/* Counts the call as open; the caller then calls the provider's `open`. */
static void take_slot(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_OPEN;
    list_append(&p->open, &c->in_provider);
    p->n_open++;
    p->stats.in_flight++;
    c->router->stats.in_flight++;
    if (!c->tries++)
        c->sent_at = c->router->timers->now;
    else
        tap_show(c, &(struct step){.kind = STEP_SENT});
}

/* Takes the call off its provider; the slot is free again. */
static void leave_provider(struct call *c)
{
    struct provider *p = c->provider;
    struct stats *all = &c->router->stats;

    if (!p)
        return;
    list_remove(&c->in_provider);
    if (c->state == CALL_OPEN) {
        p->n_open--;
        p->stats.in_flight--;
        all->in_flight--;
    } else if (c->state == CALL_WAITING) {
        p->n_waiting--;
        p->stats.queued--;
        all->queued--;
    }
}

/*
 * The call is about to end. From here on the provider is told nothing more about the call except
 * `cancel`, whatever the consumer does until its `done` runs.
 */
static void take_back(struct call *c)
{
    leave_provider(c);
    c->state = CALL_ENDING;
    timer_clear(c->router->timers, &c->deadline);
    if (c->provider)
        ask_forget_all(c);
}

static bool has_slot(const struct call *c)
{
    const struct provider *p = c->provider;

    return p->state == PROVIDER_READY && policy_admits(&p->policy, p->n_open) &&
           (!p->takes_turns || doubts_let_in(c)) && (!p->unconfirmed || is_routers(c));
}

/* The call's deadline has passed; its timer fires in this turn of the loop. */
static bool is_late(const struct call *c)
{
    return timer_is_set(&c->deadline) && c->deadline.at <= c->router->timers->now;
}

/*
 * Hands over waiting calls while there are slots. A provider that answers inside `open` causes a
 * nested call of pump, which does nothing: the loop that is already running takes the next call, so
 * that a long queue does not become a deep stack.
 */
static void pump(struct provider *p)
{
    struct call *c;

    if (p->pumping)
        return;
    p->pumping = true;
    while ((c = LIST_FIRST(&p->waiting, struct call, in_provider)) && has_slot(c) && !is_late(c)) {
        leave_provider(c);
        take_slot(c);
        p->peer.verbs->open(&p->peer, c, &c->kept.request);
    }
    p->pumping = false;
}

/* --- the end --- */

static void publish_end(const struct call *c, const struct outcome *outcome, uint64_t took)
{
    const struct provider *p = c->provider;
    bool failed = outcome->kind != OUTCOME_RESULT || outcome->is_error;

    if (c->op == OP_CALL_TOOL && (!p->built_in || p->told_as))
        events_publish(&c->router->events,
                       &(struct happening){
                           .kind = failed ? HAPPENED_TOOL_FAILED : HAPPENED_TOOL_CALLED,
                           .server = span_str(p->told_as ? p->told_as : p->alias),
                           .which = span_str(p->told_as ? p->alias : NULL),
                           .tool = span_of(c->name, c->name_n),
                           .call = c->handle,
                           .duration_ms = took,
                           .is_error = outcome->is_error,
                           .error = failed && !outcome->text.n ? outcome->body : outcome->text,
                       });
}

bool call_concerns_people(const struct call *c)
{
    const struct provider *p = c->provider;

    return c->op != OP_TELL && (!p || !p->built_in || p->told_as);
}

static void end_call(struct call *c, const struct outcome *outcome)
{
    struct router *r = c->router;
    struct provider *p = c->provider;
    uint64_t handle = c->handle;
    bool answered = c->answered;
    struct outcome instead;

    take_back(c);
    outcome = tap_show_end(r, c, outcome, &instead);
    if (p) {
        uint64_t took = r->timers->now - c->opened_at;
        p->used_at = r->timers->now;
        stats_count_outcome(&p->stats, outcome, took);
        stats_count_outcome(&r->stats, outcome, took);
        publish_end(c, outcome, took);
    }
    list_remove(&c->standing);
    list_remove(&c->in_consumer);
    idmap_take(&r->calls, c->handle);
    c->consumer->verbs->done(c->consumer, c, outcome);
    if (c->op == OP_STANDING) {
        ask_refuse_all(c);
        subscriptions_standing_ended(c);
    }
    drop_kept(c);
    if (c->counts)
        principal_give_back(c->principal, c->bytes);
    principal_release(c->principal);
    mem_free(c);
    if (!p)
        return;
    if (p->takes_turns)
        doubts_call_ended(p, handle, answered);
    pump(p);
    if (r->draining || (p->draining && !provider_has_calls(p)))
        observers_note(&r->observers);
}

/* Every call ends here. The text of a failure is redacted: it may quote a server, which may have
 * sent a secret. */
void call_finish(struct call *c, const struct outcome *outcome)
{
    if (outcome->kind != OUTCOME_FAILED) {
        end_call(c, outcome);
        return;
    }
    struct outcome told = *outcome;
    BUF_SCOPED clean = {0};
    log_redact(&clean, outcome->text);
    told.text = buf_view(&clean);
    end_call(c, &told);
}

void call_fail(struct call *c, enum failure why, bool retryable, const char *fmt, ...)
{
    const struct provider *p = c->provider;
    BUF_SCOPED text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    call_finish(c, &(struct outcome){.kind = OUTCOME_FAILED,
                                     .why = why,
                                     .text = buf_view(&text),
                                     .locked = why == FAIL_UNAVAILABLE && p->locked && !p->halted,
                                     .retryable = retryable});
}

/* Is it safe to send the call again: repeatable, or never handed to the provider? */
static bool is_harmless(const struct call *c)
{
    return c->repeatable || !c->tries;
}

const char *call_reason(const struct provider *p)
{
    if (p->no_room)
        return p->no_room;
    if (p->takes_turns && p->state == PROVIDER_READY)
        return "it asks its clients, so calls of different clients take turns";
    return p->why ? p->why : provider_state_name(p->state);
}

/* Tells the provider, which has the call, to forget it. */
static void call_off(struct call *c, enum failure why, const char *text)
{
    struct peer *provider = &c->provider->peer;

    tap_show(c, &(struct step){.kind = STEP_CALLED_OFF, .why = span_str(text)});
    provider->verbs->cancel(provider, c, why);
}

static void on_deadline(struct timer *t)
{
    struct call *c = CONTAINER_OF(t, struct call, deadline);
    struct provider *p = c->provider;
    bool waiting = c->state == CALL_WAITING, asking = !list_empty(&c->asks);
    bool held = c->state == CALL_HELD;
    unsigned long long waited = c->router->timers->now - c->opened_at;

    take_back(c);
    if (held) {
        call_fail(c, FAIL_REFUSED, false,
                  "nobody approved the call of '%s' on server '%s' within %llu s", c->name,
                  p->alias, waited / 1000);
        return;
    }
    if (waiting) {
        call_fail(c, FAIL_TIMEOUT, is_harmless(c),
                  "server '%s' had no free slot within %llu ms (%s)", p->alias, waited,
                  call_reason(p));
        return;
    }
    call_off(c, FAIL_TIMEOUT, "no answer in time");
    call_fail(c, FAIL_TIMEOUT, is_harmless(c), "server '%s' timed out: no %s within %llu ms",
              p->alias, asking ? "answer to its question" : "answer", waited);
}

/* --- consumers --- */

struct call *call_new(struct router *r, struct peer *consumer, enum op op, struct span name,
                      void *data)
{
    struct call *c = mem_zalloc(sizeof *c + name.n + 1);

    c->name_n = name.n;
    if (name.n)
        memcpy(c->name, name.p, name.n);
    c->handle = ++r->last_handle;
    c->op = op;
    c->router = r;
    c->consumer = consumer;
    c->consumer_data = data;
    c->caller = consumer;
    c->opened_at = r->timers->now;
    c->deadline.fire = on_deadline;
    list_init(&c->asks);
    list_init(&c->standing);
    list_init(&c->in_provider);
    list_append(&consumer->opened, &c->in_consumer);
    idmap_put(&r->calls, c->handle, c);
    return c;
}

static void refuse_busy(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
    call_fail(c, FAIL_BUSY, true, "server '%s' is busy: %zu calls open and %zu waiting", p->alias,
              p->n_open, p->n_waiting);
    /* With a queue of length 0 the call cannot wait for the server to start, but must still start
     * it. */
    if (p->state == PROVIDER_DOWN)
        provider_want(p);
}

static void fail_ended(struct call *c, enum failure why, const char *reason);

/* Asks for a sign-in if questions may be asked during a call of this kind; else the call fails. */
static void ask_to_sign_in(struct call *c, const struct request *request)
{
    struct provider *p = c->provider;

    c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
    if (!ask_may_come_on(c) || c->asked_sign_in) {
        fail_ended(c, FAIL_UNAVAILABLE, provider_why(p));
        return;
    }
    if (request != &c->kept.request)
        call_keep(c, request);
    c->asked_sign_in = true;
    c->provider = p->sign_in;
    call_admit(c, &c->kept.request);
}

void call_move(struct call *c, struct provider *to)
{
    struct provider *from = c->provider;
    uint64_t handle = c->handle;

    leave_provider(c);
    ask_forget_all(c);
    c->state = CALL_ENDING; /* in no queue until call_admit */
    c->provider = to;
    call_admit(c, &c->kept.request);
    if (from->takes_turns)
        doubts_call_ended(from, handle, false);
    pump(from);
}

/* The caller is the owner of a token, and the provider would act for it by somebody else's. */
static bool is_of_another(const struct call *c)
{
    return c->provider->tokenless_only && c->principal && !c->principal->tokenless;
}

void call_admit(struct call *c, const struct request *request)
{
    struct provider *p = c->provider;
    bool kept = request == &c->kept.request;

    if (is_of_another(c)) {
        c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
        call_fail(c, FAIL_UNAVAILABLE, false,
                  "each caller signs in to server '%s' for itself: connect again to do that",
                  p->alias);
        return;
    }
    if (!kept && !call_may_pass(c, request))
        return;
    if (provider_needs_sign_in(p)) {
        ask_to_sign_in(c, request);
        return;
    }
    call_arm_deadline(c);
    if (p->halted) {
        c->state = CALL_ENDING; /* never queued: n_waiting stays as it is */
        call_fail(c, FAIL_UNAVAILABLE, false, "server '%s' was stopped by its operator", p->alias);
    } else if ((list_empty(&p->waiting) || is_routers(c)) && has_slot(c)) {
        if ((c->repeatable || p->signed_in) && !kept)
            call_keep(c, request);
        take_slot(c);
        p->peer.verbs->open(&p->peer, c, request);
    } else if (p->refuses) {
        c->state = CALL_ENDING;
        call_fail(c, FAIL_UNAVAILABLE, false, "server '%s' is not available: %s", p->alias,
                  p->refuses);
    } else if (p->n_waiting >= p->policy.queue) {
        refuse_busy(c);
    } else {
        if (!kept)
            call_keep(c, request);
        wait_for_provider(c);
        const char *why = call_reason(p);
        if (p->state == PROVIDER_READY && !p->takes_turns)
            why =
                p->unconfirmed ? "its log level or subscriptions are being set" : "no slot is free";
        tap_show(c, &(struct step){.kind = STEP_WAITS, .why = span_str(why)});
        if (p->state != PROVIDER_READY)
            provider_want(p);
    }
}

void call_go_on(struct provider *p)
{
    pump(p);
}

void call_cancel(struct call *c, enum failure why)
{
    bool open = c->provider && c->state == CALL_OPEN;

    tap_show(c, &(struct step){.kind = STEP_CANCEL});
    take_back(c);
    if (open)
        call_off(c, why, "cancelled");
    call_fail(c, why, false, "cancelled");
}

void call_cancel_all(struct peer *consumer)
{
    struct call *c;

    while ((c = LIST_FIRST(&consumer->opened, struct call, in_consumer)))
        call_cancel(c, FAIL_CANCELLED);
}

/* Ends the calls that `picks` accepts. One `done` may end other calls, so each call is looked up
 * again by its handle. */
static void end_each(struct router *r, bool (*picks)(const struct call *c), enum failure why,
                     const char *reason, void (*fail)(struct call *c))
{
    uint64_t *handles = MEM_ARRAY(uint64_t, r->calls.n + 1);
    size_t n = 0, at = 0;
    void *value;

    while (idmap_next(&r->calls, &at, &handles[n], &value))
        n++;
    while (n > 0) {
        struct call *c = router_find(r, handles[--n]);
        if (!c || c->op == OP_STANDING || !picks(c))
            continue;
        bool open = c->state == CALL_OPEN;
        take_back(c);
        if (open)
            call_off(c, why, reason);
        fail(c);
    }
    mem_free(handles);
}

static bool is_any(const struct call *c)
{
    (void)c;
    return true;
}

static bool is_not_open(const struct call *c)
{
    return c->state != CALL_OPEN;
}

static void fail_stopping(struct call *c)
{
    call_fail(c, FAIL_SHUTDOWN, is_harmless(c),
              "this Rialto is being stopped, and server '%s' has not answered so far",
              c->provider->alias);
}

void call_end_all(struct router *r, bool waiting_only)
{
    end_each(r, waiting_only ? is_not_open : is_any, FAIL_SHUTDOWN, "this Rialto is being stopped",
             fail_stopping);
}

static bool is_held(const struct call *c)
{
    return c->state == CALL_HELD;
}

static void fail_upgraded(struct call *c)
{
    call_fail(c, FAIL_SHUTDOWN, true,
              "this Rialto is being upgraded, and nobody has allowed the call so far");
}

void call_end_held(struct router *r)
{
    end_each(r, is_held, FAIL_SHUTDOWN, "this Rialto is being upgraded", fail_upgraded);
}

static bool has_lost_token(const struct call *c)
{
    return c->principal && c->principal->ended;
}

static void fail_without_token(struct call *c)
{
    call_fail(c, FAIL_REFUSED, false, "the token '%s' is not valid any more", c->principal->name);
}

void call_end_principals(struct router *r)
{
    end_each(r, has_lost_token, FAIL_CANCELLED, "the token is not valid any more",
             fail_without_token);
}

/* --- providers --- */

/* Progress: the provider is alive, so the call gets its timeout again, up to timeout_max. A
 * consumer that set its own timeout does not wait longer. */
static void extend(struct call *c)
{
    const struct policy *policy = &c->provider->policy;
    uint64_t now = c->router->timers->now, end = now + policy->timeout;
    uint64_t last = c->armed_at + policy->timeout_max;

    if (!policy->progress_extends || c->timeout || !policy->timeout || !list_empty(&c->asks))
        return;
    if (policy->timeout_max && end > last)
        end = last;
    if (end > c->deadline.at)
        timer_set(c->router->timers, &c->deadline, end - now);
}

void call_event(struct call *c, const struct event *event)
{
    if (event->kind == EVENT_PROGRESS) {
        extend(c);
        if (!c->wants_progress)
            return;
    }
    c->provider->stats.events++;
    c->router->stats.events++;
    tap_show(c, &(struct step){.kind = STEP_EVENT, .event = event});
    c->consumer->verbs->event(c->consumer, c, event);
}

/* Puts an open call back into the queue, to be sent again once its provider is back. */
static void requeue(struct call *c, struct span why)
{
    tap_show(c, &(struct step){.kind = STEP_RETRY, .why = why});
    leave_provider(c);
    c->provider->stats.retried++;
    c->router->stats.retried++;
    wait_for_provider(c);
}

/* The provider's question was refused because calls of several agents were open: the provider takes
 * turns now, so the call can be made again. */
static void end_unasked(struct call *c)
{
    struct provider *p = c->provider;
    uint64_t handle = c->handle;

    if (!c->repeatable || c->tries > 1) {
        call_fail(
            c, FAIL_BUSY, true,
            "server '%s' asked a question while calls of several clients were open, so nobody was "
            "asked. Call again: from now on these calls take turns",
            p->alias);
        return;
    }
    requeue(c, SPAN("it asked while calls of several clients were open: these take turns now"));
    doubts_call_ended(p, handle, true);
    pump(p);
}

void call_done(struct call *c, const struct outcome *outcome)
{
    struct provider *sign_in = c->provider->sign_in;

    c->answered = outcome->kind != OUTCOME_FAILED;
    if (outcome->locked && sign_in && c->kept.bytes.n && ask_may_come_on(c) && !c->asked_sign_in) {
        c->asked_sign_in = true; /* refused unread, for lack of credentials: may be sent again */
        call_move(c, sign_in);
        return;
    }
    if (c->provider->n_refused && doubts_explain(c, outcome))
        end_unasked(c);
    else
        call_finish(c, outcome);
}

/* --- calls when their provider starts or ends --- */

void call_provider_ready(struct provider *p)
{
    subscriptions_provider_ready(p);
    pump(p);
}

void call_hand_over(struct provider *from, struct provider *to, bool seen_only)
{
    struct list moving;
    struct call *c;

    list_init(&moving);
    LIST_EACH_SAFE (&from->waiting, it) {
        c = LIST_ENTRY(it, struct call, in_provider);
        if (seen_only && !(c->view && view_has(c->view, to)))
            continue;
        leave_provider(c);
        c->state = CALL_ENDING; /* in no queue until call_admit */
        c->provider = to;
        list_append(&moving, &c->in_provider);
    }
    while ((c = LIST_FIRST(&moving, struct call, in_provider))) {
        list_remove(&c->in_provider);
        call_admit(c, &c->kept.request);
    }
}

static bool may_repeat(const struct call *c, enum failure why)
{
    return why == FAIL_CRASHED && c->repeatable && c->tries < 2;
}

static void fail_ended(struct call *c, enum failure why, const char *reason)
{
    const char *alias = c->provider->alias;

    if (why == FAIL_CRASHED)
        call_fail(c, why, is_harmless(c), "server '%s' ended while the call was open: %s", alias,
                  reason);
    else if (why == FAIL_UNAVAILABLE)
        call_fail(c, why, is_harmless(c), "server '%s' is not available: %s", alias, reason);
    else if (why == FAIL_BUSY)
        call_fail(c, why, true, "server '%s' cannot be started now: %s", alias, reason);
    else
        call_fail(c, why, is_harmless(c), "server '%s' is being stopped", alias);
}

/*
 * First all calls are taken off the provider, then each `done` is called: inside a `done` a
 * consumer may cancel the next of these calls, open others or start the provider again; a cancel
 * must not reach the instance that has ended, and a new call must not end with that instance.
 */
void call_provider_ended(struct provider *p, enum failure why)
{
    BUF_SCOPED reason = {0};
    struct list ending;
    struct call *c;

    doubts_forget_all(p);
    if (p->stand_in && (why == FAIL_UNAVAILABLE || why == FAIL_BUSY))
        call_hand_over(p, p->stand_in, false);
    if (provider_needs_sign_in(p) && why != FAIL_SHUTDOWN)
        call_hand_over(p, p, false); /* call_admit now asks a person to sign in */
    buf_str(&reason, call_reason(p));
    list_init(&ending);
    while ((c = LIST_FIRST(&p->open, struct call, in_provider))) {
        if (may_repeat(c, why)) {
            requeue(c, buf_view(&reason));
            continue;
        }
        take_back(c);
        list_append(&ending, &c->in_provider);
        if (why == FAIL_SHUTDOWN)
            call_off(c, why, "the server is being stopped");
    }
    while (why != FAIL_CRASHED && (c = LIST_FIRST(&p->waiting, struct call, in_provider))) {
        take_back(c);
        list_append(&ending, &c->in_provider);
    }
    /* A held call needs no running provider, but ends when its provider is not wanted any more. */
    while (why == FAIL_SHUTDOWN && (c = LIST_FIRST(&p->held, struct call, in_provider))) {
        take_back(c);
        list_append(&ending, &c->in_provider);
    }
    while ((c = LIST_FIRST(&ending, struct call, in_provider)))
        fail_ended(c, why, buf_cstr(&reason));
    ask_forget_standing(p);
    if (why == FAIL_CRASHED && !list_empty(&p->waiting))
        provider_want(p);
}
