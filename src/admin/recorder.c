/* The memory of the last calls: chunks that are filled by the router's tap and used again, oldest
 * first. Begun and ended by admin.c; calls.c, news.c, replay.c and stateless.c read the records. */
#include "admin/recorder.h"

#include "base/mem.h"
#include "core/principal.h"

#include <stddef.h>

/* Bytes that are kept of a clientInfo (a longer one is cut, is no JSON then, and is not shown) and
 * of a name; and the smallest size of a chunk. */
enum { CLIENT_KEPT = 512, NAME_KEPT = 2 * RECORD_MARGIN, CHUNK_MIN = 64 * 1024 };
/* The bodies of all legs of a call may take this many times the room of one body. */
enum { LEGS_BODIES = 4 };

/* Records with their texts, in the order in which they were taken. */
struct chunk {
    struct list node;
    size_t used;
    _Alignas(max_align_t) char bytes[];
};

/* Forgets the records that begin in this chunk. What was added to them later is in this chunk or a
 * newer one. */
static void forget_all_in(struct recorder *r, const struct chunk *c)
{
    struct record *oldest;

    while ((oldest = LIST_FIRST(&r->records, struct record, node)) &&
           (const char *)oldest >= c->bytes && (const char *)oldest < c->bytes + r->chunk) {
        idmap_take(&r->by_id, oldest->id);
        list_remove(&oldest->node);
    }
}

static void next_chunk(struct recorder *r)
{
    struct chunk *c;

    if (r->n_chunks < r->max_chunks) {
        c = mem_alloc(sizeof *c + r->chunk);
        r->n_chunks++;
    } else {
        c = LIST_FIRST(&r->chunks, struct chunk, node);
        forget_all_in(r, c);
        list_remove(&c->node);
    }
    c->used = 0;
    list_append(&r->chunks, &c->node);
    r->current = c;
}

static void *take(struct recorder *r, size_t n)
{
    size_t whole = (n + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);

    if (!r->current || r->current->used + whole > r->chunk)
        next_chunk(r);
    r->current->used += whole;
    return r->current->bytes + r->current->used - whole;
}

/* Copies `text` to `*at` and moves `*at` behind the copy. */
static struct span keep(char **at, struct span text)
{
    struct span copy = span_of(*at, text.n);

    if (text.n)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return copy;
}

static struct span bounded(const struct recorder *r, struct span text)
{
    return span_cut(text, 0, r->body + RECORD_MARGIN);
}

static const char *on_opened(struct tap *self, const struct call *c, const struct request *q)
{
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    const struct provider *p = c->provider;

    if (!call_concerns_people(c))
        return NULL;
    struct span server = p ? span_str(p->told_as ? p->told_as : p->alias) : SPAN_EMPTY;
    struct span page = p && p->told_as ? span_str(p->alias) : SPAN_EMPTY;
    struct span name = span_cut(q->name, 0, NAME_KEPT), params = bounded(r, q->params);
    struct span pins = p ? provider_pinned(p, q->op, q->name) : SPAN_EMPTY;
    struct span pinned = bounded(r, pins),
                token = span_str(c->principal ? c->principal->name : NULL);
    struct span client = span_cut(span_str(c->caller->client), 0, CLIENT_KEPT);
    struct span session = span_str(c->caller->session), way = span_str(c->caller->endpoint);
    struct record *rec = take(r, sizeof *rec + server.n + page.n + name.n + params.n + pinned.n +
                                     token.n + client.n + session.n + way.n);
    char *at = (char *)(rec + 1);
    *rec = (struct record){
        .id = c->handle, .op = c->op, .opened_at = c->opened_at, .resumes = q->resumes};
    rec->server = keep(&at, server);
    rec->page = keep(&at, page);
    rec->name = keep(&at, name);
    rec->params = (struct record_body){keep(&at, params), q->params.n};
    rec->pinned = (struct record_body){keep(&at, pinned), pins.n};
    rec->token = keep(&at, token);
    rec->client = keep(&at, client);
    rec->session = keep(&at, session);
    rec->way = keep(&at, way);
    list_append(&r->records, &rec->node);
    idmap_put(&r->by_id, rec->id, rec);
    return NULL;
}

static const char *on_ended(struct tap *self, const struct call *c, const struct outcome *outcome)
{
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    struct record *rec = idmap_get(&r->by_id, c->handle);

    if (!rec)
        return NULL; /* forgotten to make room for later records */
    struct span error = bounded(r, outcome->text), result = bounded(r, outcome->body);
    char *at = take(r, error.n + result.n);
    if (recorder_find(r, c->handle) != rec)
        return NULL; /* forgotten just now, to make room for its own end */
    rec->ended = true;
    rec->took = router_timers(r->router)->now - rec->opened_at;
    rec->sent = c->tries > 0;
    rec->sent_at = c->sent_at;
    rec->kind = outcome->kind;
    rec->why = outcome->why;
    rec->is_error = outcome->is_error;
    rec->error = keep(&at, error);
    rec->result = (struct record_body){keep(&at, result), outcome->body.n};
    if (r->ended)
        r->ended(r->owner, rec);
    return NULL;
}

/* --- what happens in between --- */

/* How much of the body of a leg is kept: all legs of a call share the room of LEGS_BODIES
 * bodies. */
static struct span leg_body(const struct recorder *r, const struct record *rec, struct span body)
{
    size_t room = LEGS_BODIES * r->body, used = rec->legs_bytes;
    size_t left = used < room ? room - used : 0;

    if (!left)
        return SPAN_EMPTY;
    return span_cut(body, 0, (left < r->body ? left : r->body) + RECORD_MARGIN);
}

/* The texts of `draft` are borrowed. */
static void add_leg(struct recorder *r, const struct call *c, const struct record_leg *draft)
{
    struct record *rec = idmap_get(&r->by_id, c->handle);

    if (!rec)
        return;
    bool many = draft->kind == LEG_EVENT && rec->n_events == RECORD_EVENTS;
    if (many || rec->n_legs == RECORD_LEGS) {
        rec->left_out++;
        rec->left_out_at = router_timers(r->router)->now;
        return;
    }
    struct span what = span_cut(draft->what, 0, NAME_KEPT);
    struct span body = leg_body(r, rec, draft->body.kept);
    struct record_leg *leg = take(r, sizeof *leg + what.n + body.n);
    if (recorder_find(r, c->handle) != rec)
        return; /* forgotten just now */
    char *at = (char *)(leg + 1);
    *leg = *draft;
    leg->next = NULL;
    leg->at = router_timers(r->router)->now;
    leg->what = keep(&at, what);
    leg->body = (struct record_body){keep(&at, body), draft->body.kept.n};
    if (rec->last_leg)
        rec->last_leg->next = leg;
    else
        rec->legs = leg;
    rec->last_leg = leg;
    rec->n_legs++;
    rec->n_events += leg->kind == LEG_EVENT;
    rec->legs_bytes += body.n;
}

static const char *on_decided(struct tap *self, const struct call *c, bool allowed, struct span by)
{
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    struct record *rec = idmap_get(&r->by_id, c->handle);

    if (!rec)
        return NULL;
    if (c->state == CALL_HELD)
        add_leg(r, c,
                &(struct record_leg){.kind = allowed ? LEG_ALLOWED : LEG_REFUSED, .what = by});
    else
        rec->by_rule = true; /* decided when it was opened: needs no leg */
    struct span who = span_cut(by, 0, NAME_KEPT);
    char *at = take(r, who.n);
    if (recorder_find(r, c->handle) != rec)
        return NULL;
    rec->decided_by = keep(&at, who);
    rec->allowed = allowed;
    return NULL;
}

/* Is it Rialto that asks, not the server? */
static bool asks_itself(const struct call *c)
{
    return c->state == CALL_HELD || (c->asked_sign_in && c->provider->built_in);
}

static void on_stepped(struct tap *self, const struct call *c, const struct step *s)
{
    static const enum leg_kind kinds[] = {
        [STEP_WAITS] = LEG_WAITS,   [STEP_SENT] = LEG_SENT,
        [STEP_EVENT] = LEG_EVENT,   [STEP_ASK] = LEG_ASK,
        [STEP_ANSWER] = LEG_ANSWER, [STEP_UNASK] = LEG_UNASK,
        [STEP_HELD] = LEG_HELD,     [STEP_RETRY] = LEG_RETRY,
        [STEP_CANCEL] = LEG_CANCEL, [STEP_CALLED_OFF] = LEG_CALLED_OFF,
    };
    struct recorder *r = CONTAINER_OF(self, struct recorder, tap);
    struct record_leg leg = {.kind = kinds[s->kind], .what = s->why};

    if (s->kind == STEP_UNASK && asks_itself(c))
        leg.kind = LEG_OWN_UNASK;
    if (s->event) {
        leg.event = s->event->kind;
        leg.what = s->event->method;
        leg.body.kept = s->event->params;
    } else if (s->ask) {
        leg.kind = asks_itself(c) ? LEG_OWN_ASK : LEG_ASK;
        leg.what = s->ask->method;
        leg.body.kept = s->ask->params;
    } else if (s->outcome) {
        leg.kind = asks_itself(c)                       ? LEG_OWN_ANSWER
                   : s->outcome->kind == OUTCOME_FAILED ? LEG_REFUSED_ANSWER
                                                        : LEG_ANSWER;
        leg.what = s->outcome->text;
        leg.body.kept = s->outcome->body;
    } else if (s->kind == STEP_CANCEL) {
        leg.body.kept = c->cancel_params;
    }
    struct record *rec = s->kind == STEP_RETRY ? idmap_get(&r->by_id, c->handle) : NULL;
    if (rec)
        rec->retried++;
    add_leg(r, c, &leg);
}

void recorder_begin(struct recorder *r, struct router *router, size_t keep, size_t body)
{
    size_t whole = 3 * (body + RECORD_MARGIN);

    *r = (struct recorder){.tap = {.opened = on_opened,
                                   .ended = on_ended,
                                   .decided = on_decided,
                                   .stepped = on_stepped},
                           .router = router,
                           .body = body,
                           .chunk = whole > CHUNK_MIN ? whole : CHUNK_MIN};
    r->max_chunks = keep / r->chunk;
    list_init(&r->chunks);
    list_init(&r->records);
    if (r->max_chunks)
        tap_add(router, &r->tap);
}

void recorder_end(struct recorder *r)
{
    tap_remove(&r->tap);
    LIST_EACH_SAFE (&r->chunks, it)
        mem_free(LIST_ENTRY(it, struct chunk, node));
    idmap_fini(&r->by_id);
}

const struct record *recorder_find(const struct recorder *r, uint64_t id)
{
    return idmap_get(&r->by_id, id);
}

const struct record *recorder_next(const struct recorder *r, const struct record *rec)
{
    const struct list *prev = rec ? rec->node.prev : r->records.prev;

    return prev == &r->records ? NULL : LIST_ENTRY(prev, struct record, node);
}

size_t recorder_shown(const struct recorder *r, const struct record_body *body)
{
    size_t kept = body->kept.n;

    if (kept < body->whole)
        return kept > RECORD_MARGIN ? kept - RECORD_MARGIN : 0;
    return kept < r->body ? kept : r->body;
}

bool recorder_is_whole(const struct recorder *r, const struct record_body *body)
{
    return recorder_shown(r, body) == body->whole;
}
