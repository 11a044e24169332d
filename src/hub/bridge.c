/* Start and stop of a bridge, its views, and what agents and commands ask of it; changes of servers
 * are in bridge_change.c. Called by the commands that need servers, by entrances.c, selection.c,
 * browser_desk.c, bus_role.c and bus_host.c. */
#include "hub/bridge_inside.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/instance.h"
#include "hub/lease.h"
#include "hub/server.h"
#include "mcp/consent.h"

struct bridge_server *bridge_find(const struct bridge *b, struct span alias)
{
    LIST_EACH (&b->servers, it)
        if (span_is(alias, server_alias(entry(it)->plan)))
            return entry(it);
    return NULL;
}

static struct bridge_server *server_at(const struct bridge *b, size_t n)
{
    LIST_EACH (&b->servers, it)
        if (n-- == 0)
            return entry(it);
    return NULL;
}

/* --- views --- */

/* The providers that bridge_admit let in. They leave by themselves, through the router. */
struct guests {
    struct provider **items;
    size_t n;
};

static struct guests find_guests(const struct bridge *b)
{
    struct guests g = {0};
    struct provider *p;

    for (size_t i = 0; (p = view_member(bridge_full_view(b), i)); i++) {
        if (instances_have(b->instances, p))
            continue;
        g.items = mem_resize(g.items, (g.n + 1) * sizeof(struct provider *));
        g.items[g.n++] = p;
    }
    return g;
}

static void furnish(struct bridge *b, struct lease *l)
{
    struct guests g = find_guests(b);

    lease_clear(l);
    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = entry(it);
        if (!view_has(lease_shared(l), core_of(s)))
            continue;
        if (s->per_session && !core_of(s)->halted)
            lease_add_own(l, s->plan, core_of(s)->catalog);
        else
            lease_add_shared(l, core_of(s), server_filter(s->plan));
    }
    for (size_t i = 0; i < g.n; i++)
        if (view_has(lease_shared(l), g.items[i]))
            lease_add_shared(l, g.items[i], NULL);
    mem_free(g.items);
    lease_settle(l);
}

/* Everybody sees what there is now, in the order of the configuration. */
void bridge_arrange(struct bridge *b)
{
    struct guests g = find_guests(b);
    struct lease *next;

    showcase_clear(b->all);
    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = entry(it);
        while (view_member(s->own, 0))
            view_remove(s->own, view_member(s->own, 0));
        view_add(s->own, core_of(s), server_filter(s->plan));
        showcase_add(b->all, core_of(s), server_filter(s->plan));
    }
    for (size_t i = 0; i < g.n; i++)
        showcase_add(b->all, g.items[i], NULL);
    mem_free(g.items);
    for (struct lease *l = leases_next(b->leases, NULL); l; l = next) {
        next = leases_next(b->leases, l);
        furnish(b, l);
    }
    router_tell_changes(b->router, NULL);
}

void bridge_admit(struct bridge *b, struct provider *p)
{
    showcase_add(b->all, p, NULL);
    for (struct lease *l = NULL; (l = leases_next(b->leases, l));)
        if (view_has(lease_shared(l), p))
            lease_add_shared(l, p, NULL);
}

void bridge_watch(struct bridge *b, struct bridge_watch *w)
{
    list_append(&b->watches, &w->node);
}

void bridge_unwatch(struct bridge_watch *w)
{
    list_remove(&w->node);
}

void bridge_tell_watches(struct bridge *b)
{
    LIST_EACH_SAFE (&b->watches, it) {
        struct bridge_watch *w = LIST_ENTRY(it, struct bridge_watch, node);
        w->changed(w);
    }
}

/* --- beginning and end --- */

static void report_stopped(struct timer *t)
{
    struct bridge *b = CONTAINER_OF(t, struct bridge, report);

    b->stopped(b->stopped_arg);
}

static void on_stopped(void *arg, struct provider *p)
{
    struct bridge *b = arg;

    instances_stopped(b->instances, p);
}

/* No instance is left. */
static void on_emptied(void *arg)
{
    struct bridge *b = arg;

    if (b->stopping)
        timer_set(loop_timers(b->loop), &b->report, 0);
}

/* What a configuration has from the start is a change from nothing. */
static void first_servers(struct bridge *b)
{
    struct bridge_changes changes = {0};
    struct plan plan;

    plan_make(&plan, NULL, b->config);
    bridge_carry_out(b, b->config, &plan, &changes);
    plan_fini(&plan);
    bridge_changes_fini(&changes);
    /* Nothing configured: this very program has a small server to show what a bridge does. */
    struct server_plan *demo =
        !b->config->file && !b->config->servers.n ? server_plan_demo(b->config) : NULL;
    if (demo)
        bridge_add_server(b, demo);
    bridge_arrange(b);
}

struct bridge *bridge_new(struct loop *loop, const struct config *c)
{
    struct bridge *b = MEM_NEW(struct bridge);
    bool bare = strcmp(c->names, "bare") == 0;

    loop_hide_memory(); /* it has the secrets of all servers, and none may read another's there */
    b->loop = loop;
    b->config = c;
    loop_holdings(loop)->limit = c->limits.memory;
    b->router = router_new(loop_timers(loop), id_random_u64());
    router_set_max_catalog(b->router, c->limits.catalog);
    router_set_holdings(b->router, loop_holdings(loop));
    router_set_approver(b->router, &mcp_approver);
    b->style = (struct showcase_style){.name = "all",
                                       .pattern = bare ? NULL : c->names,
                                       .described = c->describe_server,
                                       .search = c->expose == EXPOSE_SEARCH};
    b->all = showcase_new(b->router, &b->style);
    list_init(&b->servers);
    list_init(&b->watches);
    b->report.fire = report_stopped;
    b->replace.changed = bridge_on_replace;
    b->instances = instances_new(loop, b->router, c->limits.processes, on_emptied, b);
    b->leases = leases_new(loop, b->router, b->instances);
    router_on_stopped(b->router, on_stopped, b);
    first_servers(b);
    showcase_open(b->all);
    return b;
}

void bridge_free(struct bridge *b)
{
    timer_clear(loop_timers(b->loop), &b->report);
    observer_remove(&b->replace);
    leases_free(b->leases);
    LIST_EACH_SAFE (&b->servers, it) {
        struct bridge_server *s = entry(it); /* never started */
        list_remove(&s->node);
        bridge_server_release(s);
    }
    showcase_free(b->all);
    instances_free(b->instances);
    router_free(b->router);
    config_free(b->newer);
    mem_free(b);
}

void bridge_start(struct bridge *b)
{
    b->started = true;
    LIST_EACH (&b->servers, it)
        bridge_want(entry(it));
}

void bridge_wake(struct bridge *b)
{
    if (b->awake || b->stopping)
        return;
    b->awake = true;
    LIST_EACH (&b->servers, it)
        bridge_want(entry(it));
}

void bridge_stop(struct bridge *b, void (*done)(void *arg), void *arg)
{
    b->stopped = done;
    b->stopped_arg = arg;
    b->stopping = true;
    observer_remove(&b->replace);
    showcase_stop(b->all);
    LIST_EACH_SAFE (&b->servers, it)
        bridge_drop_server(entry(it));
    instances_hurry(b->instances);
    if (!instances_count(b->instances))
        on_emptied(b);
}

struct router *bridge_router(const struct bridge *b)
{
    return b->router;
}

struct view *bridge_view(const struct bridge *b)
{
    return showcase_view(b->all);
}

struct view *bridge_full_view(const struct bridge *b)
{
    return showcase_full(b->all);
}

struct view *bridge_server_view(const struct bridge *b, struct span alias)
{
    const struct bridge_server *s = bridge_find(b, alias);

    return s ? s->own : NULL;
}

struct bridge_server *bridge_server_hold(struct bridge *b, size_t n)
{
    struct bridge_server *s = server_at(b, n);

    if (s)
        s->holders++;
    return s;
}

struct view *bridge_server_own_view(const struct bridge_server *s)
{
    return s->own;
}

bool bridge_server_is_gone(const struct bridge_server *s)
{
    return s->gone;
}

/* --- agents --- */

static void wake(void *arg)
{
    bridge_wake(arg);
}

struct view *bridge_enter(struct bridge *b, struct view *shared, const struct showcase_style *style,
                          unsigned answers, void **lease)
{
    bool any = false;

    LIST_EACH (&b->servers, it)
        any |= entry(it)->per_session && view_has(shared, core_of(entry(it)));
    if (!any || b->stopping)
        return NULL;
    struct lease *l = lease_new(b->leases, style, shared, answers);
    furnish(b, l);
    *lease = l;
    return lease_view(l);
}

static struct view *enter(void *arg, struct view *shared, unsigned answers, void **lease)
{
    struct bridge *b = arg;
    struct showcase_style own = {.name = view_name(shared), .pattern = view_pattern(shared)};

    return bridge_enter(b, shared, shared == bridge_view(b) ? &b->style : &own, answers, lease);
}

static void leave(void *arg, void *lease)
{
    (void)arg;
    lease_end(lease);
}

struct mcp_host bridge_host(struct bridge *b, struct view *v)
{
    return (struct mcp_host){.router = b->router,
                             .view = v,
                             .max_batch = b->config->limits.batch,
                             .max_answers = b->config->limits.message,
                             .arg = b,
                             .wake = wake,
                             .enter = enter,
                             .leave = leave};
}

struct provider *bridge_provider(const struct bridge *b, size_t n)
{
    const struct bridge_server *s = server_at(b, n);

    return s ? core_of(s) : NULL;
}

struct mcp_provider *bridge_mcp_provider(const struct bridge *b, const struct provider *p)
{
    LIST_EACH (&b->servers, it)
        if (core_of(entry(it)) == p)
            return instance_server(entry(it)->instance);
    return NULL;
}

static bool is_settled(const struct bridge_server *s)
{
    const struct provider *p = core_of(s);
    bool resting = p->state == PROVIDER_DOWN && server_is_lazy(s->plan) && !s->bridge->awake;

    return p->state == PROVIDER_READY || p->why[0] || resting;
}

bool bridge_settled(const struct bridge *b)
{
    LIST_EACH (&b->servers, it)
        if (!is_settled(entry(it)))
            return false;
    return true;
}

bool bridge_is_known(const struct bridge *b)
{
    LIST_EACH (&b->servers, it)
        if (!is_settled(entry(it)) && !core_of(entry(it))->remembered)
            return false;
    return true;
}
