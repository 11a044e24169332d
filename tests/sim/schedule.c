#include "actors.h"

#include <stdio.h>

static struct sim_provider *some_provider(struct world *w)
{
    return w->providers[pick(w, MAX_PROVIDERS)];
}

static struct sim_consumer *some_consumer(struct world *w)
{
    return &w->consumers[pick(w, w->n_consumers)];
}

/* --- the graph --- */

static void view_join(struct world *w, struct sim_view *v, struct sim_provider *p)
{
    static const struct span allow[] = {{"a*", 2}, {"B", 1}};
    static const struct filter filter = {allow, COUNT_OF(allow), NULL, 0};
    bool filtered = chance(w, 25);

    v->members[v->n++] = (struct member){p, filtered};
    view_add(v->view, &p->core, filtered ? &filter : NULL);
}

static void forget_member(struct world *w, const struct sim_provider *p)
{
    for (size_t i = 0; i < w->n_views; i++) {
        struct sim_view *v = &w->views[i];
        size_t kept = 0;
        for (size_t m = 0; m < v->n; m++)
            if (v->members[m].provider != p)
                v->members[kept++] = v->members[m];
        v->n = kept;
    }
}

static void add_provider(struct world *w, size_t slot)
{
    struct sim_provider *p = provider_new(w);

    TRACE(w, "reload: %s comes", p->alias);
    w->providers[slot] = p;
    for (size_t i = 0; i < w->n_views; i++)
        if (i == 0 || chance(w, 50))
            view_join(w, &w->views[i], p);
    w->dirty = true;
    router_tell_changes(w->router, &p->core);
}

/* A reload in steps, as in the bridge: a provider is withdrawn, removed when down, or added. */
static void reload(struct world *w)
{
    size_t slot = pick(w, MAX_PROVIDERS);
    struct sim_provider *p = w->providers[slot];

    w->dirty = true;
    if (!p) {
        add_provider(w, slot);
    } else if (!p->leaving) {
        if (!chance(w, 30))
            return;
        TRACE(w, "reload: %s goes", p->alias);
        p->leaving = true;
        forget_member(w, p);
        provider_forget_subscribers(p);
        router_withdraw_provider(w->router, &p->core);
        provider_send_away(p);
    } else if (p->core.state == PROVIDER_DOWN) {
        TRACE(w, "reload: %s has gone", p->alias);
        w->providers[slot] = NULL;
        provider_free(p);
    }
}

static void on_stopped(void *arg, struct provider *p)
{
    struct world *w = arg;

    CHECK(w, p->state == PROVIDER_DOWN, "%s is said to be stopped", p->alias);
}

/* --- steps --- */

static void step_open(struct world *w)
{
    consumer_open(some_consumer(w));
}

static void step_attach(struct world *w)
{
    consumer_attach(some_consumer(w));
}

static void step_leave(struct world *w)
{
    consumer_leave(some_consumer(w));
}

static void step_look(struct world *w)
{
    consumer_look(some_consumer(w));
}

static void step_cancel(struct world *w)
{
    if (w->n_flights)
        flight_cancel(w->flights[pick(w, w->n_flights)]);
}

static void step_answer(struct world *w)
{
    if (w->n_flights)
        flight_answer(w->flights[pick(w, w->n_flights)]);
}

static void step_event(struct world *w)
{
    if (w->n_jobs)
        job_event(w->jobs[pick(w, w->n_jobs)]);
}

static void step_ask(struct world *w)
{
    if (w->n_jobs)
        job_ask(w->jobs[pick(w, w->n_jobs)]);
}

static void step_unask(struct world *w)
{
    struct sim_provider *p = some_provider(w);

    if (w->n_jobs)
        job_unask(w->jobs[pick(w, w->n_jobs)]);
    else if (p)
        provider_know(p);
}

static void step_finish(struct world *w)
{
    if (w->n_jobs)
        job_finish(w->jobs[pick(w, w->n_jobs)]);
}

static void of_some_provider(struct world *w, void (*act)(struct sim_provider *p))
{
    struct sim_provider *p = some_provider(w);

    if (p)
        act(p);
}

static void step_want(struct world *w)
{
    of_some_provider(w, provider_call_for);
}

static void step_unwant(struct world *w)
{
    of_some_provider(w, provider_send_away);
}

static void step_rise(struct world *w)
{
    of_some_provider(w, provider_rise);
}

static void step_fall(struct world *w)
{
    struct sim_provider *p = some_provider(w);

    if (p && (p->stopping || chance(w, 25)))
        provider_fall(p);
}

static void step_offer(struct world *w)
{
    of_some_provider(w, provider_offer);
}

static void step_announce(struct world *w)
{
    of_some_provider(w, provider_announce);
}

static void step_operate(struct world *w)
{
    of_some_provider(w, provider_operate);
}

static void step_wonder(struct world *w)
{
    of_some_provider(w, provider_wonder);
}

static void step_decide(struct world *w)
{
    if (w->n_flights)
        flight_decide(w->flights[pick(w, w->n_flights)]);
}

static void step_subscribe(struct world *w)
{
    consumer_subscribe(some_consumer(w));
}

static void step_want_log(struct world *w)
{
    consumer_want_log(some_consumer(w));
}

static void step_clock(struct world *w)
{
    static const uint64_t spans[] = {10, 10, 50, 50, 50, 400, 400, 5000};
    uint64_t ms = pick(w, PICK(w, spans));

    TRACE(w, "%llu ms pass", (unsigned long long)ms);
    w->dirty = true;
    w->advancing = true;
    timers_advance(&w->timers, w->timers.now + ms);
    w->advancing = false;
}

/* All possible steps, and how often they are taken. */
static const struct {
    void (*step)(struct world *w);
    unsigned weight;
    bool anywhere; /* also inside a verb */
} steps[] = {
    {step_open, 30, true},    {step_finish, 22, true}, {step_event, 10, true},
    {step_ask, 9, true},      {step_answer, 14, true}, {step_cancel, 4, true},
    {step_attach, 3, true},   {step_leave, 1, true},   {step_look, 1, true},
    {step_want, 4, true},     {step_unwant, 2, true},  {step_offer, 3, true},
    {step_announce, 2, true}, {step_rise, 12, false},  {step_fall, 6, false},
    {step_clock, 12, false},  {reload, 3, false},      {step_operate, 2, true},
    {step_wonder, 2, true},   {step_decide, 8, true},  {step_subscribe, 2, true},
    {step_want_log, 1, true}, {step_unask, 4, true},
};

static void take_step(struct world *w, bool anywhere_only)
{
    unsigned total = 0, at;

    for (size_t i = 0; i < COUNT_OF(steps); i++)
        total += steps[i].weight;
    at = pick(w, total);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (at < steps[i].weight) {
            if (steps[i].anywhere || !anywhere_only)
                steps[i].step(w);
            return;
        }
        at -= steps[i].weight;
    }
}

void world_interrupt(struct world *w, const struct temper *temper)
{
    if (!w->draining && w->depth < MAX_DEPTH && chance(w, temper->in_verb / 2))
        take_step(w, true);
}

static void bury_the_dead(struct world *w)
{
    while (w->dead_flights) {
        struct flight *next = w->dead_flights->next_dead;
        mem_free(w->dead_flights);
        w->dead_flights = next;
    }
    while (w->dead_jobs) {
        struct job *next = w->dead_jobs->next_dead;
        mem_free(w->dead_jobs);
        w->dead_jobs = next;
    }
}

/* --- a world --- */

static void world_begin(struct world *w)
{
    static const char *const patterns[] = {"{server}__{tool}", "{tool}", NULL};
    static const char *const names[MAX_CONSUMERS] = {"ann", "bob", "cyd", "dan"};

    w->timers.now = 1000 * 1000;
    w->router = router_new(&w->timers, w->seed);
    router_on_stopped(w->router, on_stopped, w);
    approver_init(&w->approver, w);
    approval_set_approver(w->router, &w->approver);
    w->n_views = 1 + pick(w, MAX_VIEWS);
    for (size_t i = 0; i < w->n_views; i++) {
        w->views[i].pattern = PICK(w, patterns);
        w->views[i].view = view_new("sim", w->views[i].pattern);
    }
    w->n_consumers = 1 + pick(w, MAX_CONSUMERS);
    for (size_t i = 0; i < w->n_consumers; i++)
        consumer_init(&w->consumers[i], w, names[i], w->views[pick(w, w->n_views)].view);
    for (size_t i = 0; i < MAX_PROVIDERS; i++)
        if (i == 0 || chance(w, 60))
            add_provider(w, i);
}

/* All calls must end, whether providers or consumers leave first. */
static void world_drain(struct world *w)
{
    TRACE(w, "the end");
    w->draining = true;
    if (chance(w, 33))
        while (w->n_jobs)
            job_finish(w->jobs[pick(w, w->n_jobs)]);
    for (int turn = 0; turn < 2; turn++) {
        bool providers_first = chance(w, 50);
        for (size_t i = 0; providers_first && i < MAX_PROVIDERS; i++)
            if (w->providers[i])
                provider_send_away(w->providers[i]);
        for (size_t i = 0; i < w->n_consumers; i++)
            consumer_leave(&w->consumers[i]);
        for (size_t i = 0; i < MAX_PROVIDERS; i++) {
            if (!w->providers[i])
                continue;
            provider_send_away(w->providers[i]);
            provider_fall(w->providers[i]);
        }
    }
    check_drained(w);
}

static void world_end(struct world *w)
{
    for (size_t i = 0; i < MAX_PROVIDERS; i++)
        if (w->providers[i])
            provider_free(w->providers[i]);
    for (size_t i = 0; i < w->n_views; i++) {
        view_free(w->views[i].view);
    }
    bury_the_dead(w);
    router_free(w->router);
    timers_fini(&w->timers);
}

void world_run(uint64_t seed, size_t steps_wanted, bool verbose)
{
    struct world w = {.seed = seed, .random = seed, .steps = steps_wanted, .verbose = verbose};

    world_begin(&w);
    for (w.step = 1; w.step <= w.steps; w.step++) {
        take_step(&w, false);
        bury_the_dead(&w);
        check_between_steps(&w);
    }
    world_drain(&w);
    world_end(&w);
}
