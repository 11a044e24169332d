#include "core/router.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/route.h"

#include <stdarg.h>
#include <stdio.h>

struct router {
    struct timers *timers;
    uint64_t random;
    uint64_t last_handle;
    struct idmap calls;
    struct list providers;
    struct list standing;
    struct view **views;
    size_t n_views;
    void (*on_stopped)(void *arg, struct provider *p);
    void *on_stopped_arg;
    struct stats stats;
};

/* One ask that waits for its answer. */
struct open_ask {
    struct list node;
    size_t key_n;
    char key[];
};

struct router *router_new(struct timers *timers, uint64_t seed)
{
    struct router *r = MEM_NEW(struct router);

    r->timers = timers;
    r->random = seed | 1;
    list_init(&r->providers);
    list_init(&r->standing);
    return r;
}

void router_free(struct router *r)
{
    idmap_fini(&r->calls);
    mem_free(r->views);
    mem_free(r);
}

struct timers *router_timers(const struct router *r)
{
    return r->timers;
}

/* xorshift64*: jitter needs no more. */
uint64_t router_random(struct router *r)
{
    r->random ^= r->random >> 12;
    r->random ^= r->random << 25;
    r->random ^= r->random >> 27;
    return r->random * 0x2545f4914f6cdd1du;
}

struct call *router_find(const struct router *r, uint64_t handle)
{
    return idmap_get(&r->calls, handle);
}

size_t router_call_count(const struct router *r)
{
    return r->calls.n;
}

const struct stats *router_stats(const struct router *r)
{
    return &r->stats;
}

/* --- the graph --- */

void router_add_provider(struct router *r, struct provider *p)
{
    p->router = r;
    list_append(&r->providers, &p->node);
}

void router_remove_provider(struct router *r, struct provider *p)
{
    list_remove(&p->node);
    for (size_t i = 0; i < r->n_views; i++)
        view_remove(r->views[i], p);
    p->router = NULL;
}

struct provider *router_provider(const struct router *r, struct span alias)
{
    LIST_EACH (&r->providers, it) {
        struct provider *p = LIST_ENTRY(it, struct provider, node);
        if (span_is(alias, p->alias))
            return p;
    }
    return NULL;
}

struct provider *router_next_provider(const struct router *r, const struct provider *p)
{
    const struct list *next = p ? p->node.next : r->providers.next;

    return next == &r->providers ? NULL : LIST_ENTRY(next, struct provider, node);
}

void router_add_view(struct router *r, struct view *v)
{
    r->views = mem_resize(r->views, (r->n_views + 1) * sizeof(struct view *));
    r->views[r->n_views++] = v;
}

void router_remove_view(struct router *r, struct view *v)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->n_views; i++)
        if (r->views[i] != v)
            r->views[kept++] = r->views[i];
    r->n_views = kept;
}

void router_on_stopped(struct router *r, void (*fn)(void *arg, struct provider *p), void *arg)
{
    r->on_stopped = fn;
    r->on_stopped_arg = arg;
}

/* --- a call's life --- */

/* Moves the spans of a request into memory of the call's own. */
static void keep_request(struct kept_request *k, const struct request *q)
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
}

/* Takes the call off its provider; the slot is free again. */
static void leave_provider(struct call *c)
{
    struct provider *p = c->provider;

    if (!p)
        return;
    list_remove(&c->in_provider);
    if (c->state == CALL_OPEN) {
        p->n_open--;
        p->stats.in_flight--;
    } else {
        p->n_waiting--;
        p->stats.queued--;
    }
}

static void pump(struct provider *p);

/* The one end of every call. */
static void finish(struct call *c, const struct outcome *outcome)
{
    struct router *r = c->router;
    struct provider *p = c->provider;

    leave_provider(c);
    c->state = CALL_ENDING;
    timer_clear(r->timers, &c->deadline);
    if (p) {
        uint64_t took = r->timers->now - c->opened_at;
        stats_count_outcome(&p->stats, outcome, took);
        stats_count_outcome(&r->stats, outcome, took);
        r->stats.in_flight--;
    }
    list_remove(&c->standing);
    list_remove(&c->in_consumer);
    idmap_take(&r->calls, c->handle);
    forget_asks(c);
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

static const char *reason_of(const struct provider *p)
{
    return p->why[0] ? p->why : provider_state_name(p->state);
}

static void on_deadline(struct timer *t)
{
    struct call *c = CONTAINER_OF(t, struct call, deadline);
    struct provider *p = c->provider;
    bool asking = !list_empty(&c->asks);
    unsigned long long waited = c->router->timers->now - c->opened_at;

    if (c->state == CALL_WAITING) {
        fail(c, FAIL_TIMEOUT, true, "server '%s' had no free slot within %llu ms (%s)", p->alias,
             waited, reason_of(p));
        return;
    }
    p->peer.verbs->cancel(&p->peer, c, FAIL_TIMEOUT);
    fail(c, FAIL_TIMEOUT, c->repeatable, "server '%s' timed out: no %s within %llu ms", p->alias,
         asking ? "answer to its question" : "answer", waited);
}

static struct call *call_new(struct router *r, struct peer *consumer, enum op op, void *data)
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

static void wait_for_provider(struct call *c)
{
    struct provider *p = c->provider;

    c->state = CALL_WAITING;
    list_append(&p->waiting, &c->in_provider);
    p->n_waiting++;
    p->stats.queued++;
}

static void hand_over(struct call *c, const struct request *request)
{
    struct provider *p = c->provider;

    c->state = CALL_OPEN;
    list_append(&p->open, &c->in_provider);
    p->n_open++;
    p->stats.in_flight++;
    p->peer.verbs->open(&p->peer, c, request);
}

static bool has_slot(const struct provider *p)
{
    return p->state == PROVIDER_READY && policy_admits(&p->policy, p->n_open);
}

/* Hands over what waits, as far as there are slots. */
static void pump(struct provider *p)
{
    while (has_slot(p) && !list_empty(&p->waiting)) {
        struct call *c = LIST_FIRST(&p->waiting, struct call, in_provider);
        leave_provider(c);
        hand_over(c, &c->kept.request);
    }
}

/* --- consumers --- */

struct call *router_attach(struct router *r, struct peer *consumer, struct view *v,
                           unsigned answers, void *data)
{
    struct call *c = call_new(r, consumer, OP_STANDING, data);

    c->view = v;
    c->answers = answers;
    c->state = CALL_OPEN;
    list_append(&r->standing, &c->standing);
    view_refresh(v); /* what is seen now is the base of the first change */
    return c;
}

static void refuse(struct peer *consumer, struct call *stub, enum failure why, struct span text)
{
    consumer->verbs->done(
        consumer, stub,
        &(struct outcome){
            .kind = OUTCOME_FAILED, .why = why, .text = text, .retryable = why == FAIL_BUSY});
}

struct call *router_open(struct router *r, struct peer *consumer, struct view *v,
                         const struct request *request, void *data)
{
    struct route route;

    r->stats.opened++;
    if (!route_find(v, request, &route)) {
        /* Nothing to look up later: the call exists only for the length of this `done`. */
        struct call stub = {.op = request->op, .consumer = consumer, .consumer_data = data};
        r->stats.failed[FAIL_UNKNOWN]++;
        refuse(consumer, &stub, FAIL_UNKNOWN, route.why);
        return NULL;
    }

    struct provider *p = route.provider;
    struct call *c = call_new(r, consumer, request->op, data);
    struct request own = *request;
    uint64_t handle = c->handle;
    own.name = route.own_name;
    c->provider = p;
    c->view = v;
    c->answers = request->answers;
    c->wants_progress = request->wants_progress;
    c->repeatable = route.repeatable;
    p->stats.opened++;
    r->stats.in_flight++;
    arm_deadline(c);

    if (has_slot(p) && list_empty(&p->waiting)) {
        if (c->repeatable)
            keep_request(&c->kept, &own);
        hand_over(c, &own);
    } else {
        wait_for_provider(c);
        if (p->n_waiting > p->policy.queue) {
            fail(c, FAIL_BUSY, true, "server '%s' is busy: %zu calls open and %zu waiting",
                 p->alias, p->n_open, p->n_waiting - 1);
            return NULL;
        }
        keep_request(&c->kept, &own);
        if (p->state != PROVIDER_READY)
            provider_want(p);
    }
    return router_find(r, handle);
}

void router_cancel(struct call *c, enum failure why)
{
    struct provider *p = c->provider;

    if (p && c->state == CALL_OPEN)
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
    LIST_EACH_SAFE (&c->asks, it) {
        struct open_ask *ask = LIST_ENTRY(it, struct open_ask, node);
        if (!span_eq(span_of(ask->key, ask->key_n), key))
            continue;
        list_remove(it);
        arm_deadline(c);
        /* The key is told from our copy: the consumer's may go away with its request. */
        c->provider->peer.verbs->answer(&c->provider->peer, c, span_of(ask->key, ask->key_n),
                                        outcome);
        mem_free(ask);
        return;
    }
    log_debug(c->provider->alias, "answer to '" SPAN_FMT "', which nobody asked", SPAN_ARG(key));
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
    c->router->stats.events++;
    c->consumer->verbs->event(c->consumer, c, event);
}

/* Told from a list of handles: a consumer may leave while it is being told. */
static void tell_standing(struct router *r, bool (*wants)(const struct call *, const void *),
                          const void *arg, const struct event *event)
{
    size_t n = 0, cap = 0;
    uint64_t *handles = NULL;

    LIST_EACH (&r->standing, it) {
        struct call *c = LIST_ENTRY(it, struct call, standing);
        if (!wants(c, arg))
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 16;
            handles = mem_resize(handles, cap * sizeof *handles);
        }
        handles[n++] = c->handle;
    }
    for (size_t i = 0; i < n; i++) {
        struct call *c = router_find(r, handles[i]);
        if (c) {
            r->stats.events++;
            c->consumer->verbs->event(c->consumer, c, event);
        }
    }
    mem_free(handles);
}

static bool sees_provider(const struct call *c, const void *provider)
{
    return view_has(c->view, provider);
}

static bool sees_view(const struct call *c, const void *view)
{
    return c->view == view;
}

void router_broadcast(struct provider *p, const struct event *event)
{
    tell_standing(p->router, sees_provider, p, event);
}

void router_ask(struct call *c, const struct ask *ask)
{
    struct provider *p = c->provider;

    p->stats.asks++;
    c->router->stats.asks++;
    if (ask->needs & ~c->answers) {
        struct outcome no = {.kind = OUTCOME_FAILED,
                             .why = FAIL_REFUSED,
                             .text = SPAN("the client cannot answer this")};
        p->peer.verbs->answer(&p->peer, c, ask->key, &no);
        return;
    }
    struct open_ask *open = mem_alloc(sizeof *open + ask->key.n);
    open->key_n = ask->key.n;
    memcpy(open->key, ask->key.p, ask->key.n);
    list_append(&c->asks, &open->node);
    arm_deadline(c);
    c->repeatable = false; /* people were involved: never do that again by ourselves */
    c->consumer->verbs->ask(c->consumer, c, ask);
}

void router_done(struct call *c, const struct outcome *outcome)
{
    finish(c, outcome);
}

struct call *router_sole_call(const struct provider *p)
{
    return p->n_open == 1 ? LIST_FIRST(&p->open, struct call, in_provider) : NULL;
}

/* --- what a provider's life means for the calls --- */

void router_provider_changed(struct router *r, struct provider *p)
{
    for (size_t i = 0; i < r->n_views; i++)
        if (view_has(r->views[i], p))
            view_touch(r->views[i], (1u << ITEM_KINDS) - 1);

    /* Telling may change the graph, so look at one view at a time. */
    for (size_t i = 0; i < r->n_views; i++) {
        struct view *v = r->views[i];
        if (!view_has(v, p))
            continue;
        unsigned changed = view_refresh(v);
        if (changed)
            tell_standing(r, sees_view, v,
                          &(struct event){.kind = EVENT_CHANGED, .changed = changed, .from = p});
    }
}

void router_provider_ready(struct router *r, struct provider *p)
{
    (void)r;
    pump(p);
}

/* Puts an open call back in line, to be sent again once its provider is back. */
static void requeue(struct call *c)
{
    leave_provider(c);
    c->retried = true;
    c->provider->stats.retried++;
    c->router->stats.retried++;
    wait_for_provider(c);
}

static bool may_repeat(const struct call *c, enum failure why)
{
    return why == FAIL_CRASHED && c->repeatable && !c->retried;
}

static void fail_ended(struct call *c, enum failure why)
{
    const struct provider *p = c->provider;

    if (why == FAIL_CRASHED)
        fail(c, why, c->repeatable, "server '%s' ended while the call was open: %s", p->alias,
             reason_of(p));
    else if (why == FAIL_UNAVAILABLE)
        fail(c, why, true, "server '%s' is not available: %s", p->alias, reason_of(p));
    else
        fail(c, why, true, "server '%s' is being stopped", p->alias);
}

void router_provider_ended(struct router *r, struct provider *p, enum failure why)
{
    (void)r;
    while (!list_empty(&p->open)) {
        struct call *c = LIST_FIRST(&p->open, struct call, in_provider);
        if (why == FAIL_SHUTDOWN)
            p->peer.verbs->cancel(&p->peer, c, why);
        if (may_repeat(c, why))
            requeue(c);
        else
            fail_ended(c, why);
    }
    if (why == FAIL_CRASHED) {
        if (!list_empty(&p->waiting))
            provider_want(p);
        return;
    }
    /* Counted beforehand: calls that a `done` opens meanwhile are not part of this ending. */
    for (size_t n = p->n_waiting; n && !list_empty(&p->waiting); n--)
        fail_ended(LIST_FIRST(&p->waiting, struct call, in_provider), why);
}

void router_provider_stopped(struct router *r, struct provider *p)
{
    if (r->on_stopped)
        r->on_stopped(r->on_stopped_arg, p);
}
