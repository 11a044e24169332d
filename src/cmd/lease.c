#include "cmd/lease.h"

#include "base/mem.h"

/* One instance of its own. */
struct instance {
    struct list node; /* in leases.running, later in leases.down */
    struct mcp_provider *provider;
    struct lease *lease; /* NULL once that has ended */
};

struct lease {
    struct list node; /* in leases.ended, at its end */
    struct leases *all;
    struct showcase *showcase;
};

struct leases {
    struct loop *loop;
    struct router *router;
    struct list running, down;
    struct list ended;  /* leases that nobody has any more */
    size_t n;           /* on `running` */
    struct timer sweep; /* frees what is down, from the loop */
};

static void free_instance(struct leases *ls, struct instance *i)
{
    struct provider *core = mcp_provider_core(i->provider);
    struct provider *shared = router_provider(ls->router, span_str(core->alias));

    list_remove(&i->node);
    if (shared && shared != core)
        stats_add(&shared->stats, &core->stats); /* counters only ever grow */
    router_remove_provider(ls->router, core);
    mcp_provider_free(i->provider);
    mem_free(i);
}

static void free_lease(struct lease *l)
{
    list_remove(&l->node);
    showcase_free(l->showcase);
    mem_free(l);
}

static void on_sweep(struct timer *t)
{
    struct leases *ls = CONTAINER_OF(t, struct leases, sweep);

    LIST_EACH_SAFE (&ls->down, it)
        free_instance(ls, LIST_ENTRY(it, struct instance, node));
    LIST_EACH_SAFE (&ls->ended, it)
        free_lease(LIST_ENTRY(it, struct lease, node));
}

struct leases *leases_new(struct loop *loop, struct router *router)
{
    struct leases *ls = MEM_NEW(struct leases);

    ls->loop = loop;
    ls->router = router;
    ls->sweep.fire = on_sweep;
    list_init(&ls->running);
    list_init(&ls->down);
    list_init(&ls->ended);
    return ls;
}

void leases_free(struct leases *ls)
{
    timer_clear(loop_timers(ls->loop), &ls->sweep);
    on_sweep(&ls->sweep);
    mem_free(ls);
}

struct lease *lease_new(struct leases *ls, const struct showcase_style *style)
{
    struct lease *l = MEM_NEW(struct lease);

    l->all = ls;
    l->showcase = showcase_new(ls->router, style);
    return l;
}

void lease_add_shared(struct lease *l, struct provider *p, const struct filter *filter)
{
    showcase_add(l->showcase, p, filter);
}

static struct catalog *copy_of(const struct catalog *known)
{
    struct catalog *copy = catalog_new();

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        catalog_copy_kind(copy, known, (enum item_kind)kind);
    catalog_set_instructions(copy, known->instructions);
    copy->offers = known->offers;
    return copy;
}

void lease_add_own(struct lease *l, const struct server_plan *plan, const struct catalog *known,
                   unsigned answers)
{
    struct leases *ls = l->all;
    struct instance *i = MEM_NEW(struct instance);

    i->lease = l;
    i->provider = server_start(ls->loop, plan);
    mcp_provider_set_answers(i->provider, answers);
    struct provider *core = mcp_provider_core(i->provider);
    /* Not kept running by itself: it comes and goes with its session and may rest in between. */
    core->policy.eager = false;
    list_append(&ls->running, &i->node);
    ls->n++;
    router_add_provider(ls->router, core);
    if (known)
        provider_publish(core, copy_of(known));
    showcase_add(l->showcase, core, server_filter(plan));
}

struct view *lease_begin(struct lease *l)
{
    struct leases *ls = l->all;

    showcase_open(l->showcase);
    LIST_EACH (&ls->running, it) {
        struct instance *i = LIST_ENTRY(it, struct instance, node);
        if (i->lease == l)
            provider_want(mcp_provider_core(i->provider));
    }
    return showcase_view(l->showcase);
}

void lease_end(struct lease *l)
{
    struct leases *ls = l->all;

    LIST_EACH_SAFE (&ls->running, it) {
        struct instance *i = LIST_ENTRY(it, struct instance, node);
        if (i->lease != l)
            continue;
        i->lease = NULL;
        router_withdraw_provider(ls->router, mcp_provider_core(i->provider));
        provider_unwant(mcp_provider_core(i->provider));
    }
    showcase_stop(l->showcase);
    list_append(&ls->ended, &l->node);
    timer_set(loop_timers(ls->loop), &ls->sweep, 0);
}

bool leases_stopped(struct leases *ls, struct provider *p)
{
    LIST_EACH (&ls->running, it) {
        struct instance *i = LIST_ENTRY(it, struct instance, node);
        if (mcp_provider_core(i->provider) != p)
            continue;
        /* The provider is still in the middle of its own ending: free it from the loop. */
        list_remove(&i->node);
        list_append(&ls->down, &i->node);
        ls->n--;
        timer_set(loop_timers(ls->loop), &ls->sweep, 0);
        return true;
    }
    return false;
}

size_t leases_count(const struct leases *ls)
{
    return ls->n;
}
