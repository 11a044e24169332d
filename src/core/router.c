/* The router's lists of providers, views and standing calls, and telling standing calls about
 * changes and events. Called by hub/ for the graph, by the families, admin/, and call.c, provider.c
 * and approval.c. */
#include "base/log.h"
#include "base/mem.h"
#include "core/inside.h"
#include "core/subscriptions.h"

/* Bytes of a provider's event that are logged when no consumer may see the event. */
enum { MAX_LOGGED = 500 };

struct router *router_new(struct timers *timers, uint64_t seed)
{
    struct router *r = MEM_NEW(struct router);

    r->timers = timers;
    r->random = seed | 1;
    r->max_catalog = CATALOG_MAX;
    list_init(&r->providers);
    list_init(&r->standing);
    list_init(&r->held);
    list_init(&r->taps);
    events_init(&r->events);
    observers_init(&r->observers, timers);
    r->tasks = tasks_new(timers);
    peer_init(&r->own, &subscriptions_verbs);
    return r;
}

void router_free(struct router *r)
{
    observers_fini(&r->observers);
    tasks_free(r->tasks);
    idmap_fini(&r->calls);
    mem_free(r);
}

void router_set_max_catalog(struct router *r, size_t bytes)
{
    r->max_catalog = bytes;
}

size_t router_max_catalog(const struct router *r)
{
    return r->max_catalog;
}

struct tasks *router_tasks(const struct router *r)
{
    return r->tasks;
}

void router_set_holdings(struct router *r, struct holdings *holdings)
{
    holding_init(&r->kept, holdings, NULL);
}

struct holdings *router_holdings(const struct router *r)
{
    return r->kept.in;
}

struct timers *router_timers(const struct router *r)
{
    return r->timers;
}

/* xorshift64*: good enough for jitter. */
uint64_t router_random(struct router *r)
{
    r->random ^= r->random >> 12;
    r->random ^= r->random << 25;
    r->random ^= r->random >> 27;
    return r->random * 0x2545f4914f6cdd1du;
}

/* A gap for the daemon before us, which still uses up handles while it ends its calls. */
enum { HANDLES_APART = 1000 * 1000 };

uint64_t router_last_handle(const struct router *r)
{
    return r->last_handle;
}

void router_skip_handles(struct router *r, uint64_t last)
{
    r->last_handle = last + HANDLES_APART;
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

struct events *router_events(struct router *r)
{
    return &r->events;
}

struct observers *router_observers(struct router *r)
{
    return &r->observers;
}

/* --- the graph --- */

void router_add_provider(struct router *r, struct provider *p)
{
    p->router = r;
    if (!p->built_in)
        list_append(&r->providers, &p->node);
}

void router_withdraw_provider(struct router *r, struct provider *p)
{
    view_remove_everywhere(p);
    subscriptions_provider_withdrawn(r, p);
    router_tell_changes(r, p);
}

void router_remove_provider(struct router *r, struct provider *p)
{
    list_remove(&p->node);
    router_withdraw_provider(r, p);
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

void router_on_stopped(struct router *r, void (*fn)(void *arg, struct provider *p), void *arg)
{
    r->on_stopped = fn;
    r->on_stopped_arg = arg;
}

void router_provider_stopped(struct router *r, struct provider *p)
{
    if (r->on_stopped)
        r->on_stopped(r->on_stopped_arg, p);
}

/* --- what belongs to no call --- */

/* The kinds whose list differs from the one that this consumer was last told of. */
static unsigned news_for(struct call *standing)
{
    unsigned changed = 0;

    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        uint64_t digest = view_digest(standing->view, (enum item_kind)kind);
        if (digest != standing->told[kind])
            changed |= 1u << kind;
        standing->told[kind] = digest;
    }
    return changed;
}

struct call *router_attach(struct router *r, struct peer *consumer, struct view *v,
                           unsigned answers, void *data)
{
    struct call *c = call_new(r, consumer, OP_STANDING, SPAN_EMPTY, data);

    c->view = v;
    c->answers = answers;
    c->state = CALL_OPEN;
    list_append(&r->standing, &c->standing);
    (void)news_for(c); /* the first change is to be compared with the lists as they are now */
    return c;
}

/* The handles of all standing calls: a consumer may leave while another one is being told. */
static uint64_t *standing_handles(const struct router *r, size_t *n)
{
    uint64_t *handles;

    *n = 0;
    LIST_EACH (&r->standing, it)
        ++*n;
    handles = MEM_ARRAY(uint64_t, *n + 1);
    *n = 0;
    LIST_EACH (&r->standing, it)
        handles[(*n)++] = LIST_ENTRY(it, struct call, standing)->handle;
    return handles;
}

static void tell(struct call *standing, const struct event *event)
{
    standing->router->stats.events++;
    standing->consumer->verbs->event(standing->consumer, standing, event);
}

void router_broadcast(struct provider *p, const struct event *event)
{
    struct router *r = p->router;
    size_t n;
    uint64_t *handles = standing_handles(r, &n);

    p->stats.events++;
    for (size_t i = 0; i < n; i++) {
        struct call *c = router_find(r, handles[i]);
        struct event told = *event;
        if (c && event->kind == EVENT_UPDATED)
            told.name = subscriptions_uri(c, p, event->name);
        if (c && view_has(c->view, p) && (event->kind != EVENT_UPDATED || told.name.p))
            tell(c, &told);
    }
    mem_free(handles);
}

/* A call of the only party that has open calls; NULL if no party or several parties have any. */
static struct call *sole_party(const struct provider *p)
{
    struct call *sole = NULL;

    LIST_EACH (&p->open, it) {
        struct call *c = LIST_ENTRY(it, struct call, in_provider);
        if (c->consumer == &p->router->own)
            continue;
        if (sole && (c->consumer != sole->consumer || c->party != sole->party))
            return NULL;
        if (!sole || !list_empty(&sole->asks))
            sole = c; /* a call that waits for an answer stands still: prefer another */
    }
    return sole;
}

/* Do all consumers of this provider see all of its items? */
static bool all_see_it_whole(const struct provider *p)
{
    LIST_EACH (&p->open, it) {
        const struct call *c = LIST_ENTRY(it, struct call, in_provider);
        if (c->consumer != &p->router->own && !c->sees_whole)
            return false;
    }
    LIST_EACH (&p->router->standing, it) {
        const struct call *c = LIST_ENTRY(it, struct call, standing);
        if (!view_is_whole(c->view) && view_has(c->view, p))
            return false;
    }
    return true;
}

void router_tell(struct provider *p, const struct event *event)
{
    struct call *owner = sole_party(p);

    if (owner)
        call_event(owner, event);
    else if (all_see_it_whole(p))
        router_broadcast(p, event);
    else
        log_info(p->alias, "told to nobody, for it may be anybody's: " SPAN_FMT,
                 SPAN_ARG(span_cut(event->params, 0, MAX_LOGGED)));
}

void router_provider_changed(struct router *r, struct provider *p)
{
    view_touch(p);
    observers_note(&r->observers);
}

void router_tell_changes(struct router *r, struct provider *from)
{
    router_tell_changed(r, from, 0);
}

void router_tell_changed(struct router *r, struct provider *from, unsigned kinds)
{
    size_t n;
    uint64_t *handles = standing_handles(r, &n);

    for (size_t i = 0; i < n; i++) {
        struct call *c = router_find(r, handles[i]);
        unsigned changed = c ? news_for(c) : 0;
        if (c && kinds)
            changed |= kinds & view_kinds(c->view, from);
        if (changed)
            tell(c, &(struct event){.kind = EVENT_CHANGED, .changed = changed, .from = from});
    }
    mem_free(handles);
}
