/* The variants of a server: found by their values, held, started, and let go. Called by bridge.c
 * and lease.c. */
#include "hub/graph/variant.h"

#include "base/mem.h"

struct variant {
    struct list node; /* in the server's list; in no list once retired */
    struct instances *instances;
    struct server_plan *plan;
    const struct config *config; /* the one that the plan was made from; only compared */
    struct instance *instance;   /* NULL: not asked for yet */
    unsigned holders;
};

static struct variant *entry(struct list *it)
{
    return LIST_ENTRY(it, struct variant, node);
}

static struct variant *find(struct list *all, const struct server_plan *plan)
{
    LIST_EACH (all, it)
        if (server_plan_same_secrets(entry(it)->plan, plan))
            return entry(it);
    return NULL;
}

struct variant *variants_hold(struct list *all, struct instances *is, struct server_plan *plan,
                              const struct config *c)
{
    struct variant *v = find(all, plan);

    if (!v) {
        v = MEM_NEW(struct variant);
        v->instances = is;
        v->plan = server_plan_hold(plan);
        list_append(all, &v->node);
    } else if (v->config != c) {
        instances_adjust(is, v->plan, plan); /* filters and limits may have changed */
    }
    v->config = c;
    v->holders++;
    server_plan_drop(plan);
    return v;
}

static void forget_server(struct variant *v)
{
    list_remove(&v->node);
    if (v->instance)
        mcp_provider_on_orphan(instance_server(v->instance), NULL, NULL);
}

void variants_retire(struct list *all)
{
    LIST_EACH_SAFE (all, it)
        forget_server(entry(it));
}

static const struct catalog *catalog_of(const struct variant *v)
{
    return v->instance ? instance_provider(v->instance)->catalog : NULL;
}

const struct catalog *variants_catalog(struct list *all)
{
    LIST_EACH (all, it)
        if (catalog_of(entry(it)))
            return catalog_of(entry(it));
    return NULL;
}

struct identity *variants_identity(struct list *all, const struct signin *signin)
{
    LIST_EACH (all, it) {
        struct identity *id = signin_find(signin, entry(it)->plan);
        if (id)
            return id;
    }
    return NULL;
}

bool variants_are_known(struct list *all)
{
    LIST_EACH (all, it) {
        const struct variant *v = entry(it);
        if (v->instance && !catalog_of(v) && !server_lacks(v->plan) &&
            !instance_provider(v->instance)->why)
            return false;
    }
    return true;
}

void variant_drop(struct variant *v, uint64_t patience)
{
    if (--v->holders)
        return;
    forget_server(v);
    if (v->instance)
        instance_let_go(v->instance, patience);
    server_plan_drop(v->plan);
    mem_free(v);
}

struct server_plan *variant_plan(const struct variant *v)
{
    return v->plan;
}

struct provider *variant_provider(struct variant *v, const struct catalog *known,
                                  void (*on_orphan)(void *arg), void *arg)
{
    if (v->instance)
        return instance_provider(v->instance);
    v->instance = instance_new(v->instances, v->plan, NULL);
    instance_share(v->instance);
    instance_learn(v->instance, known);
    mcp_provider_on_orphan(instance_server(v->instance), on_orphan, arg);
    if (!catalog_of(v) && !server_lacks(v->plan))
        provider_want(instance_provider(v->instance));
    return instance_provider(v->instance);
}
