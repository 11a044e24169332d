/* Subscriptions of standing calls, log levels of providers, and the requests by which providers are
 * told. Called by mcp/agent/ for subscriptions, log levels and roots, and by call.c, router.c and
 * provider.c. */
#include "core/subscriptions.h"

#include "base/mem.h"
#include "core/inside.h"
#include "core/route.h"

#include <stdio.h>

/* What one consumer may have subscribed to: a client that names ever more and longer URIs must not
 * fill our memory. */
enum { SUBSCRIPTIONS_MAX = 1000, SUBSCRIBED_URI_MAX = 8 * 1024 };

/* How long calls wait for the confirmation of a request: enough for many round trips, and too short
 * for a person to take it for a failure. */
enum { CONFIRM_MS = 2000 };

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome);

const struct peer_verbs subscriptions_verbs = {
    .event = ask_ignore_event, .ask = ask_nobody, .done = on_done};

/* Appends a URI or a level word as a JSON string. */
static void put_quoted(struct buf *out, struct span text)
{
    buf_char(out, '"');
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '"' || c == '\\')
            buf_char(out, '\\');
        if (c < 0x20)
            buf_printf(out, "\\u%04x", c);
        else
            buf_char(out, (char)c);
    }
    buf_char(out, '"');
}

/* Keeps calls waiting that must not overtake this request, unless the policy has no queue. */
static bool keep_calls(struct provider *p)
{
    if (!p->policy.queue)
        return false;
    p->unconfirmed++;
    timer_set(p->router->timers, &p->confirm, CONFIRM_MS);
    return true;
}

void subscriptions_unconfirmed(struct timer *t)
{
    struct provider *p = CONTAINER_OF(t, struct provider, confirm);

    p->unconfirmed = 0;
    call_go_on(p);
}

static void tell_provider(struct provider *p, enum op op, const char *member, struct span text,
                          bool calls_wait)
{
    BUF_SCOPED params = {0};

    if (p->state != PROVIDER_READY)
        return; /* the provider is told when it is ready */
    calls_wait = calls_wait && keep_calls(p);
    if (member) {
        buf_printf(&params, "{\"%s\":", member);
        put_quoted(&params, text);
        buf_char(&params, '}');
    }
    call_open_own(p, &(struct request){.op = op, .name = text, .params = buf_view(&params)},
                  calls_wait);
}

/* A subscription in the `uris` of a standing call; the key is the URI that the consumer knows. */
struct subscription {
    struct provider *provider;
    bool pending; /* the provider was told and has not answered */
    size_t n;
    char own[]; /* the provider's URI */
};

/* Subscriptions count as memory that is held for peers. */
static void count(struct router *r, struct span uri, const struct subscription *s, bool more)
{
    size_t n = sizeof *s + s->n + uri.n;

    if (r->kept.in)
        holding_set(&r->kept, more ? r->kept.bytes + n : r->kept.bytes - n);
}

static struct span own_uri(const struct subscription *s)
{
    return span_of(s->own, s->n);
}

/* Removes the subscription from the standing call; returns its provider, or NULL. */
static struct provider *forget(struct call *standing, struct span uri)
{
    struct subscription *s = map_get(&standing->uris, uri);
    struct provider *p = s ? s->provider : NULL;

    if (!s)
        return NULL;
    count(standing->router, uri, s, false);
    map_del(&standing->uris, uri); /* `uri` may be the map's own copy */
    mem_free(s);
    return p;
}

static void remember(struct call *standing, struct span uri, struct provider *p, struct span own,
                     bool pending)
{
    struct subscription *s = mem_alloc(sizeof *s + own.n);

    *s = (struct subscription){.provider = p, .pending = pending, .n = own.n};
    memcpy(s->own, own.p, own.n);
    forget(standing, uri);
    map_put(&standing->uris, uri, s);
    count(standing->router, uri, s, true);
}

const char *subscriptions_refuse(const struct call *standing, struct span uri)
{
    struct holding *kept = &standing->router->kept;

    if (uri.n > SUBSCRIBED_URI_MAX)
        return "this URI is too long to be subscribed to: 8 KiB is the limit";
    if (standing->uris.n >= SUBSCRIPTIONS_MAX && !map_get(&standing->uris, uri))
        return "too many subscriptions: 1000 is the limit, so end some of them first";
    return kept->in && !holdings_fit(kept->in, 2 * uri.n)
               ? "there is no room for another subscription (limits.memory)"
               : NULL;
}

/* The standing call's subscription to this resource, or NULL; `uri` gets the consumer's URI. */
static struct subscription *find(const struct call *standing, const struct provider *p,
                                 struct span own, struct span *uri)
{
    size_t at = 0;
    void *s;

    while (map_next(&standing->uris, &at, uri, &s))
        if (((struct subscription *)s)->provider == p && span_eq(own_uri(s), own))
            return s;
    return NULL;
}

struct span subscriptions_uri(const struct call *standing, const struct provider *p,
                              struct span own)
{
    struct span uri;

    return find(standing, p, own, &uri) ? uri : SPAN_EMPTY;
}

static bool anybody_has(const struct router *r, const struct provider *p, struct span own)
{
    LIST_EACH (&r->standing, it)
        if (subscriptions_uri(LIST_ENTRY(it, struct call, standing), p, own).p)
            return true;
    return false;
}

/* Does a standing call wait for this subscription? */
static bool anybody_pending(const struct router *r, const struct provider *p, struct span own)
{
    LIST_EACH (&r->standing, it) {
        struct span uri;
        const struct subscription *s = find(LIST_ENTRY(it, struct call, standing), p, own, &uri);
        if (s && s->pending)
            return true;
    }
    return false;
}

bool subscriptions_pending(const struct call *standing)
{
    size_t at = 0;
    struct span uri;
    void *s;

    while (map_next(&standing->uris, &at, &uri, &s))
        if (((struct subscription *)s)->pending)
            return true;
    return false;
}

/* The provider has answered the subscription to this resource. True if the standing call waited for
 * that; one that was refused is forgotten, so that whoever wants it next asks again. */
static bool take_answer(struct call *standing, const struct provider *p, struct span own,
                        bool refused)
{
    struct subscription *s;
    struct span uri;
    bool waited = false;

    while ((s = find(standing, p, own, &uri))) {
        waited = waited || s->pending;
        s->pending = false;
        if (!refused)
            break;
        forget(standing, uri);
    }
    return waited;
}

/* All standing calls take the answer before the first is told: any of them may end, or subscribe
 * again, inside an event. */
static void settle(struct provider *p, struct span own, bool refused)
{
    const struct event settled = {.kind = EVENT_SETTLED, .from = p};
    struct router *r = p->router;
    BUF_SCOPED handles = {0};
    uint64_t handle;

    LIST_EACH (&r->standing, it) {
        struct call *c = LIST_ENTRY(it, struct call, standing);
        if (take_answer(c, p, own, refused))
            buf_bytes(&handles, &c->handle, sizeof c->handle);
    }
    for (size_t at = 0; at < handles.n; at += sizeof handle) {
        memcpy(&handle, handles.p + at, sizeof handle);
        struct call *c = router_find(r, handle);
        if (c && !subscriptions_pending(c))
            c->consumer->verbs->event(c->consumer, c, &settled);
    }
}

/* A call that the router opened by itself has ended: what it asked for is confirmed, or refused by
 * an error. What the provider could not answer stays: its next instance is told. */
static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct provider *p = call->provider;

    (void)self;
    if (call->goes_first && p->unconfirmed && --p->unconfirmed == 0)
        timer_clear(p->router->timers, &p->confirm);
    if (call->op == OP_SUBSCRIBE)
        settle(p, span_of(call->name, call->name_n), outcome->kind == OUTCOME_ERROR);
}

bool subscriptions_add(struct call *standing, struct span uri)
{
    struct route route;
    struct request request = {.op = OP_SUBSCRIBE, .name = uri};

    if (subscriptions_refuse(standing, uri) || !route_find(standing->view, &request, &route) ||
        !route.provider->catalog || !(route.provider->catalog->offers & OFFERS_SUBSCRIBE))
        return false;
    bool first = !anybody_has(standing->router, route.provider, route.own_name);
    bool pending = anybody_pending(standing->router, route.provider, route.own_name) ||
                   (first && route.provider->state == PROVIDER_READY);
    remember(standing, uri, route.provider, route.own_name, pending);
    if (first)
        tell_provider(route.provider, OP_SUBSCRIBE, "uri", route.own_name, false);
    return true;
}

void subscriptions_note(struct call *standing, struct provider *p, struct span own, struct span uri)
{
    remember(standing, uri, p, own, false);
}

/* Is no other consumer subscribed to the resource, nor about to be? */
static bool nobody_else_has(const struct call *standing, const struct provider *p, struct span own)
{
    LIST_EACH (&p->open, it) {
        const struct call *c = LIST_ENTRY(it, struct call, in_provider);
        if (c->op == OP_SUBSCRIBE && c->consumer != standing->consumer &&
            c->consumer != &p->router->own && span_eq(span_of(c->name, c->name_n), own))
            return false;
    }
    return !anybody_has(standing->router, p, own);
}

/* The same, for the resource that this consumer calls `uri`. */
static bool nobody_has(const struct call *standing, struct span uri)
{
    struct route route;

    return !route_find(standing->view, &(struct request){.op = OP_UNSUBSCRIBE, .name = uri},
                       &route) ||
           nobody_else_has(standing, route.provider, route.own_name);
}

bool subscriptions_remove(struct call *standing, struct span uri)
{
    const struct subscription *s = map_get(&standing->uris, uri);
    BUF_SCOPED own = {0};

    if (!s)
        return nobody_has(standing, uri);
    buf_span(&own, own_uri(s));
    const struct provider *p = forget(standing, uri);
    return nobody_else_has(standing, p, buf_view(&own));
}

bool subscriptions_any(const struct provider *p)
{
    LIST_EACH (&p->router->standing, it) {
        const struct call *c = LIST_ENTRY(it, struct call, standing);
        size_t at = 0;
        struct span uri;
        void *s;
        while (map_next(&c->uris, &at, &uri, &s))
            if (((struct subscription *)s)->provider == p)
                return true;
    }
    return false;
}

void subscriptions_standing_ended(struct call *standing)
{
    struct map uris = standing->uris; /* moved: a provider that is told may call back */
    size_t at = 0;
    struct span uri;
    void *s;

    standing->uris = (struct map){0};
    /* The standing call has left the router's list already, so its own do not count here. */
    while (map_next(&uris, &at, &uri, &s)) {
        struct provider *p = ((struct subscription *)s)->provider;
        count(standing->router, uri, s, false);
        if (!anybody_has(standing->router, p, own_uri(s)))
            tell_provider(p, OP_UNSUBSCRIBE, "uri", own_uri(s), false);
        mem_free(s);
    }
    map_fini(&uris);
}

static void collect(const struct provider *p, struct map *uris)
{
    LIST_EACH (&p->router->standing, it) {
        struct call *c = LIST_ENTRY(it, struct call, standing);
        size_t at = 0;
        struct span uri;
        void *s;
        while (map_next(&c->uris, &at, &uri, &s))
            if (((struct subscription *)s)->provider == p)
                map_put(uris, own_uri(s), s);
    }
}

/* The subscriptions were collected first: a standing call may end while the provider is told. */
static void tell_all(struct provider *p, bool level, struct map *uris)
{
    size_t at = 0;
    struct span uri;

    if (level)
        tell_provider(p, OP_SET_LEVEL, "level", span_str(p->log_word), true);
    while (map_next(uris, &at, &uri, NULL))
        tell_provider(p, OP_SUBSCRIBE, "uri", uri, true);
    map_fini(uris);
}

void subscriptions_provider_ready(struct provider *p)
{
    struct map uris = {0};

    collect(p, &uris);
    tell_all(p, p->log_rank < LOG_RANK_NONE, &uris);
}

void subscriptions_hand_over(struct provider *from, struct provider *to)
{
    bool level = from->log_rank < to->log_rank;
    struct map uris = {0};

    LIST_EACH (&from->router->standing, it) {
        struct call *c = LIST_ENTRY(it, struct call, standing);
        size_t at = 0;
        void *s;
        bool sees = view_has(c->view, to);
        while (sees && map_next(&c->uris, &at, NULL, &s)) {
            struct subscription *one = s;
            if (one->provider != from)
                continue;
            one->provider = to;
            map_put(&uris, own_uri(one), one);
        }
    }
    if (level) {
        to->log_rank = from->log_rank;
        snprintf(to->log_word, sizeof to->log_word, "%s", from->log_word);
    }
    tell_all(to, level, &uris);
}

static bool forget_one(struct call *standing, const struct provider *p)
{
    size_t at = 0;
    struct span uri;
    void *s;

    while (map_next(&standing->uris, &at, &uri, &s)) {
        if (((struct subscription *)s)->provider == p) {
            forget(standing, uri);
            return true;
        }
    }
    return false;
}

void subscriptions_provider_withdrawn(const struct router *r, const struct provider *p)
{
    LIST_EACH (&r->standing, it)
        while (forget_one(LIST_ENTRY(it, struct call, standing), p)) {
        }
}

/* A provider's level only gets more verbose: each consumer's family drops the lines that its
 * consumer did not ask for. */
void subscriptions_want_log(struct router *r, struct view *v, int rank, const char *word)
{
    struct provider *p;

    (void)r;
    for (size_t i = 0; (p = view_member(v, i)); i++) {
        bool offers = !p->catalog || (p->catalog->offers & OFFERS_LOGGING);
        if (!offers || rank >= p->log_rank)
            continue;
        p->log_rank = rank;
        snprintf(p->log_word, sizeof p->log_word, "%s", word);
        tell_provider(p, OP_SET_LEVEL, "level", span_str(word), true);
    }
}

static size_t watchers_of(const struct provider *p)
{
    size_t n = 0;

    LIST_EACH (&p->router->standing, it)
        n += view_has(LIST_ENTRY(it, struct call, standing)->view, p);
    return n;
}

/* A provider that several consumers share knows no roots, so it is not told of changes either. */
void subscriptions_roots_changed(struct call *standing)
{
    struct provider *p;

    for (size_t i = 0; (p = view_member(standing->view, i)); i++)
        if (watchers_of(p) == 1)
            tell_provider(p, OP_ROOTS_CHANGED, NULL, SPAN_EMPTY, false);
}
