/* Adding, replacing and dropping servers of a bridge, at the start and when a new configuration is
 * applied. Called by bridge.c and follow.c; entrances.c releases the servers it holds here. */
#include "base/log.h"
#include "base/mem.h"
#include "hub/bridge_inside.h"
#include "wire/json.h"

/* How long calls to a server that was replaced or dropped may still take. */
enum { PATIENCE_MS = 30 * 1000 };

/* --- one server --- */

/* It asks its clients things, and we could not tell which: the next sessions get their own. */
static void on_orphan(void *arg)
{
    struct bridge_server *s = arg;

    if (!s->per_session)
        log_info(
            server_alias(s->plan),
            "asks its clients questions: from now on every session gets an instance of its own "
            "(`instances: per-session` says so from the start)");
    s->per_session = true;
}

/* Sessions whose own instances nobody has called yet see what the shared one offers. */
static void on_lists(void *arg)
{
    const struct bridge_server *s = arg;
    struct bridge *b = s->bridge;

    if (!s->per_session || !s->instance)
        return;
    for (struct lease *l = NULL; (l = leases_next(b->leases, l));)
        lease_learn(l, s->plan, core_of(s)->catalog);
    router_tell_changes(b->router, NULL);
}

static struct instance *make_instance(struct bridge_server *s, struct server_plan *plan)
{
    struct instance *i = instance_new(s->bridge->instances, plan);

    mcp_provider_on_orphan(instance_server(i), on_orphan, s);
    instance_on_lists(i, on_lists, s);
    return i;
}

/* Takes the plan over. */
struct bridge_server *bridge_add_server(struct bridge *b, struct server_plan *plan)
{
    struct bridge_server *s = MEM_NEW(struct bridge_server);

    s->bridge = b;
    s->plan = plan;
    s->holders = 1;
    s->per_session = server_is_per_session(plan);
    s->own = view_new(server_alias(plan), NULL);
    router_add_view(b->router, s->own);
    s->instance = make_instance(s, plan);
    list_append(&b->servers, &s->node);
    return s;
}

void bridge_want(struct bridge_server *s)
{
    if (s->bridge->started && (s->bridge->awake || !server_is_lazy(s->plan)))
        provider_want(core_of(s));
}

/* It may live longer than its entry. */
static void let_go_of(struct instance *i)
{
    mcp_provider_on_orphan(instance_server(i), NULL, NULL);
    instance_on_lists(i, NULL, NULL);
}

static void forget_next(struct bridge_server *s)
{
    if (s->next) {
        let_go_of(s->next);
        instance_let_go(s->next, 0);
    }
    server_plan_drop(s->next_plan);
    s->next = NULL;
    s->next_plan = NULL;
    s->next_failed = false;
}

void bridge_drop_server(struct bridge_server *s)
{
    s->gone = true;
    list_remove(&s->node);
    forget_next(s);
    let_go_of(s->instance);
    instance_let_go(s->instance, s->bridge->stopping ? 0 : PATIENCE_MS);
    s->instance = NULL;
    bridge_server_release(s);
}

void bridge_server_release(struct bridge_server *s)
{
    if (--s->holders)
        return;
    router_remove_view(s->bridge->router, s->own);
    view_free(s->own);
    server_plan_drop(s->plan);
    mem_free(s);
}

/* --- taking its place --- */

static void take_place(struct bridge_server *s)
{
    struct instance *before = s->instance;

    let_go_of(before);
    server_plan_drop(s->plan);
    s->plan = s->next_plan;
    s->instance = s->next;
    s->next = NULL;
    s->next_plan = NULL;
    s->next_failed = false;
    s->per_session = server_is_per_session(s->plan);
    bridge_arrange(s->bridge);
    instance_let_go(before, PATIENCE_MS);
    bridge_tell_watches(s->bridge);
}

/* Is there something to lose by changing over at once? */
static bool serves(const struct bridge_server *s)
{
    return core_of(s)->state == PROVIDER_READY;
}

static void look_at_next(struct bridge_server *s)
{
    const struct provider *next = instance_provider(s->next);

    if (next->state == PROVIDER_READY || !serves(s)) {
        take_place(s);
    } else if (next->why[0] && !s->next_failed) {
        s->next_failed = true;
        log_warn(next->alias, "the new entry does not come up, so the old one goes on: %s",
                 next->why);
    }
}

void bridge_on_replace(struct observer *o)
{
    struct bridge *b = CONTAINER_OF(o, struct bridge, replace);
    bool more = false;

    LIST_EACH (&b->servers, it) {
        if (!entry(it)->next)
            continue;
        look_at_next(entry(it));
        more |= entry(it)->next != NULL;
    }
    if (!more)
        observer_remove(o);
}

/* Takes the plan over. */
static void replace(struct bridge_server *s, struct server_plan *plan)
{
    struct bridge *b = s->bridge;

    forget_next(s);
    s->next_plan = plan;
    s->next = make_instance(s, plan);
    if (!serves(s)) {
        take_place(s);
        bridge_want(s);
        return;
    }
    provider_want(instance_provider(s->next));
    observers_add(router_observers(b->router), &b->replace);
}

/* --- carrying out a plan --- */

static void note(struct bridge_changes *changes, enum plan_act act, const char *alias)
{
    struct buf *names = &changes->names[act];

    if (names->n)
        buf_char(names, ',');
    json_quote(names, span_str(alias));
}

void bridge_changes_fini(struct bridge_changes *c)
{
    for (int i = 0; i < PLAN_ACTS; i++)
        buf_fini(&c->names[i]);
}

/* What to do with a server that is in the configuration; `plan` is taken over. */
static enum plan_act carry_out(struct bridge *b, enum plan_act act, struct server_plan *plan)
{
    struct bridge_server *s = bridge_find(b, span_str(server_alias(plan)));

    if (!s) {
        bridge_want(bridge_add_server(b, plan)); /* also one that lacked a secret before */
        return PLAN_ADD;
    }
    list_remove(&s->node);
    list_append(&b->servers, &s->node); /* the order is the configuration's */
    /* While a next one waits the old entry is what that one was made of. */
    const struct server_plan *latest = s->next_plan ? s->next_plan : s->plan;
    if ((act == PLAN_KEEP || act == PLAN_ADJUST) && !server_plan_same_secrets(latest, plan))
        act = PLAN_REPLACE;
    if (act == PLAN_REPLACE) {
        replace(s, plan);
        return act;
    }
    if (act == PLAN_ADJUST) {
        instances_adjust(b->instances, s->plan, plan);
        if (s->next_plan)
            instances_adjust(b->instances, s->next_plan, plan);
        if (core_of(s)->rests && !server_policy(s->plan)->idle_stop)
            bridge_want(s); /* nobody would see it, and so nobody call it */
    }
    server_plan_drop(plan);
    return act;
}

void bridge_carry_out(struct bridge *b, const struct config *c, const struct plan *plan,
                      struct bridge_changes *changes)
{
    struct secrets *secrets = secrets_new(c);

    for (size_t i = 0; i < plan->n; i++) {
        const struct plan_step *step = &plan->steps[i];
        if (step->act == PLAN_REMOVE) {
            struct bridge_server *s = bridge_find(b, span_str(step->from->alias));
            note(changes, PLAN_REMOVE, step->from->alias);
            if (s)
                bridge_drop_server(s);
            continue;
        }
        struct server_plan *server = server_plan_new(c, step->to, secrets);
        if (server)
            note(changes, carry_out(b, step->act, server), step->to->alias);
    }
    secrets_free(secrets);
}

const struct config *bridge_config(const struct bridge *b)
{
    return b->newer ? b->newer : b->config;
}

void bridge_apply(struct bridge *b, struct config *c, struct bridge_changes *changes)
{
    struct plan plan;

    plan_make(&plan, bridge_config(b), c);
    bridge_carry_out(b, c, &plan, changes);
    plan_fini(&plan);
    config_free(b->newer);
    b->newer = c;
    bridge_arrange(b);
    bridge_tell_watches(b);
}
