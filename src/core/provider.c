/* The state machine of a provider: the table of states and events, the actions, timers and
 * restarts, and publishing the catalog. Called by the providers' families, hub/, admin/, call.c and
 * view.c. */
#include "core/provider.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/router.h"
#include "core/subscriptions.h"

/* A call may wake a provider out of its backoff, but not more often than this. */
enum { WAKE_GAP_MS = 250 };

enum { WHY_MAX = 255 /* bytes of a reason */ };

typedef void action_fn(struct provider *p);

static const char *const state_names[PROVIDER_STATES] = {"down", "starting", "ready", "backoff",
                                                         "stopping"};

const char *provider_state_name(enum provider_state s)
{
    return state_names[s];
}

static struct timers *timers_of(const struct provider *p)
{
    return router_timers(p->router);
}

/*
 * The only place where a provider changes its state. No consumer is told here: inside an event or a
 * `done` anything may happen to the provider, so an action first sets everything (state, timer,
 * reason) and tells consumers afterwards. Observers are told by the loop.
 */
static void enter(struct provider *p, enum provider_state state)
{
    if (!p->built_in) /* ours may have the alias of the server they belong to */
        log_debug(p->alias, "%s -> %s", state_names[p->state], state_names[state]);
    timer_clear(timers_of(p), &p->timer);
    timer_clear(timers_of(p), &p->idle);
    timer_clear(timers_of(p), &p->confirm);
    p->unconfirmed = 0;
    observer_remove(&p->room_soon);
    bool shown = p->remembered && provider_advertised(p);
    p->state = state;
    p->since = timers_of(p)->now;
    if (shown && provider_advertised(p))
        observers_note(router_observers(p->router)); /* the lists of views stay the same */
    else
        router_provider_changed(p->router, p);
}

static void publish(struct provider *p, enum happening_kind kind)
{
    events_publish(
        router_events(p->router),
        &(struct happening){.kind = kind, .server = span_str(p->alias), .error = span_str(p->why)});
}

/* There is no room: the provider's calls wait if there may be room soon, else they are refused. */
static void hold_back(struct provider *p, bool soon)
{
    if (p->state != PROVIDER_DOWN)
        enter(p, PROVIDER_DOWN);
    if (soon) {
        observers_add(router_observers(p->router), &p->room_soon);
        return;
    }
    observer_remove(&p->room_soon);
    call_provider_ended(p, FAIL_BUSY);
}

static void look_for_room(struct observer *o)
{
    struct provider *p = CONTAINER_OF(o, struct provider, room_soon);

    if (p->n_waiting)
        provider_want(p);
    else
        observer_remove(o);
}

static void start(struct provider *p)
{
    bool soon = false;

    p->no_room = p->refuses ? p->refuses : p->room ? p->room->ask(p->room, &soon) : NULL;
    if (p->no_room) {
        hold_back(p, soon);
        return;
    }
    enter(p, PROVIDER_STARTING);
    p->rests = p->retries_late = false;
    p->started_at = p->since;
    p->stats.starts++;
    if (p->policy.start_timeout)
        timer_set(timers_of(p), &p->timer, p->policy.start_timeout);
    p->ops->start(p);
}

void provider_start_again(struct provider *p, uint64_t ms)
{
    if (p->state == PROVIDER_STARTING && p->policy.start_timeout)
        timer_set(timers_of(p), &p->timer, ms);
}

/* A timer checks now and then whether the provider is idle, so that calls need not set it. */
static void watch_idle(struct provider *p)
{
    uint64_t rested = timers_of(p)->now - p->used_at, limit = p->policy.idle_stop;

    timer_clear(timers_of(p), &p->idle);
    if (limit)
        timer_set(timers_of(p), &p->idle, rested < limit ? limit - rested : limit);
}

const char *provider_why(const struct provider *p)
{
    return p->why ? p->why : "";
}

void provider_forget_why(struct provider *p)
{
    mem_free(p->why);
    p->why = NULL;
}

static void set_why(struct provider *p, struct span why)
{
    provider_forget_why(p);
    if (why.n)
        p->why = mem_span(span_cut(why, 0, WHY_MAX));
}

static void ready(struct provider *p)
{
    bool failed_before = p->why != NULL;

    enter(p, PROVIDER_READY);
    provider_forget_why(p);
    p->failing_since = 0;
    p->used_at = p->since;
    watch_idle(p);
    if (failed_before)
        publish(p, HAPPENED_SERVERS_RECONNECTED);
    router_tell_changes(p->router, p);
    call_provider_ready(p);
}

/* After a long time up, earlier failures do not count for the next restart. This is checked when
 * the provider goes down: a timer would wake the program for nothing. */
static void forget_failures(struct provider *p)
{
    if (p->state == PROVIDER_READY && timers_of(p)->now - p->since >= p->policy.settle)
        backoff_reset(&p->backoff);
}

static void end_instance(struct provider *p, bool rests)
{
    forget_failures(p);
    p->wanted_again = p->was_too_slow = false;
    p->rests = rests;
    enter(p, PROVIDER_STOPPING);
    call_provider_ended(p, FAIL_SHUTDOWN);
    router_tell_changes(p->router, p);
    p->ops->stop(p);
}

static void stop(struct provider *p)
{
    end_instance(p, false);
}

bool provider_has_calls(const struct provider *p)
{
    return p->n_open || p->n_waiting || !list_empty(&p->held);
}

bool provider_in_use(const struct provider *p)
{
    return provider_has_calls(p) || subscriptions_any(p) ||
           tasks_at_work(router_tasks(p->router), p->alias);
}

static void rest_if_idle(struct provider *p)
{
    uint64_t rested = timers_of(p)->now - p->used_at;

    if (provider_in_use(p) || rested < p->policy.idle_stop) {
        watch_idle(p);
        return;
    }
    log_info(p->alias, "nobody called it for %llu s: stopped until somebody does",
             (unsigned long long)(rested / 1000));
    end_instance(p, true);
}

static void start_too_slow(struct provider *p)
{
    BUF_SCOPED why = {0};

    buf_printf(&why, "was not ready within %llu ms", (unsigned long long)p->policy.start_timeout);
    set_why(p, buf_view(&why));
    log_warn(p->alias, "%s; stopping it", p->why);
    p->wanted_again = false;
    p->was_too_slow = true;
    enter(p, PROVIDER_STOPPING);
    router_tell_changes(p->router, p);
    p->ops->stop(p);
}

static void back_off(struct provider *p)
{
    unsigned limit = p->policy.restart_limit;

    if (!p->failing_since)
        p->failing_since = timers_of(p)->now;
    p->backoff.first = p->policy.backoff_first;
    p->backoff.max = p->policy.backoff_max;
    uint64_t wait = backoff_next(&p->backoff, router_random(p->router));
    if (p->retries_late)
        wait = p->policy.backoff_max;

    if (p->locked && p->sign_in) {
        enter(p, PROVIDER_DOWN);
        return;
    }
    if (limit && p->backoff.failures > limit) {
        log_error(p->alias, "failed %u times in a row (%s); staying down until it is wanted again",
                  p->backoff.failures, provider_why(p));
        enter(p, PROVIDER_DOWN);
        return;
    }
    enter(p, PROVIDER_BACKOFF);
    timer_set(timers_of(p), &p->timer, wait);
}

static void start_failed(struct provider *p)
{
    log_line(p->stand_in ? LOG_INFO : LOG_WARN, p->alias, "could not be started: %s",
             provider_why(p));
    back_off(p);
    if (!p->stand_in)
        publish(p, HAPPENED_SERVER_FAILED);
    call_provider_ended(p, FAIL_UNAVAILABLE);
    router_tell_changes(p->router, p);
}

static void crashed(struct provider *p)
{
    forget_failures(p);
    p->stats.crashes++;
    log_warn(p->alias, "ended: %s", provider_why(p));
    back_off(p);
    publish(p, HAPPENED_SERVER_FAILED);
    call_provider_ended(p, FAIL_CRASHED);
    router_tell_changes(p->router, p);
}

/* The last step of an action. Does nothing if a consumer has started the provider again inside a
 * `done`. */
static void tell_stopped(struct provider *p)
{
    if (p->state == PROVIDER_DOWN)
        router_provider_stopped(p->router, p);
}

static void stopped(struct provider *p)
{
    if (p->was_too_slow) {
        start_failed(p);
    } else if (p->wanted_again) {
        start(p);
    } else {
        bool rests = p->rests;
        enter(p, PROVIDER_DOWN);
        router_tell_changes(p->router, p);
        if (!rests)
            tell_stopped(p);
    }
}

/* The provider is down already, but may have held calls. */
static void stay_down(struct provider *p)
{
    p->rests = false;
    observer_remove(&p->room_soon);
    call_provider_ended(p, FAIL_SHUTDOWN);
    tell_stopped(p);
}

static void give_up(struct provider *p)
{
    enter(p, PROVIDER_DOWN);
    call_provider_ended(p, FAIL_SHUTDOWN);
    router_tell_changes(p->router, p);
    tell_stopped(p);
}

/* Wake on use: try now instead of waiting, unless the last try was a moment ago. */
static void wake(struct provider *p)
{
    uint64_t now = timers_of(p)->now, since_start = now - p->started_at;

    if (since_start >= WAKE_GAP_MS)
        start(p);
    else if (p->timer.at > now + WAKE_GAP_MS)
        timer_set(timers_of(p), &p->timer, WAKE_GAP_MS - since_start);
}

static void want_again(struct provider *p)
{
    p->wanted_again = true;
}

/* Calls that came while the provider was stopping waited for its next start, which will not come
 * now. */
static void want_no_more(struct provider *p)
{
    p->wanted_again = p->was_too_slow = p->rests = false;
    call_provider_ended(p, FAIL_SHUTDOWN);
}

static void nothing(struct provider *p)
{
    (void)p;
}

/* Every combination of state and event has an entry, on purpose. */
static action_fn *const actions[PROVIDER_STATES][PROVIDER_EVENTS] = {
    [PROVIDER_DOWN] = {[PROVIDER_WANTED] = start,
                       [PROVIDER_UP] = nothing,
                       [PROVIDER_LOST] = nothing,
                       [PROVIDER_TIMER] = nothing,
                       [PROVIDER_IDLE] = nothing,
                       [PROVIDER_UNWANTED] = stay_down},
    [PROVIDER_STARTING] = {[PROVIDER_WANTED] = nothing,
                           [PROVIDER_UP] = ready,
                           [PROVIDER_LOST] = start_failed,
                           [PROVIDER_TIMER] = start_too_slow,
                           [PROVIDER_IDLE] = nothing,
                           [PROVIDER_UNWANTED] = stop},
    [PROVIDER_READY] = {[PROVIDER_WANTED] = nothing,
                        [PROVIDER_UP] = nothing,
                        [PROVIDER_LOST] = crashed,
                        [PROVIDER_TIMER] = nothing,
                        [PROVIDER_IDLE] = rest_if_idle,
                        [PROVIDER_UNWANTED] = stop},
    [PROVIDER_BACKOFF] = {[PROVIDER_WANTED] = wake,
                          [PROVIDER_UP] = nothing,
                          [PROVIDER_LOST] = nothing,
                          [PROVIDER_TIMER] = start,
                          [PROVIDER_IDLE] = nothing,
                          [PROVIDER_UNWANTED] = give_up},
    [PROVIDER_STOPPING] = {[PROVIDER_WANTED] = want_again,
                           [PROVIDER_UP] = nothing,
                           [PROVIDER_LOST] = stopped,
                           [PROVIDER_TIMER] = nothing,
                           [PROVIDER_IDLE] = nothing,
                           [PROVIDER_UNWANTED] = want_no_more},
};

static void happen(struct provider *p, enum provider_event event)
{
    actions[p->state][event](p);
}

static void on_timer(struct timer *t)
{
    happen(CONTAINER_OF(t, struct provider, timer), PROVIDER_TIMER);
}

static void on_idle(struct timer *t)
{
    happen(CONTAINER_OF(t, struct provider, idle), PROVIDER_IDLE);
}

void provider_init(struct provider *p, const struct peer_verbs *verbs,
                   const struct provider_ops *ops, const char *alias)
{
    *p = (struct provider){.ops = ops, .alias = alias, .policy = policy_default};
    peer_init(&p->peer, verbs);
    p->timer.fire = on_timer;
    p->idle.fire = on_idle;
    p->confirm.fire = subscriptions_unconfirmed;
    p->room_soon.changed = look_for_room;
    p->log_rank = LOG_RANK_NONE;
    list_init(&p->open);
    list_init(&p->waiting);
    list_init(&p->held);
    list_init(&p->doubts);
    list_init(&p->node);
    list_init(&p->memberships);
}

void provider_fini(struct provider *p)
{
    view_remove_everywhere(p);
    catalog_free(p->catalog);
    p->catalog = NULL;
    provider_forget_why(p);
}

void provider_up(struct provider *p)
{
    happen(p, PROVIDER_UP);
    p->remembered = false; /* not earlier, or the items would leave the lists for a moment */
}

void provider_lost(struct provider *p, const char *why)
{
    /* While the provider is being stopped, p->why has the reason already, if there is one; how the
     * instance ends then does not matter. */
    if (p->state != PROVIDER_STOPPING) {
        BUF_SCOPED clean = {0};
        /* The reason may quote a URL or the server's output, and every consumer can see it. */
        log_redact(&clean, span_str(why));
        set_why(p, buf_view(&clean));
    }
    p->remembered = false;
    happen(p, PROVIDER_LOST);
}

struct catalog *provider_draft(const struct provider *p)
{
    struct catalog *c = catalog_new();

    c->max_bytes = router_max_catalog(p->router);
    return c;
}

void provider_publish(struct provider *p, struct catalog *c)
{
    struct catalog *before = p->catalog;

    if (c->cut && !(before && before->cut))
        log_warn(p->alias,
                 "lists more than is taken of one server (%zu KiB, limits.catalog): the rest is "
                 "left out",
                 c->max_bytes / 1024);

    if (p->remembered && before && catalog_same(before, c)) {
        /* Views keep their lists: many servers come up at once, and each would make all views
         * rebuild them. */
        before->generation++;
        observers_note(router_observers(p->router));
        catalog_free(c);
        return;
    }
    c->generation = before ? before->generation + 1 : 1;
    p->catalog = c;
    /* Views compare their lists, so no consumer is told of an equal catalog, unless the provider
     * itself says that something has changed. */
    router_provider_changed(p->router, p);
    if (!p->tells_later)
        router_tell_changed(p->router, p, c->changed);
    catalog_free(before);
}

void provider_recall(struct provider *p, struct catalog *c)
{
    p->remembered = true;
    provider_publish(p, c);
}

void provider_adjust(struct provider *p, const struct policy *policy)
{
    p->policy = *policy;
    if (p->state == PROVIDER_READY)
        watch_idle(p);
}

void provider_want(struct provider *p)
{
    if (!p->halted && !provider_needs_sign_in(p))
        happen(p, PROVIDER_WANTED);
}

void provider_unlock(struct provider *p)
{
    p->locked = false;
    provider_want(p);
}

void provider_unwant(struct provider *p)
{
    happen(p, PROVIDER_UNWANTED);
}

/* A resting provider is not listed while halted, so the views change. */
static void set_halted(struct provider *p, bool halted)
{
    p->halted = halted;
    router_provider_changed(p->router, p);
}

/* The next provider after `after` (NULL: the first) that `p` stands in for; or NULL. */
static struct provider *next_replaced(const struct provider *p, const struct provider *after)
{
    struct provider *q = router_next_provider(p->router, after);

    while (q && q->stand_in != p)
        q = router_next_provider(p->router, q);
    return q;
}

size_t provider_count_calls(const struct provider *p)
{
    size_t n = p->n_open + p->n_waiting;

    LIST_EACH (&p->held, it)
        n++;
    for (const struct provider *q = NULL; (q = next_replaced(p, q));)
        n += q->n_waiting;
    return n;
}

void provider_halt(struct provider *p)
{
    for (struct provider *q = NULL; (q = next_replaced(p, q));)
        provider_halt(q);
    set_halted(p, true);
    provider_unwant(p);
    router_tell_changes(p->router, p);
}

void provider_resume(struct provider *p)
{
    for (struct provider *q = NULL; (q = next_replaced(p, q));)
        set_halted(q, false); /* the next call starts it, as always */
    set_halted(p, false);
    backoff_reset(&p->backoff);
    provider_unlock(p);
    router_tell_changes(p->router, p);
}

void provider_restart(struct provider *p)
{
    for (struct provider *q = NULL; (q = next_replaced(p, q));)
        provider_unwant(q);
    provider_unwant(p);
    provider_resume(p);
}

bool provider_rest(struct provider *p)
{
    if (p->state != PROVIDER_READY || provider_in_use(p))
        return false;
    end_instance(p, true);
    return true;
}

bool provider_needs_sign_in(const struct provider *p)
{
    return p->sign_in && p->locked && p->state == PROVIDER_DOWN && !p->halted;
}

uint64_t provider_next_try(const struct provider *p)
{
    uint64_t now = timers_of(p)->now;

    if (p->state != PROVIDER_BACKOFF)
        return 0;
    return p->timer.at > now ? p->timer.at - now : 1;
}

bool provider_advertised(const struct provider *p)
{
    bool may_rest = !p->policy.eager || p->policy.idle_stop;

    if (p->state == PROVIDER_READY)
        return true;
    /* A resting provider counts as running: the next call starts it. A provider that is being
     * started is shown with its earlier items, one that failed only when it is ready again. */
    return (may_rest || p->remembered) && !p->halted && p->state != PROVIDER_BACKOFF &&
           p->catalog && !p->why;
}

struct span provider_pinned(const struct provider *p, enum op op, struct span name)
{
    bool any = op == OP_CALL_TOOL && p->ops->pinned;

    return span_str(any ? p->ops->pinned(p, name) : NULL);
}

struct provider_facts provider_describe(const struct provider *p)
{
    struct provider_facts facts = {0};

    if (p->ops->describe)
        p->ops->describe(p, &facts);
    return facts;
}
