/* Questions of a provider that do not say which call they belong to: put to the only agent that has
 * calls open, or held until it is known which agent is meant. Also makes the agents' calls take
 * turns. Called by mcp/server/provider.c to ask, and by call.c and ask.c. */
#include "core/doubts.h"

#include "base/mem.h"
#include "core/inside.h"

/* A provider may have this many such questions open; more are refused. */
enum { MAX_DOUBTS = 64 };

/* A question, kept until it is answered: it may have to be asked again on another call. */
struct doubt {
    struct list node;
    uint64_t asked_on; /* the handle of the call on which it was asked; 0 while it is held */
    bool tainted;      /* while held: a call that may have asked this was given up */
    struct ask ask;    /* its spans point into `bytes` */
    char bytes[];
};

static struct doubt *doubt_new(const struct ask *ask)
{
    struct doubt *d = mem_zalloc(sizeof *d + ask->key.n + ask->method.n + ask->params.n);
    struct span *const pieces[] = {&d->ask.key, &d->ask.method, &d->ask.params};
    size_t at = 0;

    d->ask = *ask;
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        if (pieces[i]->n)
            memcpy(d->bytes + at, pieces[i]->p, pieces[i]->n);
        *pieces[i] = span_of(d->bytes + at, pieces[i]->n);
        at += pieces[i]->n;
    }
    return d;
}

static void doubt_free(struct doubt *d)
{
    list_remove(&d->node);
    mem_free(d);
}

static struct doubt *first_held(const struct provider *p)
{
    LIST_EACH (&p->doubts, it)
        if (!LIST_ENTRY(it, struct doubt, node)->asked_on)
            return LIST_ENTRY(it, struct doubt, node);
    return NULL;
}

bool doubts_held(const struct provider *p)
{
    return first_held(p) != NULL;
}

/* --- whose calls are open --- */

static bool same_party(const struct call *a, const struct call *b)
{
    return a->consumer == b->consumer && a->party == b->party;
}

/* The open calls on which the provider may have asked. */
struct field {
    size_t n;             /* all of them */
    size_t n_running;     /* those that wait for no answer to a question */
    struct call *latest;  /* of all `n`; calls are in the order they were handed over */
    struct call *running; /* the latest of the `n_running` */
    bool mixed;           /* the calls are of several parties */
    bool anybody;         /* some calls are of agents that we cannot tell apart */
};

static struct field look(const struct provider *p)
{
    struct field f = {0};

    LIST_EACH (&p->open, it) {
        struct call *c = LIST_ENTRY(it, struct call, in_provider);
        if (!ask_may_come_on(c))
            continue;
        f.mixed |= f.latest && !same_party(f.latest, c);
        f.anybody |= c->anybody;
        f.latest = c;
        f.n++;
        if (list_empty(&c->asks)) {
            f.running = c;
            f.n_running++;
        }
    }
    return f;
}

/*
 * A call whose question is not answered yet stands still, perhaps for minutes, so a new question
 * belongs to another call. This is assumed only among calls of one party: if a server does ask two
 * things at once, the wrong person must not be asked.
 */
static struct call *owner_of(const struct field *f)
{
    if (f->mixed)
        return NULL;
    if (f->n == 1 || (!f->n_running && !f->anybody))
        return f->latest;
    return f->n_running == 1 || !f->anybody ? f->running : NULL;
}

bool doubts_let_in(const struct call *c)
{
    const struct provider *p = c->provider;

    if (!ask_may_come_on(c))
        return true;
    if (doubts_held(p))
        return false;
    LIST_EACH (&p->open, it) {
        const struct call *other = LIST_ENTRY(it, struct call, in_provider);
        if (ask_may_come_on(other) && !same_party(other, c))
            return false;
    }
    return true;
}

/* --- asking --- */

static void refuse(struct provider *p, struct doubt *d, enum failure why, struct span text)
{
    struct call none = {.op = OP_STANDING};
    struct ask ask = d->ask;

    list_remove(&d->node);
    p->peer.verbs->answer(&p->peer, &none, ask.key,
                          &(struct outcome){.kind = OUTCOME_FAILED, .why = why, .text = text});
    mem_free(d);
}

/* All calls wait for held questions, so the last question is refused to let one call go on. Which
 * call had asked it is known when the provider ends that call. */
static void break_tie(struct provider *p)
{
    struct doubt *last = NULL;

    LIST_EACH (&p->doubts, it)
        if (!LIST_ENTRY(it, struct doubt, node)->asked_on)
            last = LIST_ENTRY(it, struct doubt, node);
    p->n_refused++;
    refuse(p, last, FAIL_BUSY,
           SPAN("several clients call this server at once, and it cannot be told whom this "
                "question is for: call again"));
}

/* `held`: count only the questions that were not asked yet. */
static size_t count(const struct provider *p, bool held)
{
    size_t n = 0;

    LIST_EACH (&p->doubts, it)
        n += !held || !LIST_ENTRY(it, struct doubt, node)->asked_on;
    return n;
}

/* Do all calls that wait for no answer wait for held questions instead? While calls of several
 * parties are open and one waits for its user's answer, this is no tie yet. Among calls of one
 * party (agents that look alike) such a call is not waited for: that may take minutes. */
static bool is_tied(const struct field *f, size_t held)
{
    return f->n_running && (f->n_running == f->n || !f->mixed) && held >= f->n_running;
}

/* Asks or refuses the held questions for which this can be decided now. A consumer may open or end
 * calls when it is asked, so the open calls are looked at again for each question. */
static void settle(struct provider *p)
{
    struct doubt *d;

    if (p->settling)
        return;
    p->settling = true;
    while ((d = first_held(p))) {
        struct field f = look(p);
        struct call *owner = owner_of(&f);
        if (!f.n || (owner && d->tainted)) {
            refuse(p, d, FAIL_CANCELLED, SPAN("the call that this may belong to is over"));
        } else if (owner) {
            d->asked_on = owner->handle;
            struct doubt *copy = doubt_new(&d->ask); /* `d` may be freed inside ask_put */
            list_init(&copy->node);
            ask_put(owner, &copy->ask);
            mem_free(copy);
        } else if (is_tied(&f, count(p, true))) {
            break_tie(p);
        } else {
            break;
        }
    }
    p->settling = false;
}

bool doubts_put(struct provider *p, const struct ask *ask)
{
    struct field f = look(p);

    p->takes_turns = true;
    if (!f.n)
        return ask_put_standing(p, ask);
    if (f.n == 1 && !doubts_held(p)) {
        ask_put(f.latest, ask);
        return true;
    }
    if (count(p, false) == MAX_DOUBTS)
        return false;
    list_append(&p->doubts, &doubt_new(ask)->node);
    settle(p);
    /* The calls may have to wait for people: they get the timeout for asks. */
    for (struct list *it = p->open.next; doubts_held(p) && it != &p->open; it = it->next)
        call_arm_deadline(LIST_ENTRY(it, struct call, in_provider));
    return true;
}

/* --- the end --- */

bool doubts_forget(struct provider *p, struct span key)
{
    LIST_EACH (&p->doubts, it) {
        struct doubt *d = LIST_ENTRY(it, struct doubt, node);
        if (span_eq(d->ask.key, key)) {
            doubt_free(d);
            return true;
        }
    }
    return false;
}

void doubts_forget_all(struct provider *p)
{
    p->n_refused = 0;
    LIST_EACH_SAFE (&p->doubts, it)
        doubt_free(LIST_ENTRY(it, struct doubt, node));
}

void doubts_call_ended(struct provider *p, uint64_t handle, bool answered)
{
    LIST_EACH (&p->doubts, it) {
        struct doubt *d = LIST_ENTRY(it, struct doubt, node);
        if (d->asked_on == handle)
            d->asked_on = 0; /* asked again on another call of the same agent */
        else if (!d->asked_on)
            d->tainted |= !answered;
    }
    settle(p);
    if (p->n_refused && !look(p).n)
        p->n_refused = 0;
}

bool doubts_explain(const struct call *c, const struct outcome *outcome)
{
    bool failed = outcome->kind == OUTCOME_ERROR || outcome->is_error;

    if (!c->provider->n_refused || !failed || !ask_may_come_on(c))
        return false;
    c->provider->n_refused--;
    return true;
}
