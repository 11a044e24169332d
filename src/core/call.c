#include "base/log.h"
#include "base/mem.h"
#include "core/inside.h"
#include "core/route.h"
#include "core/wishes.h"

#include <stdarg.h>
#include <stdio.h>

/* A provider may have this many questions open on one call; more are refused. */
enum { MAX_OPEN_ASKS = 64 };

/* One ask that waits for its answer. */
struct open_ask {
    struct list node;
    struct provider *provider; /* who asked */
    size_t key_n;
    char key[];
};

void request_keep(struct kept_request *k, const struct request *q)
{
    const struct span pieces[] = {q->name, q->params, q->meta_keep, q->log_level};
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
}

static void arm_deadline(struct call *c)
{
    const struct policy *policy = &c->provider->policy;
    uint64_t wait = list_empty(&c->asks) ? policy->timeout : policy->ask_timeout;

    if (wait)
        timer_set(c->router->timers, &c->deadline, wait);
    else
        timer_clear(c->router->timers, &c->deadline);
}

static void forget_asks(struct call *c)
{
    LIST_EACH_SAFE (&c->asks, it) {
        list_remove(it);
        mem_free(LIST_ENTRY(it, struct open_ask, node));
    }
    c->n_asks = 0;
}

/* --- the places of a call: in line, with its provider, or on the way out --- */

static void wait_for_provider(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_WAITING;
    list_append(&p->waiting, &c->in_provider);
    p->n_waiting++;
    p->stats.queued++;
    c->router->stats.queued++;
}

static void hand_over(struct call *c, const struct request *request)
{
    struct provider *p = c->provider;

    c->state = CALL_OPEN;
    c->tries++;
    list_append(&p->open, &c->in_provider);
    p->n_open++;
    p->stats.in_flight++;
    c->router->stats.in_flight++;
    p->peer.verbs->open(&p->peer, c, request);
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
 * The call's way ends here. After this its provider is told nothing more about it but `cancel`,
 * whatever the consumer does until its `done` has come.
 */
static void take_back(struct call *c)
{
    leave_provider(c);
    c->state = CALL_ENDING;
    timer_clear(c->router->timers, &c->deadline);
    forget_asks(c);
}

static bool has_slot(const struct provider *p)
{
    return p->state == PROVIDER_READY && policy_admits(&p->policy, p->n_open);
}

/* Its time is over, and the clock is just about to say so. */
static bool is_late(const struct call *c)
{
    return timer_is_set(&c->deadline) && c->deadline.at <= c->router->timers->now;
}

/*
 * Hands over what waits, as far as there are slots. A provider that answers inside `open` comes
 * here again from there: the loop that is already running takes the next call, so that a long
 * queue does not become a deep stack.
 */
static void pump(struct provider *p)
{
    struct call *c;

    if (p->pumping)
        return;
    p->pumping = true;
    while (has_slot(p) && (c = LIST_FIRST(&p->waiting, struct call, in_provider)) && !is_late(c)) {
        leave_provider(c);
        hand_over(c, &c->kept.request);
    }
    p->pumping = false;
}

/* --- the end --- */

/* The one end of every call. */
static void finish(struct call *c, const struct outcome *outcome)
{
    struct router *r = c->router;
    struct provider *p = c->provider;

    take_back(c);
    if (p) {
        uint64_t took = r->timers->now - c->opened_at;
        stats_count_outcome(&p->stats, outcome, took);
        stats_count_outcome(&r->stats, outcome, took);
    }
    list_remove(&c->standing);
    list_remove(&c->in_consumer);
    idmap_take(&r->calls, c->handle);
    if (c->op == OP_STANDING)
        wishes_standing_ended(c);
    c->consumer->verbs->done(c->consumer, c, outcome);
    buf_fini(&c->kept.bytes);
    mem_free(c);
    if (p)
        pump(p);
}

static void fail(struct call *c, enum failure why, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void fail(struct call *c, enum failure why, bool retryable, const char *fmt, ...)
{
    struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    finish(c, &(struct outcome){.kind = OUTCOME_FAILED,
                                .why = why,
                                .text = buf_view(&text),
                                .retryable = retryable});
    buf_fini(&text);
}

/* Can calling again do no harm that this call has not done? */
static bool is_harmless(const struct call *c)
{
    return c->repeatable || !c->tries;
}

static const char *reason_of(const struct provider *p)
{
    return p->why[0] ? p->why : provider_state_name(p->state);
}

static void on_deadline(struct timer *t)
{
    struct call *c = CONTAINER_OF(t, struct call, deadline);
    struct provider *p = c->provider;
    bool waiting = c->state == CALL_WAITING, asking = !list_empty(&c->asks);
    unsigned long long waited = c->router->timers->now - c->opened_at;

    take_back(c);
    if (waiting) {
        fail(c, FAIL_TIMEOUT, is_harmless(c), "server '%s' had no free slot within %llu ms (%s)",
             p->alias, waited, reason_of(p));
        return;
    }
    p->peer.verbs->cancel(&p->peer, c, FAIL_TIMEOUT);
    fail(c, FAIL_TIMEOUT, is_harmless(c), "server '%s' timed out: no %s within %llu ms", p->alias,
         asking ? "answer to its question" : "answer", waited);
}

/* --- consumers --- */

struct call *call_new(struct router *r, struct peer *consumer, enum op op, void *data)
{
    struct call *c = MEM_NEW(struct call);

    c->handle = ++r->last_handle;
    c->op = op;
    c->router = r;
    c->consumer = consumer;
    c->consumer_data = data;
    c->opened_at = r->timers->now;
    c->deadline.fire = on_deadline;
    list_init(&c->asks);
    list_init(&c->standing);
    list_init(&c->in_provider);
    list_append(&consumer->opened, &c->in_consumer);
    idmap_put(&r->calls, c->handle, c);
    return c;
}

/* Nothing to look up later: the call exists only for the length of this `done`. */
static void refuse_unknown(struct router *r, struct peer *consumer, const struct request *request,
                           struct view *v, struct span why, void *data)
{
    struct call stub = {.op = request->op, .consumer = consumer, .consumer_data = data};
    struct provider *p;
    struct buf text = {0};

    buf_printf(&text, SPAN_FMT ": " SPAN_FMT, SPAN_ARG(why), SPAN_ARG(request->name));
    /* It may well be one of theirs. */
    for (size_t i = 0; (p = view_member(v, i)); i++)
        if (p->state != PROVIDER_READY)
            buf_printf(&text, "; server '%s' is not available: %s", p->alias, reason_of(p));
    r->stats.failed[FAIL_UNKNOWN]++;
    consumer->verbs->done(
        consumer, &stub,
        &(struct outcome){.kind = OUTCOME_FAILED, .why = FAIL_UNKNOWN, .text = buf_view(&text)});
    buf_fini(&text);
}

static void refuse_busy(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_ENDING; /* it never was in line */
    fail(c, FAIL_BUSY, true, "server '%s' is busy: %zu calls open and %zu waiting", p->alias,
         p->n_open, p->n_waiting);
    /* With a queue of none a call cannot wait for the start, but it must still cause it. */
    if (p->state == PROVIDER_DOWN)
        provider_want(p);
}

struct call *router_open(struct router *r, struct peer *consumer, struct view *v,
                         const struct request *request, void *data)
{
    struct route route;

    r->stats.opened++;
    if (!route_find(v, request, &route)) {
        refuse_unknown(r, consumer, request, v, route.why, data);
        return NULL;
    }

    struct request own = *request;
    own.name = route.own_name;
    return call_open_on(r, consumer, v, route.provider, route.repeatable, &own, data);
}

struct call *call_open_on(struct router *r, struct peer *consumer, struct view *v,
                          struct provider *p, bool repeatable, const struct request *request,
                          void *data)
{
    struct call *c = call_new(r, consumer, request->op, data);
    uint64_t handle = c->handle;

    c->provider = p;
    c->view = v;
    c->party = request->party;
    c->answers = request->answers;
    c->wants_progress = request->wants_progress;
    c->repeatable = repeatable;
    p->stats.opened++;
    arm_deadline(c);

    if (has_slot(p) && list_empty(&p->waiting)) {
        if (c->repeatable)
            request_keep(&c->kept, request);
        hand_over(c, request);
    } else if (p->n_waiting >= p->policy.queue) {
        refuse_busy(c);
    } else {
        request_keep(&c->kept, request);
        wait_for_provider(c);
        if (p->state != PROVIDER_READY)
            provider_want(p);
    }
    return router_find(r, handle);
}

void router_cancel(struct call *c, enum failure why)
{
    struct provider *p = c->provider;
    bool open = p && c->state == CALL_OPEN;

    take_back(c);
    if (open)
        p->peer.verbs->cancel(&p->peer, c, why);
    fail(c, why, false, "cancelled");
}

void router_detach(struct router *r, struct peer *consumer)
{
    (void)r;
    while (!list_empty(&consumer->opened))
        router_cancel(LIST_FIRST(&consumer->opened, struct call, in_consumer), FAIL_CANCELLED);
}

void router_answer(struct call *c, struct span key, const struct outcome *outcome)
{
    LIST_EACH (&c->asks, it) {
        struct open_ask *ask = LIST_ENTRY(it, struct open_ask, node);
        if (!span_eq(span_of(ask->key, ask->key_n), key))
            continue;
        list_remove(it);
        c->n_asks--;
        if (c->provider)
            arm_deadline(c);
        /* The key is told from our copy: the consumer's may go away with its request. */
        struct peer *provider = &ask->provider->peer;
        provider->verbs->answer(provider, c, span_of(ask->key, ask->key_n), outcome);
        mem_free(ask);
        return;
    }
    log_debug("router", "answer to '" SPAN_FMT "', which nobody asked", SPAN_ARG(key));
}

/* --- providers --- */

void router_event(struct call *c, const struct event *event)
{
    if (event->kind == EVENT_PROGRESS) {
        if (c->provider->policy.progress_extends && list_empty(&c->asks))
            arm_deadline(c);
        if (!c->wants_progress)
            return;
    }
    c->provider->stats.events++;
    c->router->stats.events++;
    c->consumer->verbs->event(c->consumer, c, event);
}

static void refuse_ask(struct call *c, struct provider *p, struct span key, enum failure why,
                       struct span text)
{
    p->peer.verbs->answer(&p->peer, c, key,
                          &(struct outcome){.kind = OUTCOME_FAILED, .why = why, .text = text});
}

/* On a call, or on a standing call: then there is no deadline, it ends with its consumer. */
static void ask_on(struct call *c, struct provider *p, const struct ask *ask)
{
    p->stats.asks++;
    c->router->stats.asks++;
    if (ask->needs & ~c->answers) {
        c->lacks |= ask->needs & ~c->answers;
        refuse_ask(c, p, ask->key, FAIL_REFUSED, SPAN("the client cannot answer this"));
        return;
    }
    if (c->n_asks == MAX_OPEN_ASKS) {
        refuse_ask(c, p, ask->key, FAIL_BUSY, SPAN("too many questions are open already"));
        return;
    }
    struct open_ask *open = mem_alloc(sizeof *open + ask->key.n);
    open->provider = p;
    open->key_n = ask->key.n;
    memcpy(open->key, ask->key.p, ask->key.n);
    list_append(&c->asks, &open->node);
    c->n_asks++;
    if (c->provider)
        arm_deadline(c);
    c->repeatable = false; /* people were involved: never do that again by ourselves */
    c->consumer->verbs->ask(c->consumer, c, ask);
}

void router_ask(struct call *c, const struct ask *ask)
{
    ask_on(c, c->provider, ask);
}

bool router_ask_standing(struct provider *p, const struct ask *ask)
{
    struct call *owner = NULL;
    size_t n = 0;

    LIST_EACH (&p->router->standing, it) {
        struct call *c = LIST_ENTRY(it, struct call, standing);
        if (view_has(c->view, p)) {
            owner = c;
            n++;
        }
    }
    if (n != 1)
        return false;
    ask_on(owner, p, ask);
    return true;
}

/* Nobody is there any more to hear the answers. */
static void forget_standing_asks(struct provider *p)
{
    LIST_EACH (&p->router->standing, at) {
        struct call *c = LIST_ENTRY(at, struct call, standing);
        LIST_EACH_SAFE (&c->asks, it) {
            struct open_ask *ask = LIST_ENTRY(it, struct open_ask, node);
            if (ask->provider != p)
                continue;
            list_remove(it);
            c->n_asks--;
            mem_free(ask);
        }
    }
}

void router_done(struct call *c, const struct outcome *outcome)
{
    finish(c, outcome);
}

/* Operations during which servers ask; the others are answered from what the server knows. */
static bool may_ask(const struct call *c)
{
    return c->op == OP_CALL_TOOL || c->op == OP_READ_RESOURCE || c->op == OP_GET_PROMPT;
}

/*
 * A call whose question is not answered yet stands still, so what comes now belongs to another: it
 * may be parked for minutes and must not take everybody's turn. Only among calls of one party,
 * though: a server that does ask two things at once must not ask the wrong person.
 */
struct call *router_sole_call(const struct provider *p)
{
    struct call *sole = NULL, *running = NULL;
    size_t n = 0, n_running = 0;

    LIST_EACH (&p->open, it) {
        struct call *c = LIST_ENTRY(it, struct call, in_provider);
        if (!may_ask(c))
            continue;
        if (sole && (c->consumer != sole->consumer || c->party != sole->party))
            return NULL;
        sole = c;
        n++;
        if (list_empty(&c->asks)) {
            running = c;
            n_running++;
        }
    }
    if (n == 1)
        return sole;
    return n_running == 1 ? running : NULL;
}

/* --- what a provider's life means for its calls --- */

void router_provider_ready(struct router *r, struct provider *p)
{
    (void)r;
    wishes_provider_ready(p);
    pump(p);
}

/* Puts an open call back in line, to be sent again once its provider is back. */
static void requeue(struct call *c)
{
    leave_provider(c);
    c->provider->stats.retried++;
    c->router->stats.retried++;
    wait_for_provider(c);
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
    else
        fail(c, why, is_harmless(c), "server '%s' is being stopped", alias);
}

/*
 * First every call is taken off the provider, then the ends are told: inside a `done` a consumer
 * may cancel the next of these calls, open others or start the provider anew, and none of that may
 * reach the instance that has ended or be swept away with it.
 */
void router_provider_ended(struct router *r, struct provider *p, enum failure why)
{
    char reason[sizeof p->why];
    struct list ending;
    struct call *c;

    (void)r;
    forget_standing_asks(p);
    snprintf(reason, sizeof reason, "%s", reason_of(p));
    list_init(&ending);
    while ((c = LIST_FIRST(&p->open, struct call, in_provider))) {
        if (may_repeat(c, why)) {
            requeue(c);
            continue;
        }
        take_back(c);
        list_append(&ending, &c->in_provider);
        if (why == FAIL_SHUTDOWN)
            p->peer.verbs->cancel(&p->peer, c, why);
    }
    while (why != FAIL_CRASHED && (c = LIST_FIRST(&p->waiting, struct call, in_provider))) {
        take_back(c);
        list_append(&ending, &c->in_provider);
    }
    while ((c = LIST_FIRST(&ending, struct call, in_provider)))
        fail_ended(c, why, reason);
    if (why == FAIL_CRASHED && !list_empty(&p->waiting))
        provider_want(p);
}
