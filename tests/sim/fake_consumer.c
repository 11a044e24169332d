#include "actors.h"

#include "core/route.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const failure_words[FAIL_COUNT] = {
    "none",    "unknown", "unavailable", "crashed",  "timeout",  "busy",    "cancelled",
    "refused", "denied",  "arguments",   "protocol", "shutdown", "limited",
};

/* --- flights --- */

static struct flight *flight_new(struct sim_consumer *c, enum op op)
{
    struct world *w = c->world;
    struct flight *f = MEM_NEW(struct flight);

    f->id = ++w->last_id;
    f->consumer = c;
    f->op = op;
    f->answers = c->answers;
    f->armed_at = w->timers.now;
    w->flights[w->n_flights++] = f;
    return f;
}

/* The call has ended for the consumer; the memory is freed between two steps. */
static void flight_over(struct flight *f)
{
    struct world *w = f->consumer->world;
    size_t at = 0;

    while (w->flights[at] != f)
        at++;
    w->flights[at] = w->flights[--w->n_flights];
    f->ended = true;
    f->next_dead = w->dead_flights;
    w->dead_flights = f;
    if (f->consumer->standing == f)
        f->consumer->standing = NULL;
    if (f->provider)
        f->provider->used_at = w->timers.now;
}

uint64_t flight_limit(const struct flight *f)
{
    uint64_t limit = 0;

    if (f->held)
        limit = f->provider->core.policy.approve_timeout;
    else if (f->provider)
        limit = f->n_open ? f->provider->core.policy.ask_timeout : f->provider->core.policy.timeout;
    return limit ? f->armed_at + limit : UINT64_MAX;
}

void flight_cancel(struct flight *f)
{
    struct world *w = f->consumer->world;

    if (f->ended || !f->call || f->cancelling)
        return;
    TRACE(w, "%s: cancels %u", f->consumer->name, f->id);
    f->cancelling = true;
    call_cancel(f->call, FAIL_CANCELLED);
    CHECK(w, f->ended, "%u was cancelled, but did not end", f->id);
}

/* --- people --- */

static void put_question(struct buf *out, const struct call *c)
{
    (void)c;
    buf_str(out, "{}");
}

static enum consent read_answer(const struct outcome *answer)
{
    return span_is(answer->body, "yes")  ? CONSENT_GIVEN
           : span_is(answer->body, "no") ? CONSENT_DENIED
                                         : CONSENT_UNASKED;
}

void approver_init(struct approver *a, struct world *w)
{
    *a = (struct approver){put_question, read_answer, chance(w, 60)};
}

/* After the approval the call is handled like any other. */
static void flight_allowed(struct flight *f)
{
    f->held = false;
    f->opening = true; /* it may still be refused as busy */
    f->armed_at = f->consumer->world->timers.now;
}

void flight_decide(struct flight *f)
{
    struct world *w = f->consumer->world;
    bool yes = chance(w, 60), mine = f->held && !f->said_no;

    if (f->ended || !f->call || (f->held && f->provider->unwanting))
        return;
    TRACE(w, "the operator says %s to %u", yes ? "yes" : "no", f->id);
    bool was_opening = f->opening;
    if (mine && yes)
        flight_allowed(f);
    else if (mine)
        f->said_no = true;
    enum decided decided = approval_decide(w->router, f->call->handle,
                                           &(struct verdict){yes, "the operator", "the operator"});
    f->opening = was_opening;
    CHECK(w, decided == (mine ? DECIDED : DECIDED_UNKNOWN),
          "the operator decided %u, which was not his to decide, or the other way round", f->id);
}

static void send_answer(struct flight *f, const char *key, const char *body)
{
    TRACE(f->consumer->world, "%s: answers %s on %u", f->consumer->name, key, f->id);
    ask_answer(f->call, span_str(key),
               &(struct outcome){.kind = OUTCOME_RESULT, .body = span_str(body)});
}

static void answer_approval(struct flight *f, const char *key)
{
    static const char *const words[] = {"yes", "yes", "yes", "no", "what?"};
    struct world *w = f->consumer->world;
    const char *word = PICK(w, words);
    bool was_opening = f->opening;

    if (strcmp(word, "yes") == 0)
        flight_allowed(f);
    else
        f->said_no = strcmp(word, "no") == 0 || !w->approver.has_operator;
    send_answer(f, key, word);
    f->opening = was_opening;
}

/* Does the provider still wait for this answer? */
static bool still_asked(const struct job *j, unsigned key)
{
    for (size_t i = 0; i < MAX_ASKS; i++)
        if (j->questions[i].open && j->questions[i].key == key)
            return !j->over;
    return false;
}

void flight_answer(struct flight *f)
{
    struct world *w = f->consumer->world;
    struct question *q = &f->questions[pick(w, MAX_ASKS)];

    if (f->ended || !f->call || (f->held && f->provider->unwanting))
        return; /* the last case: the question may have been taken back already */
    if (chance(w, 10))
        send_answer(f, "0", "{}"); /* no question has the key 0 */
    if (!q->open)
        return;
    struct job *j = f->job;
    struct question asked = *q;
    q->open = false;
    f->n_open--;
    f->armed_at = w->timers.now;
    if (f->held) {
        answer_approval(f, asked.text);
        return;
    }
    send_answer(f, asked.text, "{}");
    CHECK(w, !j || !still_asked(j, asked.key), "the answer to %u got lost", asked.key);
    if (!f->ended && chance(w, 15))
        send_answer(f, asked.text, "{}"); /* a second answer must not reach the provider */
}

/* --- verbs --- */

static struct flight *flight_of(struct peer *self, struct call *call)
{
    struct sim_consumer *c = CONTAINER_OF(self, struct sim_consumer, peer);
    struct flight *f = call->consumer_data;

    CHECK(c->world, f->consumer == c, "%s heard of %u, which is another's", c->name, f->id);
    CHECK(c->world, !f->ended, "%s heard of %u after its end", c->name, f->id);
    CHECK(c->world, !f->call || f->call == call, "%u is another call now", f->id);
    if (router_find(c->world->router, call->handle))
        f->call = call;
    return f;
}

/* A change event must name exactly the lists that differ from those at the last event. */
static void check_changed(struct flight *f, unsigned changed)
{
    struct world *w = f->consumer->world;

    CHECK(w, f->standing && changed, "%u was told of no change", f->id);
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        uint64_t print = list_print(f->consumer->view, (enum item_kind)kind);
        bool told = (changed & (1u << kind)) != 0;
        CHECK(w, told == (print != f->told[kind]), "%s: list %d has %schanged", f->consumer->name,
              kind, told ? "not " : "");
        f->told[kind] = print;
    }
}

/* The provider has taken a question back. */
static void take_unasked(struct flight *f, struct span key)
{
    struct world *w = f->consumer->world;

    for (size_t i = 0; i < MAX_ASKS; i++) {
        struct question *q = &f->questions[i];
        if (!q->open || !span_is(key, q->text))
            continue;
        q->open = false;
        f->n_open--;
        f->armed_at = w->timers.now;
        return;
    }
    CHECK(w, f->standing, "%u: " SPAN_FMT " was taken back, but not asked", f->id, SPAN_ARG(key));
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    struct flight *f = flight_of(self, call);
    struct sim_consumer *c = f->consumer;
    struct world *w = c->world;

    TRACE(w, "-> %s event on %u", c->name, f->id);
    if (event->kind == EVENT_UPDATED) {
        CHECK(w, f->subscribed, "%s did not subscribe to that", c->name);
        f->expects_update = false;
    } else if (event->kind == EVENT_UNASKED)
        take_unasked(f, event->name);
    else if (event->kind == EVENT_CHANGED)
        check_changed(f, event->changed);
    else if (f->standing)
        CHECK(w, view_has(c->view, event->from), "%s heard what is none of its business", c->name);
    else
        CHECK(w, event->token_at.at == ++f->events_seen && f->job, "%u: an event is out of order",
              f->id);
    CHECK(w, event->kind != EVENT_PROGRESS || f->wants_progress, "%u wants no progress", f->id);
    w->depth++;
    if (!f->standing && chance(w, c->temper.in_verb / 3))
        flight_cancel(f);
    world_interrupt(w, &c->temper);
    w->depth--;
}

static void on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct flight *f = flight_of(self, call);
    struct sim_consumer *c = f->consumer;
    struct world *w = c->world;
    struct question asked = {.open = true};

    snprintf(asked.text, sizeof asked.text, SPAN_FMT, SPAN_ARG(ask->key));
    asked.key = (unsigned)strtoul(asked.text, NULL, 10); /* 0 for those that belong to no call */
    TRACE(w, "-> %s asked %s on %u", c->name, asked.text, f->id);
    CHECK(w, (f->job || f->held || f->standing) && !(ask->needs & ~f->answers),
          "%u was asked what it cannot answer", f->id);
    size_t at = 0;
    while (at < MAX_ASKS && f->questions[at].open)
        at++;
    if (f->standing && at == MAX_ASKS)
        return; /* several providers may ask on a standing call: this one gets no answer */
    CHECK(w, at < MAX_ASKS, "%u was asked more than was asked", f->id);
    f->questions[at] = asked;
    f->n_open++;
    f->asked = true;
    f->armed_at = w->timers.now;
    w->depth++;
    if (chance(w, c->temper.in_verb))
        (chance(w, 80) ? flight_answer : flight_cancel)(f);
    world_interrupt(w, &c->temper);
    w->depth--;
}

/* The core ended the call: there must have been a reason. */
static void check_failure(const struct flight *f, const struct outcome *outcome)
{
    const struct world *w = f->consumer->world;
    const struct sim_provider *p = f->provider;
    bool in_line = p && !f->handed;
    bool fits = false;

    switch (outcome->why) {
    case FAIL_UNKNOWN:
        fits = f->opening && !p;
        break;
    case FAIL_BUSY:
        fits = f->opening && in_line && p->core.n_waiting >= p->core.policy.queue;
        break;
    case FAIL_CANCELLED:
        fits = f->cancelling;
        break;
    case FAIL_TIMEOUT:
        fits = w->advancing && w->timers.now >= flight_limit(f) && !f->held;
        break;
    case FAIL_CRASHED:
        fits = p->falling && f->handed && (f->handed == 2 || !f->repeatable || f->asked);
        break;
    case FAIL_UNAVAILABLE:
        fits = p->falling || (p->halted && f->opening);
        break;
    case FAIL_REFUSED:
        fits = f->held && (f->said_no || (w->advancing && w->timers.now >= flight_limit(f)) ||
                           (f->opening && !w->approver.has_operator));
        break;
    case FAIL_SHUTDOWN:
        fits = p->unwanting;
        break;
    case FAIL_NONE:
    case FAIL_DENIED:
    case FAIL_ARGUMENTS:
    case FAIL_PROTOCOL:
    case FAIL_LIMITED:
    case FAIL_COUNT:
        break;
    }
    CHECK(w, fits, "%u ended as %s for no reason", f->id, failure_words[outcome->why]);
    CHECK(w, !outcome->retryable || !f->handed || (f->repeatable && !f->asked),
          "%u is said to be retryable, but may have done something", f->id);
    CHECK(w, !f->job, "%u ended, and its provider was not told", f->id);
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct flight *f = flight_of(self, call);
    struct sim_consumer *c = f->consumer;
    struct world *w = c->world;
    bool ours = outcome->kind == OUTCOME_FAILED;

    TRACE(w, "-> %s done %u: %s", c->name, f->id, ours ? failure_words[outcome->why] : "by it");
    CHECK(w, ours != f->finishing, "%u was ended by somebody else", f->id);
    if (ours)
        check_failure(f, outcome);
    else
        CHECK(w, f->events_seen == f->events_sent, "%u ended before its events", f->id);
    flight_over(f);
    w->depth++;
    if (chance(w, c->temper.in_verb / 2) && w->depth < MAX_DEPTH)
        consumer_open(c);
    world_interrupt(w, &c->temper);
    w->depth--;
}

static const struct peer_verbs verbs = {.event = on_event, .ask = on_ask, .done = on_done};

/* --- what a consumer does --- */

void consumer_init(struct sim_consumer *c, struct world *w, const char *name, struct view *v)
{
    static const unsigned answers[] = {0, ANSWERS_ELICIT_FORM,
                                       ANSWERS_ELICIT_FORM | ANSWERS_SAMPLING};

    *c = (struct sim_consumer){.world = w, .view = v};
    snprintf(c->name, sizeof c->name, "%s", name);
    c->temper.in_verb = pick(w, 4) * 15;
    c->answers = PICK(w, answers);
    peer_init(&c->peer, &verbs);
}

/* A listed name, one that was listed before (its provider may be down or removed), or an unknown
 * one. */
static const char *some_name(struct sim_consumer *c, enum item_kind kind, char *scratch,
                             size_t size)
{
    struct world *w = c->world;
    char *memory = c->remembered[kind * 2 + (int)pick(w, 2)];
    const struct target *t = view_item(c->view, kind, pick(w, 5));

    if (t && chance(w, 75))
        snprintf(memory, sizeof c->remembered[0], SPAN_FMT, SPAN_ARG(t->public_name));
    if (!memory[0] || chance(w, 3))
        return "nothing";
    snprintf(scratch, size, "%s", memory); /* `memory` may change during the call */
    return scratch;
}

void consumer_open(struct sim_consumer *c)
{
    static const struct {
        enum op op;
        enum item_kind kind;
    } kinds[] = {{OP_CALL_TOOL, ITEM_TOOL},    {OP_CALL_TOOL, ITEM_TOOL},
                 {OP_CALL_TOOL, ITEM_TOOL},    {OP_READ_RESOURCE, ITEM_RESOURCE},
                 {OP_COMPLETE, ITEM_TEMPLATE}, {OP_GET_PROMPT, ITEM_PROMPT},
                 {OP_OTHER, ITEM_TOOL}};
    struct world *w = c->world;
    size_t which = pick(w, COUNT_OF(kinds));
    char name[96], params[32];
    struct route route;

    if (c->leaving || w->draining || w->n_flights == MAX_FLIGHTS)
        return;
    struct flight *f = flight_new(c, kinds[which].op);
    struct request request = {.op = f->op,
                              .name = span_str(some_name(c, kinds[which].kind, name, sizeof name)),
                              .answers = c->answers,
                              .wants_progress = chance(w, 50)};
    int n = snprintf(params, sizeof params, "{\"n\":%u}", f->id);
    request.params = span_of(params, (size_t)n);
    f->wants_progress = request.wants_progress;
    if (route_find(c->view, &request, &route)) {
        f->provider = CONTAINER_OF(route.provider, struct sim_provider, core);
        f->held = f->op == OP_CALL_TOOL && f->provider->core.policy.n_approve &&
                  !f->provider->halted && route.own_name.p[0] == 'c';
        f->repeatable = route.repeatable && !f->held;
    }
    TRACE(w, "%s: opens %u, " SPAN_FMT " of %s", c->name, f->id, SPAN_ARG(request.name),
          f->provider ? f->provider->alias : "nobody");
    f->opening = true;
    struct call *call = call_open(w->router, &c->peer, c->view, &request, f);
    f->opening = false;
    CHECK(w, f->ended == !call, "%u was opened: %s", f->id,
          call ? "it has ended, but is there" : "it has not ended, but is gone");
    CHECK(w, !call || !f->call || f->call == call, "%u came back as another call", f->id);
    if (call)
        f->call = call;
}

void consumer_attach(struct sim_consumer *c)
{
    struct world *w = c->world;

    if (c->standing || c->leaving || w->draining || w->n_flights == MAX_FLIGHTS)
        return;
    struct flight *f = flight_new(c, OP_STANDING);
    TRACE(w, "%s: attaches as %u", c->name, f->id);
    f->standing = true;
    f->call = router_attach(w->router, &c->peer, c->view, c->answers, f);
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        f->told[kind] = list_print(c->view, (enum item_kind)kind);
    c->standing = f;
}

void consumer_leave(struct sim_consumer *c)
{
    struct world *w = c->world;

    if (c->leaving)
        return;
    TRACE(w, "%s: leaves", c->name);
    c->leaving = true;
    for (size_t i = 0; i < w->n_flights; i++)
        if (w->flights[i]->consumer == c)
            w->flights[i]->cancelling = true;
    call_cancel_all(&c->peer);
    for (size_t i = 0; i < w->n_flights; i++)
        CHECK(w, w->flights[i]->consumer != c, "%s left, but %u stayed", c->name,
              w->flights[i]->id);
    c->leaving = false;
}

uint64_t list_print(struct view *v, enum item_kind kind)
{
    struct span list = view_list(v, kind);
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < list.n; i++)
        h = (h ^ (unsigned char)list.p[i]) * 0x100000001b3u;
    return h;
}

void consumer_look(struct sim_consumer *c)
{
    (void)view_list(c->view, (enum item_kind)pick(c->world, ITEM_KINDS));
}

void consumer_want_log(struct sim_consumer *c)
{
    subscriptions_want_log(c->world->router, c->view, (int)pick(c->world, LOG_RANK_NONE), "info");
}

/* Subscribes to a resource that every provider may have, or unsubscribes from it. */
void consumer_subscribe(struct sim_consumer *c)
{
    struct flight *f = c->standing;
    const struct request request = {.op = OP_SUBSCRIBE, .name = SPAN("x://1")};
    struct route route;

    if (!f || f->cancelling)
        return;
    f->expects_update = false;
    if (f->subscribed) {
        TRACE(c->world, "%s: unsubscribes", c->name);
        f->subscribed = NULL;
        (void)subscriptions_remove(f->call, request.name);
        return;
    }
    TRACE(c->world, "%s: subscribes", c->name);
    bool found = route_find(c->view, &request, &route) && route.provider->catalog &&
                 (route.provider->catalog->offers & OFFERS_SUBSCRIBE);
    f->subscribed = found ? CONTAINER_OF(route.provider, struct sim_provider, core) : NULL;
    CHECK(c->world, subscriptions_add(f->call, request.name) == found, "%u: subscribed or not?",
          f->id);
}
