/* Each call from its opening to its end: queue, slot, deadline, cancelling, and repeating after a
 * provider's restart. Called by the families at both ends of a call, cmd/call.c, and the other
 * files of the router. */
#include "base/log.h"
#include "base/mem.h"
#include "core/approval.h"
#include "core/doubts.h"
#include "core/inside.h"
#include "core/principal.h"
#include "core/route.h"
#include "core/rules.h"
#include "core/tap.h"
#include "core/wishes.h"

#include <stdarg.h>
#include <stdio.h>

void call_keep_request(struct kept_request *k, const struct request *q)
{
    const struct span pieces[] = {q->name, q->params, q->meta_keep, q->log_level, q->declares};
    struct span kept[COUNT_OF(pieces)];
    size_t at = 0;

    k->request = *q;
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        buf_span(&k->bytes, pieces[i]);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        kept[i] = span_of(k->bytes.p + at, pieces[i].n);
        at += pieces[i].n;
    }
    k->request.name = kept[0];
    k->request.params = kept[1];
    k->request.meta_keep = kept[2];
    k->request.log_level = kept[3];
    k->request.declares = kept[4];
    k->request.task_owner = NULL;
}

void call_keep(struct call *c, const struct request *request)
{
    struct holding *kept = &c->router->kept;

    call_keep_request(&c->kept, request);
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

void call_show(const struct call *c, const struct step *step)
{
    if (!c->provider || c->consumer == &c->router->own)
        return;
    LIST_EACH (&c->router->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        if (tap->stepped)
            tap->stepped(tap, c, step);
    }
}

/* --- the places of a call: in line, with its provider, or on the way out --- */

/* Was the call opened by the router itself (wishes.c)? Such a call goes first: others may depend on
 * what it tells the provider. */
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
        call_show(c, &(struct step){.kind = STEP_SENT});
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
 * The call is about to end. From here on the provider is told nothing more about the call but
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

/* Shows the call to the taps; NULL, or the first objection. */
static const char *show_opened(struct router *r, const struct call *c,
                               const struct request *request)
{
    const char *why = NULL;

    LIST_EACH (&r->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        const char *objection = tap->opened(tap, c, request);
        why = why ? why : objection;
    }
    return why;
}

/* Shows the end to the taps; the outcome to be told, `instead` if a tap objects. Calls that the
 * router opened by itself are not shown. */
static const struct outcome *show_end(struct router *r, const struct call *c,
                                      const struct outcome *outcome, struct outcome *instead)
{
    if (c->consumer == &r->own || c->op == OP_STANDING)
        return outcome;
    LIST_EACH (&r->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        const char *why = tap->ended(tap, c, outcome);
        if (!why || outcome->kind == OUTCOME_FAILED)
            continue;
        *instead = (struct outcome){
            .kind = OUTCOME_FAILED, .why = FAIL_UNAVAILABLE, .text = span_str(why)};
        outcome = instead;
    }
    return outcome;
}

static void end_call(struct call *c, const struct outcome *outcome)
{
    struct router *r = c->router;
    struct provider *p = c->provider;
    uint64_t handle = c->handle;
    bool answered = c->answered;
    struct outcome instead;

    take_back(c);
    outcome = show_end(r, c, outcome, &instead);
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
        wishes_standing_ended(c);
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

/* Every call ends here. The text of a failure is redacted: it may quote a server, and so a secret.
 */
static void finish(struct call *c, const struct outcome *outcome)
{
    if (outcome->kind != OUTCOME_FAILED) {
        end_call(c, outcome);
        return;
    }
    struct outcome told = *outcome;
    struct buf clean = {0};
    log_redact(&clean, outcome->text);
    told.text = buf_view(&clean);
    end_call(c, &told);
    buf_fini(&clean);
}

static void fail(struct call *c, enum failure why, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void fail(struct call *c, enum failure why, bool retryable, const char *fmt, ...)
{
    const struct provider *p = c->provider;
    struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    finish(c, &(struct outcome){.kind = OUTCOME_FAILED,
                                .why = why,
                                .text = buf_view(&text),
                                .locked = why == FAIL_UNAVAILABLE && p->locked && !p->halted,
                                .retryable = retryable});
    buf_fini(&text);
}

/* Is it safe to send the call again: repeatable, or never handed to the provider? */
static bool is_harmless(const struct call *c)
{
    return c->repeatable || !c->tries;
}

static const char *reason_of(const struct provider *p)
{
    if (p->no_room)
        return p->no_room;
    if (p->takes_turns && p->state == PROVIDER_READY)
        return "it asks its clients, so calls of different clients take turns";
    return p->why[0] ? p->why : provider_state_name(p->state);
}

/* The provider is to forget the call, which it has. */
static void call_off(struct call *c, enum failure why, const char *text)
{
    struct peer *provider = &c->provider->peer;

    call_show(c, &(struct step){.kind = STEP_CALLED_OFF, .why = span_str(text)});
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
        fail(c, FAIL_REFUSED, false,
             "nobody approved the call of '%s' on server '%s' within %llu s", c->name, p->alias,
             waited / 1000);
        return;
    }
    if (waiting) {
        fail(c, FAIL_TIMEOUT, is_harmless(c), "server '%s' had no free slot within %llu ms (%s)",
             p->alias, waited, reason_of(p));
        return;
    }
    call_off(c, FAIL_TIMEOUT, "no answer in time");
    fail(c, FAIL_TIMEOUT, is_harmless(c), "server '%s' timed out: no %s within %llu ms", p->alias,
         asking ? "answer to its question" : "answer", waited);
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

static struct peer *caller_of(struct peer *consumer, const struct request *request)
{
    return request->behalf ? request->behalf->caller : consumer;
}

/* The call exists only during this `done` and has no entry in the router. */
static void refuse(struct router *r, struct peer *consumer, const struct request *request,
                   const struct outcome *outcome, void *data)
{
    struct call stub = {.handle = ++r->last_handle,
                        .op = request->op,
                        .consumer = consumer,
                        .consumer_data = data,
                        .caller = caller_of(consumer, request),
                        .opened_at = r->timers->now};

    stub.principal = stub.caller->principal;

    r->stats.opened++;
    r->stats.failed[outcome->why]++;
    struct outcome instead;
    (void)show_opened(r, &stub, request); /* the call is not made anyway */
    consumer->verbs->done(consumer, &stub, show_end(r, &stub, outcome, &instead));
}

static void refuse_unknown(struct router *r, struct peer *consumer, const struct request *request,
                           struct view *v, struct span why, void *data)
{
    struct provider *p;
    struct buf text = {0};

    buf_printf(&text, SPAN_FMT ": " SPAN_FMT, SPAN_ARG(why), SPAN_ARG(request->name));
    /* The name may belong to a server that is not up yet. */
    for (size_t i = 0; (p = view_member(v, i)); i++)
        if (p->state != PROVIDER_READY)
            buf_printf(&text, "; server '%s' is not available: %s", p->alias, reason_of(p));
    refuse(r, consumer, request,
           &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_UNKNOWN, .text = buf_view(&text)},
           data);
    buf_fini(&text);
}

static void refuse_busy(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_ENDING; /* the call never was in a queue */
    fail(c, FAIL_BUSY, true, "server '%s' is busy: %zu calls open and %zu waiting", p->alias,
         p->n_open, p->n_waiting);
    /* With a queue of length 0 the call cannot wait for the server to start, but must still start
     * it. */
    if (p->state == PROVIDER_DOWN)
        provider_want(p);
}

static void refuse_full(struct call *c)
{
    c->state = CALL_ENDING; /* the call never was in a queue */
    fail(c, FAIL_BUSY, true,
         "the bridge holds as much for its peers as it may (limits.memory): try again later");
}

static void refuse_by_rule(struct call *c, const struct ruling *ruling)
{
    const char *alias = c->provider->alias;

    c->state = CALL_ENDING; /* the call never was in a queue */
    if (ruling->misleads.n)
        fail(c, FAIL_ARGUMENTS, false, "the arguments of '%s' on server '%s' mislead: " SPAN_FMT,
             c->name, alias, SPAN_ARG(ruling->misleads));
    else
        fail(c, FAIL_DENIED, false, "the call of '%s' on server '%s' is denied by " SPAN_FMT,
             c->name, alias, SPAN_ARG(ruling->by->name));
}

/* The log and the recorder name the rule that decided; the log names allowed calls only if asked
 * for details. */
static void write_ruling_down(struct call *c, const struct rule *by)
{
    static const char *const did[] = {
        [RULE_ALLOW] = "allowed", [RULE_DENY] = "denied", [RULE_ASK] = "held"};

    log_line(by->then == RULE_ALLOW ? LOG_DEBUG : LOG_INFO, c->provider->alias,
             "the call of '%s' on server '%s' was %s by " SPAN_FMT, c->name, c->provider->alias,
             did[by->then], SPAN_ARG(by->name));
    LIST_EACH (&c->router->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        if (by->then != RULE_ASK)
            (void)tap->decided(tap, c, by->then == RULE_ALLOW, by->name);
    }
}

/* What the rules say about the call. */
enum { RULES_SILENT, RULES_ALLOW, RULES_ENDED };

/* Tools of the bridge itself are not judged, but the calls that they make are. */
static bool is_our_own(const struct provider *p)
{
    return p->built_in && !p->told_as;
}

static int ask_rules(struct call *c, const struct request *request)
{
    const struct rules *rules = c->router->rules;
    BUF_SCOPED scratch = {0};

    if (!rules || c->provider->halted || is_our_own(c->provider))
        return RULES_SILENT;
    struct ruling ruling = rules_decide(rules, c->provider, request, &scratch);
    if (ruling.by)
        write_ruling_down(c, ruling.by);
    else if (!ruling.misleads.n)
        return RULES_SILENT;
    if (ruling.by && ruling.by->then == RULE_ALLOW)
        return RULES_ALLOW;
    if (ruling.by && ruling.by->then == RULE_ASK) {
        c->rule = (unsigned)(ruling.by - rules->rows) + 1;
        approval_hold(c, request);
    } else {
        refuse_by_rule(c, &ruling);
    }
    return RULES_ENDED;
}

enum call_prospect call_foresee(const struct router *r, struct view *v,
                                const struct request *request)
{
    static const enum call_prospect by_rule[] = {
        [RULE_ALLOW] = PROSPECT_FREE, [RULE_DENY] = PROSPECT_DENIED, [RULE_ASK] = PROSPECT_ASKED};
    BUF_SCOPED scratch = {0};
    struct ruling ruling = {0};
    struct request own = *request;
    struct route route;

    if (!route_find(v, request, &route))
        return PROSPECT_DENIED;
    own.name = route.own_name;
    if (r->rules)
        ruling = rules_decide(r->rules, route.provider, &own, &scratch);
    if (ruling.by)
        return by_rule[ruling.by->then];
    if (ruling.misleads.n)
        return PROSPECT_DENIED;
    return approval_needed(route.provider, own.name) ? PROSPECT_ASKED : PROSPECT_FREE;
}

/* False if the call was refused, because its params exceed the limit of memory or a rule denies it,
 * or held, because a person must allow it. */
static bool may_pass(struct call *c, const struct request *request)
{
    struct router *r = c->router;
    struct provider *p = c->provider;

    if (r->kept.in && !holdings_fit(r->kept.in, request->params.n)) {
        refuse_full(c);
        return false;
    }
    if (request->op != OP_CALL_TOOL)
        return true;
    int said = ask_rules(c, request);
    if (said == RULES_SILENT && !p->halted && approval_needed(p, request->name)) {
        approval_hold(c, request);
        return false;
    }
    return said != RULES_ENDED;
}

static void fail_ended(struct call *c, enum failure why, const char *reason);

/* Asks for a sign-in, if somebody can be asked during a call of this kind; else the call fails. */
static void ask_to_sign_in(struct call *c, const struct request *request)
{
    struct provider *p = c->provider;

    c->state = CALL_ENDING; /* the call never was in a queue */
    if (!ask_may_come_on(c) || c->asked_sign_in) {
        fail_ended(c, FAIL_UNAVAILABLE, p->why);
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
    c->state = CALL_ENDING; /* in no queue until it is admitted */
    c->provider = to;
    call_admit(c, &c->kept.request);
    if (from->takes_turns)
        doubts_call_ended(from, handle, false);
    pump(from);
}

void call_admit(struct call *c, const struct request *request)
{
    struct provider *p = c->provider;
    bool kept = request == &c->kept.request;

    if (!kept && !may_pass(c, request))
        return;
    if (provider_needs_sign_in(p)) {
        ask_to_sign_in(c, request);
        return;
    }
    call_arm_deadline(c);
    if (p->halted) {
        c->state = CALL_ENDING; /* the call never was in a queue */
        fail(c, FAIL_UNAVAILABLE, false, "server '%s' was stopped by its operator", p->alias);
    } else if ((list_empty(&p->waiting) || is_routers(c)) && has_slot(c)) {
        if ((c->repeatable || p->signed_in) && !kept)
            call_keep(c, request);
        take_slot(c);
        p->peer.verbs->open(&p->peer, c, request);
    } else if (p->refuses) {
        c->state = CALL_ENDING;
        fail(c, FAIL_UNAVAILABLE, false, "server '%s' is not available: %s", p->alias, p->refuses);
    } else if (p->n_waiting >= p->policy.queue) {
        refuse_busy(c);
    } else {
        if (!kept)
            call_keep(c, request);
        wait_for_provider(c);
        const char *why = reason_of(p);
        if (p->state == PROVIDER_READY && !p->takes_turns)
            why =
                p->unconfirmed ? "its log level or subscriptions are being set" : "no slot is free";
        call_show(c, &(struct step){.kind = STEP_WAITS, .why = span_str(why)});
        if (p->state != PROVIDER_READY)
            provider_want(p);
    }
}

/* A new call for this provider, not handed over yet; `request` has the provider's own name of the
 * item. */
static struct call *call_new_at(struct provider *p, struct peer *consumer, struct view *v,
                                const struct request *request, void *data)
{
    struct router *r = p->router;
    struct call *c = call_new(r, consumer, request->op, request->name, data);

    c->provider = p;
    c->caller = caller_of(consumer, request);
    c->principal = principal_hold(c->caller->principal);
    c->view = v;
    c->sees_whole = !v || view_is_whole(v);
    c->party = request->party;
    c->anybody = request->anybody;
    c->answers = request->answers;
    c->wants_progress = request->wants_progress;
    c->timeout = request->timeout;
    c->takes_structured = request->takes_structured;
    p->stats.opened++;
    r->stats.opened++;
    if (consumer != &r->own)
        c->objection = show_opened(r, c, request);
    return c;
}

/* Where a request about a task goes: to the server that runs it, if the consumer still sees that.
 */
static bool find_task(struct router *r, struct peer *consumer, const struct view *v,
                      const struct request *request, struct route *out)
{
    struct provider *p;

    if (request->op < OP_TASK_GET)
        return false;
    const char *owner = request->task_owner
                            ? request->task_owner
                            : principal_name(caller_of(consumer, request)->principal);
    const struct task *t = tasks_find(r->tasks, request->name, owner, request->party);
    out->why = SPAN("Task not found");
    for (size_t i = 0; t && (p = view_member(v, i)); i++) {
        if (strcmp(p->alias, t->server) != 0)
            continue;
        out->provider = p;
        out->own_name = span_str(t->own);
        return true;
    }
    return false;
}

/* False: the caller's token has a limit, and the call has ended. A call of our own tools does not
 * count: the calls that these make for it do. */
static bool is_within_limits(struct call *c, const struct request *request)
{
    uint64_t retry_ms;
    BUF_SCOPED why = {0};

    if (!call_concerns_people(c))
        return true;
    c->counts =
        principal_take(c->principal, c->router->timers->now, request->params.n, &why, &retry_ms);
    c->bytes = request->params.n;
    if (c->counts)
        return true;
    if (retry_ms)
        buf_printf(&why, ": try again in %llu s", (unsigned long long)(retry_ms + 999) / 1000);
    c->state = CALL_ENDING; /* the call never was in a queue */
    finish(c, &(struct outcome){.kind = OUTCOME_FAILED,
                                .why = FAIL_LIMITED,
                                .text = buf_view(&why),
                                .retry_ms = retry_ms,
                                .retryable = retry_ms > 0});
    return false;
}

struct call *call_open(struct router *r, struct peer *consumer, struct view *v,
                       const struct request *request, void *data)
{
    struct route route;

    if (r->draining) {
        refuse(r, consumer, request,
               &(struct outcome){.kind = OUTCOME_FAILED,
                                 .why = FAIL_SHUTDOWN,
                                 .text = SPAN("this Rialto is being stopped: no more calls"),
                                 .retryable = true},
               data);
        return NULL;
    }
    if (!route_find(v, request, &route) && !find_task(r, consumer, v, request, &route)) {
        refuse_unknown(r, consumer, request, v, route.why, data);
        return NULL;
    }
    struct request own = *request;
    own.name = route.own_name;
    struct call *c = call_new_at(route.provider, consumer, v, &own, data);
    uint64_t handle = c->handle;
    c->repeatable = route.repeatable;
    if (c->objection) {
        c->state = CALL_ENDING; /* the call never was in a queue */
        fail(c, FAIL_UNAVAILABLE, true, "%s", c->objection);
    } else if (!c->principal || is_within_limits(c, &own)) {
        call_admit(c, &own);
    }
    return router_find(r, handle);
}

void call_open_own(struct provider *p, const struct request *request, bool goes_first)
{
    struct call *c = call_new_at(p, &p->router->own, NULL, request, NULL);

    c->goes_first = goes_first;
    call_admit(c, request);
}

void call_go_on(struct provider *p)
{
    pump(p);
}

void call_cancel(struct call *c, enum failure why)
{
    bool open = c->provider && c->state == CALL_OPEN;

    call_show(c, &(struct step){.kind = STEP_CANCEL});
    take_back(c);
    if (open)
        call_off(c, why, "cancelled");
    fail(c, why, false, "cancelled");
}

void call_cancel_all(struct peer *consumer)
{
    struct call *c;

    while ((c = LIST_FIRST(&consumer->opened, struct call, in_consumer)))
        call_cancel(c, FAIL_CANCELLED);
}

/* The handles of all calls: one `done` may end other calls. The caller frees them. */
static uint64_t *all_handles(const struct router *r, size_t *n)
{
    uint64_t *handles = MEM_ARRAY(uint64_t, r->calls.n + 1);
    size_t at = 0;
    void *value;

    for (*n = 0; idmap_next(&r->calls, &at, &handles[*n], &value); ++*n)
        ;
    return handles;
}

static void give_up(struct call *c, enum failure why, const char *text)
{
    bool open = c->state == CALL_OPEN;

    take_back(c);
    if (open)
        call_off(c, why, text);
}

void call_end_all(struct router *r, bool waiting_only)
{
    size_t n;
    uint64_t *handles = all_handles(r, &n);

    while (n > 0) {
        struct call *c = router_find(r, handles[--n]);
        if (!c || c->op == OP_STANDING || (c->state == CALL_OPEN && waiting_only))
            continue;
        give_up(c, FAIL_SHUTDOWN, "this Rialto is being stopped");
        fail(c, FAIL_SHUTDOWN, is_harmless(c),
             "this Rialto is being stopped, and server '%s' has not answered so far",
             c->provider->alias);
    }
    mem_free(handles);
}

void call_end_held(struct router *r)
{
    size_t n;
    uint64_t *handles = all_handles(r, &n);

    while (n > 0) {
        struct call *c = router_find(r, handles[--n]);
        if (!c || c->state != CALL_HELD)
            continue;
        give_up(c, FAIL_SHUTDOWN, "this Rialto is being upgraded");
        fail(c, FAIL_SHUTDOWN, true,
             "this Rialto is being upgraded, and nobody has allowed the call so far");
    }
    mem_free(handles);
}

void call_end_principals(struct router *r)
{
    size_t n;
    uint64_t *handles = all_handles(r, &n);

    while (n > 0) {
        struct call *c = router_find(r, handles[--n]);
        if (!c || !c->principal || !c->principal->ended || c->op == OP_STANDING)
            continue;
        give_up(c, FAIL_CANCELLED, "the token is not valid any more");
        fail(c, FAIL_REFUSED, false, "the token '%s' is not valid any more", c->principal->name);
    }
    mem_free(handles);
}

/* --- providers --- */

/* Progress: the provider is alive, so the call gets its timeout again, up to the bound. A consumer
 * that said how long it waits does not wait longer. */
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
    call_show(c, &(struct step){.kind = STEP_EVENT, .event = event});
    c->consumer->verbs->event(c->consumer, c, event);
}

/* Puts an open call back in line, to be sent again once its provider is back. */
static void requeue(struct call *c, struct span why)
{
    call_show(c, &(struct step){.kind = STEP_RETRY, .why = why});
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
        fail(c, FAIL_BUSY, true,
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
        c->asked_sign_in = true; /* the server refused the call before it looked at it */
        call_move(c, sign_in);
        return;
    }
    if (c->provider->n_refused && doubts_explain(c, outcome))
        end_unasked(c);
    else
        finish(c, outcome);
}

/* --- calls when their provider starts or ends --- */

void call_provider_ready(struct provider *p)
{
    wishes_provider_ready(p);
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
        c->state = CALL_ENDING; /* in no queue until it is admitted */
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
        fail(c, why, is_harmless(c), "server '%s' ended while the call was open: %s", alias,
             reason);
    else if (why == FAIL_UNAVAILABLE)
        fail(c, why, is_harmless(c), "server '%s' is not available: %s", alias, reason);
    else if (why == FAIL_BUSY)
        fail(c, why, true, "server '%s' cannot be started now: %s", alias, reason);
    else
        fail(c, why, is_harmless(c), "server '%s' is being stopped", alias);
}

/*
 * First all calls are taken off the provider, then each `done` is called: inside a `done` a
 * consumer may cancel the next of these calls, open others or start the provider again; a cancel
 * must not reach the instance that has ended, and a new call must not end with that instance.
 */
void call_provider_ended(struct provider *p, enum failure why)
{
    char reason[sizeof p->why];
    struct list ending;
    struct call *c;

    ask_forget_standing(p);
    doubts_forget_all(p);
    if (p->stand_in && (why == FAIL_UNAVAILABLE || why == FAIL_BUSY))
        call_hand_over(p, p->stand_in, false);
    if (provider_needs_sign_in(p) && why != FAIL_SHUTDOWN)
        call_hand_over(p, p, false); /* admitted anew, somebody is asked to sign in */
    snprintf(reason, sizeof reason, "%s", reason_of(p));
    list_init(&ending);
    while ((c = LIST_FIRST(&p->open, struct call, in_provider))) {
        if (may_repeat(c, why)) {
            requeue(c, span_str(reason));
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
    /* A held call needs no running provider, but ends with a provider that is not wanted any more.
     * */
    while (why == FAIL_SHUTDOWN && (c = LIST_FIRST(&p->held, struct call, in_provider))) {
        take_back(c);
        list_append(&ending, &c->in_provider);
    }
    while ((c = LIST_FIRST(&ending, struct call, in_provider)))
        fail_ended(c, why, reason);
    if (why == FAIL_CRASHED && !list_empty(&p->waiting))
        provider_want(p);
}
