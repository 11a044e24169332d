/* The view and the instances of one session: created, filled again when the bridge changes, and let
 * go at the end. Called by bridge.c. */
#include "hub/graph/lease.h"

#include <string.h>

#include "base/mem.h"
#include "core/principal.h"
#include "core/subscriptions.h"

/* How long calls to a server that the configuration has dropped may still take. */
enum { PATIENCE_MS = 30 * 1000 };

/* An instance that only this session has. */
struct own_instance {
    struct list node;
    struct instance *instance;
    bool added; /* since lease_clear */
};

/* A variant that this session has a share in. */
struct variant_claim {
    struct list node;
    struct variant *variant; /* held */
    bool added;              /* since lease_clear */
};

struct lease {
    struct list node; /* in leases.held, in leases.ended after lease_end */
    struct leases *all;
    struct view *shared;
    struct lease_terms terms; /* principal and variables are held */
    struct exposure *exposure;
    struct list owns, claims;
};

struct leases {
    struct loop *loop;
    struct router *router;
    struct instances *instances;
    struct list held;
    struct list ended;  /* leases of sessions that have ended */
    struct timer sweep; /* frees the leases in `ended`, from the loop */
};

static void on_sweep(struct timer *t)
{
    struct leases *ls = CONTAINER_OF(t, struct leases, sweep);

    LIST_EACH_SAFE (&ls->ended, it) {
        struct lease *l = LIST_ENTRY(it, struct lease, node);
        list_remove(&l->node);
        exposure_free(l->exposure);
        principal_release(l->terms.principal);
        variables_drop(l->terms.variables);
        mem_free(l);
    }
}

struct leases *leases_new(struct loop *loop, struct router *router, struct instances *instances)
{
    struct leases *ls = MEM_NEW(struct leases);

    ls->loop = loop;
    ls->router = router;
    ls->instances = instances;
    ls->sweep.fire = on_sweep;
    list_init(&ls->held);
    list_init(&ls->ended);
    return ls;
}

void leases_free(struct leases *ls)
{
    timer_clear(loop_timers(ls->loop), &ls->sweep);
    on_sweep(&ls->sweep);
    mem_free(ls);
}

struct lease *leases_next(const struct leases *ls, const struct lease *l)
{
    const struct list *next = l ? l->node.next : ls->held.next;

    return next == &ls->held ? NULL : LIST_ENTRY(next, struct lease, node);
}

struct lease *lease_new(struct leases *ls, const struct exposure_style *style, struct view *shared,
                        const struct lease_terms *terms)
{
    struct lease *l = MEM_NEW(struct lease);

    l->all = ls;
    l->shared = shared;
    l->terms = *terms;
    principal_hold(terms->principal);
    variables_hold(terms->variables);
    struct exposure_style own = *style;
    own.of_both_eras = false; /* a session has only one era */
    l->exposure = exposure_new(ls->router, &own);
    list_init(&l->owns);
    list_init(&l->claims);
    list_append(&ls->held, &l->node);
    exposure_open(l->exposure);
    return l;
}

struct view *lease_shared(const struct lease *l)
{
    return l->shared;
}

const struct lease_terms *lease_terms(const struct lease *l)
{
    return &l->terms;
}

void lease_bring(struct lease *l, struct variables *variables)
{
    variables_hold(variables);
    variables_drop(l->terms.variables);
    l->terms.variables = variables;
}

struct view *lease_view(const struct lease *l)
{
    return exposure_view(l->exposure);
}

void lease_clear(struct lease *l)
{
    exposure_clear(l->exposure);
    LIST_EACH (&l->owns, it)
        LIST_ENTRY(it, struct own_instance, node)->added = false;
    LIST_EACH (&l->claims, it)
        LIST_ENTRY(it, struct variant_claim, node)->added = false;
}

void lease_claim(struct lease *l, struct variant *v)
{
    LIST_EACH (&l->claims, it) {
        struct variant_claim *c = LIST_ENTRY(it, struct variant_claim, node);
        if (c->variant != v)
            continue;
        c->added = true;
        variant_drop(v, 0); /* one hold is enough */
        return;
    }
    struct variant_claim *c = MEM_NEW(struct variant_claim);
    *c = (struct variant_claim){.variant = v, .added = true};
    list_append(&l->claims, &c->node);
}

void lease_add_shared(struct lease *l, struct provider *p, const struct filter *filter)
{
    exposure_add(l->exposure, p, p, filter);
}

/* Users may see different lists, so those of another instance are not shown. */
static void learn(struct own_instance *o, const struct catalog *known)
{
    if (!server_is_per_user(instance_plan(o->instance)))
        instance_learn(o->instance, known);
}

static struct own_instance *make_own(struct lease *l, struct server_plan *plan,
                                     const struct catalog *known)
{
    struct own_instance *o = MEM_NEW(struct own_instance);

    o->instance = instance_new(l->all->instances, plan, l->terms.principal);
    list_append(&l->owns, &o->node);
    mcp_provider_set_answers(instance_server(o->instance), l->terms.answers);
    instance_own(o->instance, l->terms.principal, l->terms.stateless);
    learn(o, known);
    if (server_is_per_user(plan)) /* only the server itself knows the lists of this user */
        provider_want(instance_provider(o->instance));
    return o;
}

static struct own_instance *find_own(struct lease *l, const struct server_plan *plan)
{
    LIST_EACH (&l->owns, it) {
        struct own_instance *o = LIST_ENTRY(it, struct own_instance, node);
        if (instance_plan(o->instance) == plan)
            return o;
    }
    return NULL;
}

bool lease_has_own(struct lease *l, const struct server_plan *plan)
{
    return find_own(l, plan) != NULL;
}

void lease_learn(struct lease *l, const struct server_plan *plan, const struct catalog *known)
{
    struct own_instance *o = find_own(l, plan);

    if (o)
        learn(o, known);
}

struct provider *lease_add_own(struct lease *l, struct server_plan *plan,
                               const struct catalog *known)
{
    struct own_instance *found = find_own(l, plan);

    if (!found)
        found = make_own(l, plan, known);
    found->added = true;
    lease_add_shared(l, instance_provider(found->instance), server_filter(plan));
    return instance_provider(found->instance);
}

static void let_go(struct own_instance *o, uint64_t patience)
{
    list_remove(&o->node);
    instance_let_go(o->instance, patience);
    mem_free(o);
}

static void give_up(struct variant_claim *c, uint64_t patience)
{
    list_remove(&c->node);
    variant_drop(c->variant, patience);
    mem_free(c);
}

void lease_move_subscriptions(struct lease *l, struct provider *from)
{
    struct provider *p;

    for (size_t n = 0; (p = view_member(lease_view(l), n)); n++) {
        if (p == from || strcmp(p->alias, from->alias) != 0)
            continue;
        subscriptions_hand_over(from, p);
        if (subscriptions_any(p))
            provider_want(p);
    }
}

void lease_settle(struct lease *l)
{
    LIST_EACH_SAFE (&l->owns, it) {
        struct own_instance *o = LIST_ENTRY(it, struct own_instance, node);
        if (o->added)
            continue;
        lease_move_subscriptions(l, instance_provider(o->instance));
        let_go(o, PATIENCE_MS);
    }
    LIST_EACH_SAFE (&l->claims, it) {
        struct variant_claim *c = LIST_ENTRY(it, struct variant_claim, node);
        if (!c->added)
            give_up(c, PATIENCE_MS);
    }
    exposure_weigh(l->exposure);
}

void lease_end(struct lease *l)
{
    struct leases *ls = l->all;

    LIST_EACH_SAFE (&l->owns, it)
        let_go(LIST_ENTRY(it, struct own_instance, node), 0);
    LIST_EACH_SAFE (&l->claims, it)
        give_up(LIST_ENTRY(it, struct variant_claim, node), 0);
    exposure_stop(l->exposure);
    list_remove(&l->node);
    list_append(&ls->ended, &l->node);
    timer_set(loop_timers(ls->loop), &ls->sweep, 0);
}
