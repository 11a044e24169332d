#include "actors.h"

#include "base/buf.h"

#include <stdio.h>

static struct sim_provider *of_provider(struct provider *p)
{
    return CONTAINER_OF(p, struct sim_provider, core);
}

static struct sim_provider *of_peer(struct peer *self)
{
    return of_provider(CONTAINER_OF(self, struct provider, peer));
}

static unsigned id_of(const struct job *j)
{
    return j->flight ? j->flight->id : 0;
}

/* --- jobs --- */

static struct job *job_new(struct sim_provider *p, struct call *call)
{
    struct world *w = p->world;
    struct job *j = MEM_NEW(struct job);

    CHECK(w, w->n_jobs < MAX_JOBS, "more calls handed over than were opened");
    j->provider = p;
    j->call = call;
    j->flight = call->consumer_data;
    w->jobs[w->n_jobs++] = j;
    p->n_jobs++;
    if (j->flight)
        j->flight->job = j;
    return j;
}

/* The call has ended for the provider; the memory is freed between two steps. */
static void job_over(struct job *j)
{
    struct world *w = j->provider->world;
    size_t at = 0;

    while (w->jobs[at] != j)
        at++;
    w->jobs[at] = w->jobs[--w->n_jobs];
    j->provider->n_jobs--;
    j->over = true;
    j->next_dead = w->dead_jobs;
    w->dead_jobs = j;
    if (j->flight)
        j->flight->job = NULL;
}

void job_event(struct job *j)
{
    struct world *w = j->provider->world;
    struct flight *f = j->flight;
    struct event event = {.kind = chance(w, 60) ? EVENT_PROGRESS : EVENT_LOG,
                          .from = &j->provider->core};

    TRACE(w, "%s: %s on %u", j->provider->alias, event.kind == EVENT_PROGRESS ? "progress" : "log",
          id_of(j));
    if (f) {
        if (event.kind == EVENT_PROGRESS && j->provider->core.policy.progress_extends && !f->n_open)
            f->armed_at = w->timers.now;
        if (event.kind != EVENT_PROGRESS || f->wants_progress)
            event.token_at.at = ++f->events_sent; /* the number of the event, for the consumer */
    }
    call_event(j->call, &event);
}

/* A new question in one of these slots, with its key as text; NULL if all are in use. */
static struct question *ask_new(struct world *w, struct question *places, char key[16],
                                struct ask *ask)
{
    static const unsigned needs[] = {0, 0, ANSWERS_ELICIT_FORM, ANSWERS_SAMPLING};

    for (size_t i = 0; i < MAX_ASKS; i++) {
        if (places[i].open)
            continue;
        places[i] = (struct question){.key = ++w->last_key, .open = true};
        int n = snprintf(key, 16, "%u", places[i].key);
        *ask = (struct ask){.key = span_of(key, (size_t)n),
                            .method = SPAN("elicitation/create"),
                            .needs = PICK(w, needs)};
        return &places[i];
    }
    return NULL;
}

void job_ask(struct job *j)
{
    struct world *w = j->provider->world;
    struct ask ask;
    char key[16];

    if (!ask_new(w, j->questions, key, &ask))
        return;
    TRACE(w, "%s: asks %s on %u", j->provider->alias, key, id_of(j));
    ask_put(j->call, &ask);
}

/* Closes an unanswered question and returns it, with its key as text; NULL if there is none. */
static struct question *drop_question(struct world *w, struct question *places, char key[16])
{
    struct question *q = &places[pick(w, MAX_ASKS)];

    if (!q->open)
        return NULL;
    q->open = false;
    snprintf(key, 16, "%u", q->key);
    return q;
}

void job_unask(struct job *j)
{
    struct world *w = j->provider->world;
    char key[16];

    if (!drop_question(w, j->questions, key))
        return;
    TRACE(w, "%s: takes %s back on %u", j->provider->alias, key, id_of(j));
    CHECK(w, ask_take_back(j->call, span_str(key)), "%s was asked, but cannot be taken back", key);
}

void provider_know(struct sim_provider *p)
{
    struct world *w = p->world;
    char key[16];
    struct question *q = p->alive ? drop_question(w, p->questions, key) : NULL;

    if (!q)
        return;
    TRACE(w, "%s: takes %s back", p->alias, key);
    /* If the consumer is leaving, the provider will still get the answer "cancelled". */
    q->open = !ask_take_back_any(&p->core, span_str(key), NULL);
}

void provider_wonder(struct sim_provider *p)
{
    struct world *w = p->world;
    struct question *q;
    struct ask ask;
    char key[16];
    size_t who = 0;
    bool leaving = false;

    if (!p->alive || !(q = ask_new(w, p->questions, key, &ask)))
        return;
    for (size_t i = 0; i < w->n_flights; i++) {
        const struct flight *f = w->flights[i];
        if (!f->standing || !view_has(f->consumer->view, &p->core))
            continue;
        who++;
        leaving |= f->cancelling; /* one that is being cancelled may count or not */
    }
    TRACE(w, "%s: asks %s of whoever is there", p->alias, key);
    bool told_to_stop = p->core.state == PROVIDER_STOPPING;
    bool asked = ask_put_standing(&p->core, &ask);
    CHECK(w, leaving || asked == (who == 1 && !told_to_stop), "%s asked %zu who are there",
          p->alias, who);
    if (!asked)
        q->open = false;
}

void provider_forget_subscribers(const struct sim_provider *p)
{
    struct world *w = p->world;

    for (size_t i = 0; i < w->n_flights; i++)
        if (w->flights[i]->subscribed == p)
            w->flights[i]->subscribed = NULL;
}

void job_finish(struct job *j)
{
    struct world *w = j->provider->world;
    struct call *call = j->call;
    bool ok = chance(w, 80);

    TRACE(w, "%s: done %u", j->provider->alias, id_of(j));
    if (j->flight)
        j->flight->finishing = true;
    else if (!ok && call->op == OP_SUBSCRIBE)
        provider_forget_subscribers(j->provider);
    job_over(j);
    call_done(call,
              &(struct outcome){.kind = ok ? OUTCOME_RESULT : OUTCOME_ERROR, .body = SPAN("{}")});
}

/* --- verbs --- */

/* The call must be one that may be sent to this provider now. */
static void check_open(struct sim_provider *p, const struct flight *f,
                       const struct request *request)
{
    struct world *w = p->world;
    char tag[32];

    CHECK(w, f->provider == p, "%u was opened for another provider than %s", f->id, p->alias);
    CHECK(w, !f->ended && !f->job && !f->held, "%u was handed over, but it %s", f->id,
          f->ended  ? "had ended"
          : f->held ? "was not allowed to be"
                    : "was there already");
    CHECK(w, f->handed < (f->repeatable && !f->asked ? 2u : 1u), "%u was handed over %u times",
          f->id, f->handed + 1);
    CHECK(w, w->timers.now < flight_limit(f), "%u was handed over after its deadline", f->id);
    int n = snprintf(tag, sizeof tag, "{\"n\":%u}", f->id);
    CHECK(w, span_eq(request->params, span_of(tag, (size_t)n)), "%u has another's params", f->id);
    CHECK(w, request->op == f->op && request->name.n, "%u was handed over as something else",
          f->id);
}

static void maybe_fall(struct sim_provider *p)
{
    if (chance(p->world, 3))
        provider_fall(p);
}

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct sim_provider *p = of_peer(self);
    struct world *w = p->world;
    struct flight *f = call->consumer_data;
    size_t slots = p->core.policy.concurrency;

    TRACE(w, "-> %s open %u", p->alias, f ? f->id : 0);
    CHECK(w, p->up && !p->stopping, "%s got a call while it was not ready", p->alias);
    CHECK(w, !slots || p->n_jobs < slots, "%s got more than %zu calls at once", p->alias, slots);
    if (f) {
        check_open(p, f, request);
        f->call = call;
        f->handed++;
    }
    struct job *j = job_new(p, call);
    call->provider_data = j;
    w->depth++;
    /* What a provider does inside `open`. */
    while (!j->over && chance(w, p->temper.in_verb)) {
        void (*const acts[])(struct job *) = {job_event,  job_ask,    job_ask,
                                              job_finish, job_finish, job_unask};
        PICK(w, acts)(j);
        if (!j->over)
            maybe_fall(p);
    }
    world_interrupt(w, &p->temper);
    w->depth--;
}

/* Close the question with this key; false if it is not open. */
static bool close_question(struct question *places, struct span key)
{
    char text[16];

    for (size_t i = 0; i < MAX_ASKS; i++) {
        int n = snprintf(text, sizeof text, "%u", places[i].key);
        if (places[i].open && span_eq(key, span_of(text, (size_t)n))) {
            places[i].open = false;
            return true;
        }
    }
    return false;
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome)
{
    struct sim_provider *p = of_peer(self);
    struct world *w = p->world;
    bool standing = call->op == OP_STANDING;
    struct job *j = standing ? NULL : call->provider_data;

    TRACE(w, "-> %s answer to " SPAN_FMT, p->alias, SPAN_ARG(key));
    CHECK(w, p->alive && !p->stopping, "%s got an answer while it was not there", p->alias);
    CHECK(w, standing || (!j->over && j->call == call),
          "an answer came to %s after the call was over", p->alias);
    CHECK(w, close_question(standing ? p->questions : j->questions, key),
          "%s got an answer to " SPAN_FMT ", which it did not ask", p->alias, SPAN_ARG(key));
    CHECK(w,
          outcome->kind == OUTCOME_RESULT || outcome->why == FAIL_REFUSED ||
              (standing && outcome->why == FAIL_CANCELLED),
          "an answer of another kind");
    w->depth++;
    if (j && chance(w, p->temper.in_verb))
        (chance(w, 60) ? job_finish : job_ask)(j);
    else
        maybe_fall(p);
    world_interrupt(w, &p->temper);
    w->depth--;
}

static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    struct sim_provider *p = of_peer(self);
    struct world *w = p->world;
    struct job *j = call->provider_data;

    CHECK(w, !j->over && j->call == call, "%s was told to cancel what it did not have", p->alias);
    TRACE(w, "-> %s cancel %u", p->alias, id_of(j));
    CHECK(w, why == FAIL_CANCELLED || why == FAIL_TIMEOUT || why == FAIL_SHUTDOWN,
          "a cancel for no reason");
    job_over(j);
}

static void on_start(struct provider *core)
{
    struct sim_provider *p = of_provider(core);
    struct world *w = p->world;

    TRACE(w, "-> %s start", p->alias);
    CHECK(w, !p->alive && !p->halted, "%s was started, but %s", p->alias,
          p->alive ? "it ran" : "somebody had stopped it by hand");
    p->alive = true;
    p->up = p->stopping = p->sent_away = false;
    w->depth++;
    if (chance(w, p->temper.at_once))
        provider_rise(p);
    w->depth--;
}

static void on_stop(struct provider *core)
{
    struct sim_provider *p = of_provider(core);
    struct world *w = p->world;

    TRACE(w, "-> %s stop", p->alias);
    CHECK(w, p->alive && !p->stopping, "%s was stopped, but %s", p->alias,
          p->alive ? "twice" : "it did not run");
    CHECK(w, !p->n_jobs, "%s was stopped with calls open", p->alias);
    if (p->core.rests)
        CHECK(w, p->up && w->timers.now - p->used_at >= p->core.policy.idle_stop,
              "%s was put to rest, but was in use", p->alias);
    else if (!p->sent_away) /* then its start was too slow */
        p->failed = true;
    p->stopping = true;
    w->depth++;
    if (chance(w, p->temper.at_once))
        provider_fall(p);
    w->depth--;
}

static const struct peer_verbs verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};
static const struct provider_ops ops = {.start = on_start, .stop = on_stop};

/* --- life --- */

static void random_policy(struct world *w, struct policy *policy)
{
    static const uint64_t timeouts[] = {0, 40, 500, 5000}, waits[] = {1, 50, 500};
    static const uint64_t starts[] = {0, 60, 600}, rests[] = {0, 0, 100, 2000};
    static const struct span approve[] = {{"C*", 2}};
    static const size_t slots[] = {0, 1, 2, 3}, queues[] = {0, 1, 3, 1000};
    static const unsigned limits[] = {0, 0, 1, 3};

    policy->timeout = PICK(w, timeouts);
    policy->ask_timeout = PICK(w, timeouts);
    policy->progress_extends = chance(w, 50);
    policy->concurrency = PICK(w, slots);
    policy->queue = PICK(w, queues);
    policy->start_timeout = PICK(w, starts);
    policy->backoff_first = PICK(w, waits);
    policy->backoff_max = policy->backoff_first * (1 + pick(w, 4));
    policy->settle = PICK(w, timeouts);
    policy->restart_limit = PICK(w, limits);
    policy->eager = chance(w, 60);
    policy->idle_stop = PICK(w, rests);
    policy->approve_timeout = 100 + pick(w, 1000);
    policy->approve = approve;
    policy->n_approve = chance(w, 50);
    policy->approve_by = APPROVE_BY_EITHER;
}

struct sim_provider *provider_new(struct world *w)
{
    struct sim_provider *p = MEM_NEW(struct sim_provider);

    snprintf(p->alias, sizeof p->alias, "p%u", ++w->last_alias);
    p->world = w;
    p->temper = (struct temper){pick(w, 4) * 15, pick(w, 3) * 30};
    provider_init(&p->core, &verbs, &ops, p->alias);
    p->core.takes_any = true;
    random_policy(w, &p->core.policy);
    router_add_provider(w->router, &p->core);
    return p;
}

void provider_free(struct sim_provider *p)
{
    CHECK(p->world, !p->alive && !p->n_jobs, "%s goes, but not all of it is gone", p->alias);
    router_remove_provider(p->world->router, &p->core);
    provider_fini(&p->core);
    mem_free(p);
}

/* Few names, two of them too long, shared by all providers, so that views must rename. */
static void add_random_item(struct catalog *c, struct world *w, enum item_kind kind)
{
    static const char *const members[ITEM_KINDS] = {"name", "uri", "uriTemplate", "name"};
    static const char *const names[] = {
        "a",
        "b",
        "c",
        "d/e",
        "a-name-that-is-so-long-that-no-pattern-will-keep-it-as-it-is-0001",
        "a-name-that-is-so-long-that-no-pattern-will-keep-it-as-it-is-0002"};
    static const char *const uris[] = {"x://1", "x://2", "x://3"};
    static const char *const templates[] = {"x://{y}", "z://{+y}"};
    static const unsigned flags[] = {0, 0, ITEM_READ_ONLY, ITEM_IDEMPOTENT};
    const char *name = kind == ITEM_RESOURCE   ? PICK(w, uris)
                       : kind == ITEM_TEMPLATE ? PICK(w, templates)
                                               : PICK(w, names);
    char raw[128];
    int n = snprintf(raw, sizeof raw, "{\"%s\":\"%s\",\"v\":%u}", members[kind], name, pick(w, 2));

    catalog_add(c, kind,
                &(struct item){.name = span_str(name),
                               .raw = span_of(raw, (size_t)n),
                               .name_at = {strlen(members[kind]) + 4, strlen(name) + 2},
                               .flags = PICK(w, flags)});
}

void provider_offer(struct sim_provider *p)
{
    static const unsigned most[ITEM_KINDS] = {5, 3, 2, 3};
    struct world *w = p->world;

    if (!p->alive || p->stopping)
        return;
    struct catalog *c = catalog_new();
    if (p->core.catalog && chance(w, 30)) {
        for (int kind = 0; kind < ITEM_KINDS; kind++)
            catalog_copy_kind(c, p->core.catalog, (enum item_kind)kind);
    } else {
        for (int kind = 0; kind < ITEM_KINDS; kind++)
            for (unsigned i = pick(w, most[kind]); i; i--)
                add_random_item(c, w, (enum item_kind)kind);
    }
    c->offers = (chance(w, 50) ? OFFERS_LOGGING : 0) | (chance(w, 80) ? OFFERS_SUBSCRIBE : 0);
    TRACE(w, "%s: publishes %zu tools", p->alias, c->n[ITEM_TOOL]);
    w->dirty = true;
    provider_publish(&p->core, c);
    CHECK(w, p->core.catalog->generation >= ++p->generation, "generations do not count up");
}

void provider_rise(struct sim_provider *p)
{
    struct world *w = p->world;

    if (!p->alive || p->up || p->stopping)
        return;
    if (!p->core.catalog || chance(w, 70))
        provider_offer(p);
    /* Publishing calls consumers, one of which may have stopped the provider. */
    if (!p->alive || p->up || p->stopping)
        return;
    TRACE(w, "%s: up", p->alias);
    p->up = true;
    p->failed = false;
    p->used_at = w->timers.now;
    w->dirty = true;
    provider_up(&p->core);
}

void provider_fall(struct sim_provider *p)
{
    struct world *w = p->world;

    if (!p->alive)
        return;
    TRACE(w, "%s: lost", p->alias);
    for (size_t i = w->n_jobs; i-- > 0;)
        if (w->jobs[i]->provider == p)
            job_over(w->jobs[i]);
    if (!p->stopping)
        p->failed = true;
    p->alive = p->up = p->stopping = false;
    memset(p->questions, 0, sizeof p->questions);
    w->dirty = true;
    p->falling++;
    provider_lost(&p->core, "lost");
    p->falling--;
}

void provider_call_for(struct sim_provider *p)
{
    if (p->leaving)
        return;
    TRACE(p->world, "%s: wanted", p->alias);
    provider_want(&p->core);
}

/* Notes that we stop it, unless the core is already stopping it because its start was too slow. */
static void note_stop(struct sim_provider *p)
{
    if (p->alive && p->core.state != PROVIDER_STOPPING)
        p->sent_away = true;
    p->world->dirty = true;
}

void provider_send_away(struct sim_provider *p)
{
    TRACE(p->world, "%s: unwanted", p->alias);
    note_stop(p);
    p->unwanting++;
    provider_unwant(&p->core);
    p->unwanting--;
}

void provider_operate(struct sim_provider *p)
{
    struct world *w = p->world;
    bool restarts = chance(w, 50);

    if (p->leaving || p->unwanting || w->draining)
        return;
    TRACE(w, "%s: %s by hand", p->alias,
          p->halted  ? "started"
          : restarts ? "restarted"
                     : "stopped");
    w->dirty = true;
    if (p->halted) {
        p->halted = false;
        provider_resume(&p->core);
        return;
    }
    note_stop(p);
    p->unwanting++;
    p->halted = !restarts;
    (restarts ? provider_restart : provider_halt)(&p->core);
    p->unwanting--;
}

static void announce_update(struct sim_provider *p)
{
    struct world *w = p->world;

    for (size_t i = 0; i < w->n_flights; i++)
        w->flights[i]->expects_update = w->flights[i]->subscribed == p;
    router_broadcast(
        &p->core, &(struct event){.kind = EVENT_UPDATED, .name = SPAN("x://1"), .from = &p->core});
    for (size_t i = 0; i < w->n_flights; i++)
        CHECK(w, !w->flights[i]->expects_update, "%u did not hear of its resource",
              w->flights[i]->id);
}

void provider_announce(struct sim_provider *p)
{
    TRACE(p->world, "%s: broadcast", p->alias);
    if (p->world->depth == 0 && chance(p->world, 50))
        announce_update(p);
    else
        router_broadcast(&p->core, &(struct event){.kind = EVENT_LOG, .from = &p->core});
}

bool provider_shows(const struct sim_provider *p)
{
    if (p->alive && p->up && !p->stopping)
        return true;
    bool may_rest = !p->core.policy.eager || p->core.policy.idle_stop;
    return may_rest && !p->halted && p->core.catalog && !p->failed;
}
