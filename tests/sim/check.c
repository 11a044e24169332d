#include "actors.h"

/* The core's counters must match what the actors have seen. */
static void check_provider(struct world *w, struct sim_provider *p)
{
    const struct policy *policy = &p->core.policy;
    size_t waiting = 0, never_sent = 0, open = 0;

    for (size_t i = 0; i < w->n_flights; i++) {
        const struct flight *f = w->flights[i];
        if (f->provider != p)
            continue;
        open += f->job != NULL;
        waiting += !f->job && !f->held;
        never_sent += !f->job && !f->held && !f->handed;
    }
    CHECK(w, p->core.n_open == p->n_jobs && p->n_jobs >= open, "%s: %zu calls are open, not %zu",
          p->alias, p->n_jobs, p->core.n_open);
    CHECK(w, p->core.n_waiting >= waiting, "%s: %zu calls wait, not %zu", p->alias, waiting,
          p->core.n_waiting);
    CHECK(w, never_sent <= policy->queue, "%s: the queue is longer than %zu", p->alias,
          policy->queue);
    bool unconfirmed = p->core.unconfirmed > 0;
    CHECK(w, unconfirmed == timer_is_set(&p->core.confirm), "%s: a wait without an end", p->alias);
    bool has_slot =
        p->core.state == PROVIDER_READY && !unconfirmed && policy_admits(policy, p->core.n_open);
    CHECK(w, !waiting || !(has_slot || p->core.state == PROVIDER_DOWN),
          "%s: %zu calls wait, and for nothing", p->alias, waiting);
    CHECK(w, (p->core.state == PROVIDER_READY) == (p->alive && p->up && !p->stopping),
          "%s is not %s", p->alias, provider_state_name(p->core.state));
    CHECK(w, provider_advertised(&p->core) == provider_shows(p), "%s is %sadvertised", p->alias,
          provider_shows(p) ? "not " : "");
    CHECK(w, p->core.stats.in_flight == p->core.n_open && p->core.stats.queued == p->core.n_waiting,
          "%s: the counters are wrong", p->alias);
}

static void check_flight(struct world *w, const struct flight *f)
{
    CHECK(w, f->call && router_find(w->router, f->call->handle) == f->call, "%u is lost", f->id);
    CHECK(w, w->timers.now < flight_limit(f), "%u is older than it may be", f->id);
    if (f->standing)
        return;
    CHECK(w,
          f->call->state == (f->job    ? CALL_OPEN
                             : f->held ? CALL_HELD
                                       : CALL_WAITING),
          "%u is in the wrong place", f->id);
    CHECK(w, f->job || !f->handed || (f->handed == 1 && f->repeatable && !f->asked),
          "%u waits to be sent again, but may not", f->id);
}

/* A new view of the same members must list the same: names must not depend on history. */
static void check_names(struct world *w, const struct sim_view *v)
{
    static const struct span allow[] = {{"a*", 2}, {"B", 1}};
    const struct filter filter = {allow, COUNT_OF(allow), NULL, 0};
    struct view *fresh = view_new("fresh", v->pattern);

    for (size_t i = 0; i < v->n; i++)
        view_add(fresh, &v->members[i].provider->core, v->members[i].filtered ? &filter : NULL);
    for (int k = 0; k < ITEM_KINDS; k++) {
        enum item_kind kind = (enum item_kind)k;
        const struct target *t;
        CHECK(w, span_eq(view_list(fresh, kind), view_list(v->view, kind)),
              "a view remembers something: " SPAN_FMT " should be " SPAN_FMT,
              SPAN_ARG(view_list(v->view, kind)), SPAN_ARG(view_list(fresh, kind)));
        for (size_t i = 0; (t = view_item(v->view, kind, i)); i++) {
            CHECK(w, provider_shows(CONTAINER_OF(t->provider, struct sim_provider, core)),
                  SPAN_FMT " is listed, but not to be had", SPAN_ARG(t->public_name));
            CHECK(w, view_find(v->view, kind, t->public_name) == t, SPAN_FMT " leads elsewhere",
                  SPAN_ARG(t->public_name));
            CHECK(w,
                  !v->pattern || (kind != ITEM_TOOL && kind != ITEM_PROMPT) ||
                      t->public_name.n <= VIEW_MAX_NAME,
                  SPAN_FMT " is too long", SPAN_ARG(t->public_name));
        }
    }
    view_free(fresh);
}

/* Each standing call must have been told of every change of its lists. */
static void check_told(struct world *w, const struct flight *f)
{
    for (int kind = 0; f->standing && kind < ITEM_KINDS; kind++)
        CHECK(w, list_print(f->consumer->view, (enum item_kind)kind) == f->told[kind],
              "%s was not told that list %d has changed", f->consumer->name, kind);
}

void check_between_steps(struct world *w)
{
    for (size_t i = 0; i < MAX_PROVIDERS; i++)
        if (w->providers[i])
            check_provider(w, w->providers[i]);
    for (size_t i = 0; i < w->n_flights; i++)
        check_flight(w, w->flights[i]);
    /* Building lists is slow, so not after every step; a change that was not told stays untold. */
    if (!w->dirty || chance(w, 50))
        return;
    w->dirty = false;
    for (size_t i = 0; i < w->n_flights; i++)
        check_told(w, w->flights[i]);
    if (chance(w, 15))
        check_names(w, &w->views[pick(w, w->n_views)]);
}

static uint64_t outcomes(const struct stats *s)
{
    uint64_t n = s->results + s->errors;

    for (size_t i = 0; i < FAIL_COUNT; i++)
        n += s->failed[i];
    return n;
}

void check_drained(struct world *w)
{
    const struct stats *all = router_stats(w->router);

    CHECK(w, !w->n_flights && !w->n_jobs, "%zu calls have not ended", w->n_flights + w->n_jobs);
    CHECK(w, !router_call_count(w->router), "the router has calls that nobody has");
    CHECK(w, all->opened == outcomes(all) && !all->in_flight && !all->queued,
          "the router's counters are wrong");
    for (size_t i = 0; i < MAX_PROVIDERS; i++) {
        const struct sim_provider *p = w->providers[i];
        if (!p)
            continue;
        CHECK(w, p->core.state == PROVIDER_DOWN && !p->core.n_open && !p->core.n_waiting,
              "%s is not down, or not alone", p->alias);
        CHECK(w, p->core.stats.opened == outcomes(&p->core.stats), "%s: calls are miscounted",
              p->alias);
    }
    CHECK(w, !w->timers.n, "%zu timers are left", w->timers.n);
}
