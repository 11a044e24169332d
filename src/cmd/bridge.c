#include "cmd/bridge.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/lease.h"
#include "cmd/server.h"
#include "mcp/consent.h"

/* A server as the graph has it. */
struct node {
    const struct server_plan *plan;
    struct mcp_provider *provider;
    struct view *own; /* this server alone, names untouched */
    bool per_session; /* sessions get an instance of their own */
};

struct bridge {
    struct loop *loop;
    const struct config *config;
    struct router *router;
    struct showcase_style style;
    struct showcase *all;
    struct node *nodes;
    size_t n;
    struct leases *leases;
    struct arena arena; /* the plans, which the providers borrow from */
    bool awake;
    size_t stopping; /* servers that are not down yet, while stopping */
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct timer report;
};

/* It asks its clients things, and we could not tell which: the next sessions get their own. */
static void on_orphan(void *arg)
{
    struct node *node = arg;

    if (!node->per_session)
        log_info(
            server_alias(node->plan),
            "asks its clients questions: from now on every session gets an instance of its own "
            "(`instances: per-session` says so from the start)");
    node->per_session = true;
}

static void add_node(struct bridge *b, const struct server_plan *plan)
{
    struct node *node = &b->nodes[b->n++];

    node->plan = plan;
    node->per_session = server_is_per_session(plan);
    node->provider = server_start(b->loop, plan);
    mcp_provider_on_orphan(node->provider, on_orphan, node);
    struct provider *core = mcp_provider_core(node->provider);
    router_add_provider(b->router, core);
    node->own = view_new(server_alias(plan), NULL);
    view_add(node->own, core, server_filter(plan));
    router_add_view(b->router, node->own);
    showcase_add(b->all, core, server_filter(plan));
}

static void report_stopped(struct timer *t)
{
    struct bridge *b = CONTAINER_OF(t, struct bridge, report);

    b->stopped(b->stopped_arg);
}

static void on_stopped(void *arg, struct provider *p)
{
    struct bridge *b = arg;

    if (p && p->built_in)
        return; /* it is no server, nobody waits for it */
    if (p)
        leases_stopped(b->leases, p);
    /* Told from the loop: the provider is still in the middle of its own ending. */
    if (b->stopping && --b->stopping == 0)
        timer_set(loop_timers(b->loop), &b->report, 0);
}

struct bridge *bridge_new(struct loop *loop, const struct config *c)
{
    struct bridge *b = MEM_NEW(struct bridge);
    bool bare = strcmp(c->names, "bare") == 0;

    b->loop = loop;
    b->config = c;
    b->router = router_new(loop_timers(loop), id_random_u64());
    router_set_approver(b->router, &mcp_approver);
    b->style = (struct showcase_style){.name = "all",
                                       .pattern = bare ? NULL : c->names,
                                       .described = c->describe_server,
                                       .search = c->expose == EXPOSE_SEARCH};
    b->all = showcase_new(b->router, &b->style);
    b->nodes = MEM_ARRAY(struct node, c->servers.n + 1);
    b->report.fire = report_stopped;
    b->leases = leases_new(loop, b->router);
    router_on_stopped(b->router, on_stopped, b);
    struct secrets *secrets = secrets_new(c);
    for (size_t i = 0; i < c->servers.n; i++) {
        const struct config_server *s = &c->servers.items[i];
        const struct server_plan *plan =
            s->enabled ? server_plan_new(&b->arena, c, s, secrets) : NULL;
        if (plan)
            add_node(b, plan);
    }
    secrets_free(secrets);
    /* Nothing configured: this very program has a small server to show what a bridge does. */
    const struct server_plan *demo =
        !c->file && !c->servers.n ? server_plan_demo(&b->arena, c) : NULL;
    if (demo)
        add_node(b, demo);
    showcase_open(b->all);
    return b;
}

void bridge_free(struct bridge *b)
{
    timer_clear(loop_timers(b->loop), &b->report);
    leases_free(b->leases);
    for (size_t i = 0; i < b->n; i++) {
        router_remove_provider(b->router, mcp_provider_core(b->nodes[i].provider));
        router_remove_view(b->router, b->nodes[i].own);
        view_free(b->nodes[i].own);
        mcp_provider_free(b->nodes[i].provider);
    }
    showcase_free(b->all);
    router_free(b->router);
    mem_free(b->nodes);
    arena_fini(&b->arena);
    mem_free(b);
}

void bridge_start(struct bridge *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (!server_is_lazy(b->nodes[i].plan))
            provider_want(mcp_provider_core(b->nodes[i].provider));
}

void bridge_wake(struct bridge *b)
{
    if (b->awake || b->stopping)
        return;
    b->awake = true;
    for (size_t i = 0; i < b->n; i++)
        if (server_is_lazy(b->nodes[i].plan))
            provider_want(mcp_provider_core(b->nodes[i].provider));
}

void bridge_stop(struct bridge *b, void (*done)(void *arg), void *arg)
{
    b->stopped = done;
    b->stopped_arg = arg;
    b->stopping = b->n + leases_count(b->leases) + 1;
    showcase_stop(b->all);
    for (size_t i = 0; i < b->n; i++) {
        /* Out of the views first: a late call must not wake what is being stopped. */
        router_withdraw_provider(b->router, mcp_provider_core(b->nodes[i].provider));
        provider_unwant(mcp_provider_core(b->nodes[i].provider));
    }
    on_stopped(b, NULL); /* the one we counted ourselves: also right when there is no server */
}

struct router *bridge_router(const struct bridge *b)
{
    return b->router;
}

void bridge_admit(struct bridge *b, struct provider *p)
{
    showcase_add(b->all, p, NULL);
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
    for (size_t i = 0; i < b->n; i++)
        if (span_is(alias, mcp_provider_core(b->nodes[i].provider)->alias))
            return b->nodes[i].own;
    return NULL;
}

static void wake(void *arg)
{
    bridge_wake(arg);
}

static struct view *enter(void *arg, struct view *shared, unsigned answers, void **lease)
{
    struct bridge *b = arg;
    bool any = false;

    for (size_t i = 0; i < b->n; i++)
        any |= b->nodes[i].per_session && view_has(shared, mcp_provider_core(b->nodes[i].provider));
    if (!any || b->stopping)
        return NULL;
    struct showcase_style own = {.name = view_name(shared), .pattern = view_pattern(shared)};
    struct lease *l = lease_new(b->leases, shared == bridge_view(b) ? &b->style : &own);
    for (size_t i = 0; i < b->n; i++) {
        struct provider *p = mcp_provider_core(b->nodes[i].provider);
        if (!view_has(shared, p))
            continue;
        if (b->nodes[i].per_session && !p->halted)
            lease_add_own(l, b->nodes[i].plan, p->catalog, answers);
        else
            lease_add_shared(l, p, server_filter(b->nodes[i].plan));
    }
    *lease = l;
    return lease_begin(l);
}

static void leave(void *arg, void *lease)
{
    (void)arg;
    lease_end(lease);
}

struct mcp_host bridge_host(struct bridge *b, struct view *v)
{
    return (struct mcp_host){
        .router = b->router, .view = v, .arg = b, .wake = wake, .enter = enter, .leave = leave};
}

struct provider *bridge_provider(const struct bridge *b, size_t n)
{
    return n < b->n ? mcp_provider_core(b->nodes[n].provider) : NULL;
}

bool bridge_settled(const struct bridge *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct provider *p = mcp_provider_core(b->nodes[i].provider);
        bool resting = p->state == PROVIDER_DOWN && server_is_lazy(b->nodes[i].plan) && !b->awake;
        if (p->state != PROVIDER_READY && !p->why[0] && !resting)
            return false;
    }
    return true;
}
