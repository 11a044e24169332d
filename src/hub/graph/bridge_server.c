/* One server of the bridge: the instance that everybody shares, the instance that is to replace it,
 * the instance for agents of the initialize era, and variants for callers with variables.
 * Called by bridge.c; holders of a server (hub/endpoints.c, hub/shims.c) release it here. */
#include "hub/graph/bridge_inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/subscriptions.h"
#include "hub/graph/instance.h"
#include "hub/graph/server.h"
#include "hub/graph/variant.h"

/* How long calls to a server that was replaced or dropped may still take; for how long a server
 * that refused the initialize era is not asked again. */
enum { PATIENCE_MS = 30 * 1000, VERDICT_MS = 24 * 3600 * 1000 };

struct provider *bridge_server_core(const struct bridge_server *s)
{
    return instance_provider(s->instance);
}

struct provider *bridge_server_legacy_core(const struct bridge_server *s)
{
    return instance_provider(s->legacy ? s->legacy : s->instance);
}

bool bridge_server_is_in(const struct bridge_server *s, const struct view *v)
{
    return view_has(v, bridge_server_core(s)) || view_has(v, bridge_server_legacy_core(s));
}

/* Does each caller of a server with this plan sign in for itself? */
static bool is_per_user(const struct bridge *b, const struct server_plan *plan)
{
    return !b->for_one && server_is_per_user(plan);
}

/* Do new sessions get an instance of their own: by the configuration, or because the server asks
 * its clients questions without saying on which call? (With bridge_set_for_one, such questions are
 * for the only agent.) */
static bool is_per_session(const struct bridge_server *s)
{
    return server_is_per_session(s->plan) || is_per_user(s->bridge, s->plan) ||
           (!s->bridge->for_one && (server_traits(s->plan) & SERVER_ASKS));
}

bool bridge_server_is_own(const struct bridge_server *s, const struct lease_terms *terms)
{
    return terms->stateless ? terms->principal && is_per_user(s->bridge, s->plan)
                            : is_per_session(s);
}

/* --- callers with variables of their own (decision 022) --- */

/* Can callers with variables need a variant of this server? */
static bool may_vary(const struct bridge_server *s)
{
    return server_fills(s->plan) || (s->next_plan && server_fills(s->next_plan)) ||
           bridge_lacks(s->bridge, server_alias(s->plan));
}

bool bridge_server_differs(struct bridge_server *s, const struct variables *brought,
                           struct variant **v)
{
    struct bridge *b = s->bridge;
    const struct config *c = bridge_config(b);
    const struct config_server *e = config_server(c, server_alias(s->plan));

    *v = NULL;
    if (!brought || !e || !may_vary(s))
        return false;
    struct secrets *secrets = secrets_for_caller(b->secrets, brought);
    struct server_plan *plan = server_plan_for_caller(c, e, secrets);
    secrets_free(secrets);
    if (plan && !server_lacks(plan) && server_plan_same_secrets(plan, s->plan)) {
        server_plan_drop(plan);
        return false;
    }
    if (plan)
        *v = variants_hold(&s->variants, b->instances, plan, c);
    return true;
}

/* The server has asked a question without saying on which call: remember that. */
static void on_orphan(void *arg)
{
    struct bridge_server *s = arg;

    if (!s->instance || (server_traits(s->plan) & SERVER_ASKS))
        return;
    instance_note(s->instance, SERVER_ASKS, true);
    if (!server_is_per_session(s->plan) && !s->bridge->for_one)
        log_info(
            server_alias(s->plan),
            "asks its clients questions: from now on every session gets an instance of its own "
            "(`instances: per-session` says so from the start)");
}

void bridge_server_add_variant(struct bridge_server *s, struct lease *l, struct variant *v)
{
    const struct catalog *known = bridge_server_core(s)->catalog;
    struct provider *p;

    if (!known)
        known = variants_catalog(&s->variants);
    lease_claim(l, v);
    if (!bridge_server_is_own(s, lease_terms(l))) {
        p = variant_provider(v, known, on_orphan, s);
        lease_add_shared(l, p, server_filter(variant_plan(v)));
        return;
    }
    p = lease_add_own(l, variant_plan(v), known);
    if (!p->catalog && !p->refuses)
        provider_want(p); /* perhaps no other instance knows the lists */
}

/* --- the instance for agents of the initialize era (decision 012) --- */

/* The instance may outlive the entry: clear the pointers back to the entry. */
static void let_go_of(struct instance *i)
{
    instance_provider(i)->entry = NULL;
    mcp_provider_on_orphan(instance_server(i), NULL, NULL);
    instance_on_lists(i, NULL, NULL);
}

/* The instance for the initialize era has listed its tools: the server is of both eras, and that is
 * remembered for the next start. */
static void on_legacy_lists(void *arg)
{
    struct bridge_server *s = arg;

    s->legacy_proven = true;
    instance_note(s->instance, SERVER_BOTH_ERAS, true);
}

/* By this key, the next daemon recognizes the running program. */
static void set_key(const struct instance *i, const char *role)
{
    BUF_SCOPED key = {0};

    buf_printf(&key, "%s %s", instance_provider(i)->alias, role);
    mcp_provider_set_key(instance_server(i), buf_cstr(&key));
}

static void add_legacy(struct bridge_server *s)
{
    struct bridge *b = s->bridge;

    s->legacy = instance_new(b->instances, s->plan, NULL);
    set_key(s->legacy, "legacy");
    instance_second(s->legacy, s->instance);
    instance_learn(s->legacy, bridge_server_core(s)->catalog);
    mcp_provider_on_orphan(instance_server(s->legacy), on_orphan, s);
    instance_on_lists(s->legacy, on_legacy_lists, s);
    observers_add(router_observers(b->router), &b->second);
}

/* Detach the instance for the initialize era and return it; NULL if there was none. The caller
 * takes the instance out of the views (bridge_arrange), then ends it (end_instance). */
static struct instance *take_legacy(struct bridge_server *s)
{
    struct instance *before = s->legacy;

    s->legacy = NULL;
    s->legacy_proven = false;
    if (before)
        let_go_of(before);
    return before;
}

static void end_instance(const struct bridge *b, struct instance *i)
{
    if (i)
        instance_let_go(i, b->stopping ? 0 : PATIENCE_MS);
}

/* Subscriptions at an instance that leaves go to those that the consumers see now. */
static void move_subscriptions(const struct bridge_server *s, struct instance *from)
{
    struct provider *second = s->legacy ? bridge_server_legacy_core(s) : NULL;

    if (!from)
        return;
    subscriptions_hand_over(instance_provider(from), bridge_server_core(s));
    if (second)
        subscriptions_hand_over(instance_provider(from), second);
    if (second && subscriptions_any(second))
        provider_want(second);
    for (struct lease *l = NULL; (l = leases_next(s->bridge->leases, l));)
        lease_move_subscriptions(l, instance_provider(from));
}

/* The shared instance knows its lists and speaks the stateless era: do sessions of the initialize
 * era get another instance? Not if each session has its own, or if such an instance failed. */
static bool wants_legacy(const struct bridge_server *s)
{
    return !s->legacy && !is_per_session(s) && server_era(s->plan) == MCP_ERA_AUTO &&
           mcp_provider_is_modern(instance_server(s->instance)) &&
           s->modern_until <= loop_timers(s->bridge->loop)->now;
}

/* The server does not serve agents of the initialize era itself, or cannot be started twice: its
 * one instance serves them, and we translate. */
static void give_up_legacy(struct bridge_server *s)
{
    struct provider *failed = bridge_server_legacy_core(s);

    log_info(failed->alias, "has one instance for agents of both eras, for the second one: %s",
             provider_why(failed));
    s->modern_until = loop_timers(s->bridge->loop)->now + VERDICT_MS;
    instance_note(s->instance, SERVER_BOTH_ERAS, false);
    call_hand_over(failed, bridge_server_core(s), false);
    struct instance *before = take_legacy(s);
    bridge_arrange(s->bridge);
    move_subscriptions(s, before);
    end_instance(s->bridge, before);
}

void bridge_server_on_second(struct observer *o)
{
    struct bridge *b = CONTAINER_OF(o, struct bridge, second);
    bool more = false;

    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = bridge_server_at(it);
        if (!s->legacy || s->legacy_proven)
            continue;
        /* If the shared instance is not up either, the failure says nothing about the eras. */
        if (bridge_server_legacy_core(s)->why && bridge_server_core(s)->state == PROVIDER_READY)
            give_up_legacy(s);
        more |= s->legacy != NULL;
    }
    if (!more)
        observer_remove(o);
}

/* --- instances that everybody shares --- */

static void tell_legacy(struct bridge_server *s)
{
    struct provider *second = bridge_server_legacy_core(s);

    instance_learn(s->legacy, bridge_server_core(s)->catalog);
    if (second->rests && !catalog_same(second->catalog, bridge_server_core(s)->catalog))
        provider_want(second); /* only the server itself knows its lists of the initialize era */
}

/* Instances that were not started yet show the lists of the shared one. */
static void on_lists(void *arg)
{
    struct bridge_server *s = arg;
    struct bridge *b = s->bridge;

    if (!s->instance)
        return;
    if (mcp_provider_is_modern(instance_server(s->instance)))
        bridge_server_core(s)->takes_turns = false; /* its questions come as results of calls */
    for (struct lease *l = NULL; is_per_session(s) && (l = leases_next(b->leases, l));)
        lease_learn(l, s->plan, bridge_server_core(s)->catalog);
    if (s->legacy)
        tell_legacy(s);
    if (s->legacy || is_per_session(s))
        router_tell_changes(b->router, NULL);
    if (!wants_legacy(s))
        return;
    add_legacy(s);
    bridge_arrange(b);
    call_hand_over(bridge_server_core(s), bridge_server_legacy_core(s), true);
}

static struct instance *make_instance(struct bridge_server *s, struct server_plan *plan)
{
    struct instance *i = instance_new(s->bridge->instances, plan, NULL);

    set_key(i, "shared");
    instance_provider(i)->entry = s;
    instance_provider(i)->takes_turns = (server_traits(plan) & SERVER_ASKS) != 0;
    mcp_provider_on_orphan(instance_server(i), on_orphan, s);
    instance_on_lists(i, on_lists, s);
    return i;
}

struct bridge_server *bridge_server_new(struct bridge *b, struct server_plan *plan)
{
    struct bridge_server *s = MEM_NEW(struct bridge_server);

    s->bridge = b;
    s->plan = plan;
    s->holders = 1;
    list_init(&s->variants);
    s->own = exposure_new(
        b->router,
        &(struct exposure_style){.bridge = b, .of_both_eras = true, .name = server_alias(plan)});
    s->instance = make_instance(s, plan);
    if ((server_traits(plan) & SERVER_BOTH_ERAS) && !is_per_session(s))
        add_legacy(s);
    list_append(&b->servers, &s->node);
    return s;
}

void bridge_server_want(struct bridge_server *s)
{
    if (server_lacks(s->plan) || is_per_user(s->bridge, s->plan))
        return; /* each caller's own instance is started with its session */
    if (s->bridge->started && (s->bridge->awake || !server_is_lazy(s->plan)))
        provider_want(bridge_server_core(s));
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

void bridge_server_drop(struct bridge_server *s)
{
    s->gone = true;
    list_remove(&s->node);
    variants_retire(&s->variants);
    forget_next(s);
    end_instance(s->bridge, take_legacy(s));
    let_go_of(s->instance);
    end_instance(s->bridge, s->instance);
    s->instance = NULL;
    bridge_server_release(s);
}

void bridge_server_release(struct bridge_server *s)
{
    if (--s->holders)
        return;
    exposure_free(s->own);
    server_plan_drop(s->plan);
    mem_free(s);
}

/* --- replacing an instance --- */

static void take_place(struct bridge_server *s)
{
    struct instance *before = s->instance, *legacy = take_legacy(s);

    let_go_of(before);
    server_plan_drop(s->plan);
    s->plan = s->next_plan;
    s->instance = s->next;
    s->next = NULL;
    s->next_plan = NULL;
    s->next_failed = false;
    s->modern_until = 0;
    if (wants_legacy(s))
        add_legacy(s);
    bridge_arrange(s->bridge);
    move_subscriptions(s, legacy);
    move_subscriptions(s, before);
    end_instance(s->bridge, legacy);
    end_instance(s->bridge, before);
    bridge_tell_watches(s->bridge);
}

/* Is the current instance ready? If not, nothing is lost by replacing it at once. */
static bool serves(const struct bridge_server *s)
{
    return bridge_server_core(s)->state == PROVIDER_READY;
}

static void look_at_next(struct bridge_server *s)
{
    const struct provider *next = instance_provider(s->next);

    if (next->state == PROVIDER_READY || !serves(s)) {
        take_place(s);
    } else if (next->why && !s->next_failed) {
        s->next_failed = true;
        log_warn(next->alias, "the new entry does not come up, so the old one goes on: %s",
                 next->why);
    }
}

void bridge_server_on_replace(struct observer *o)
{
    struct bridge *b = CONTAINER_OF(o, struct bridge, replace);
    bool more = false;

    LIST_EACH (&b->servers, it) {
        if (!bridge_server_at(it)->next)
            continue;
        look_at_next(bridge_server_at(it));
        more |= bridge_server_at(it)->next != NULL;
    }
    if (!more)
        observer_remove(o);
}

void bridge_server_replace(struct bridge_server *s, struct server_plan *plan)
{
    struct bridge *b = s->bridge;

    forget_next(s);
    s->next_plan = plan;
    s->next = make_instance(s, plan);
    if (!serves(s) || is_per_user(b, plan)) { /* that one is not started for everybody */
        take_place(s);
        bridge_server_want(s);
        return;
    }
    provider_want(instance_provider(s->next));
    observers_add(router_observers(b->router), &b->replace);
}

/* --- orders of operators --- */

void bridge_server_resume(struct provider *p)
{
    const struct bridge_server *s = p->entry;

    provider_resume(p);
    if (s)
        bridge_arrange(s->bridge);
}

void bridge_server_restart(struct provider *p)
{
    const struct bridge_server *s = p->entry;

    provider_restart(p);
    if (s)
        bridge_arrange(s->bridge);
}

/* --- queries --- */

struct exposure *bridge_server_exposure(const struct bridge_server *s)
{
    return s->own;
}

bool bridge_server_is_gone(const struct bridge_server *s)
{
    return s->gone;
}

bool bridge_server_is_of_use(const struct bridge_server *s)
{
    const char *lacks = bridge_lacks(s->bridge, server_alias(s->plan));

    return !server_lacks(s->plan) || !list_empty(&s->variants) ||
           (lacks && strcmp(lacks, VARIABLES_PROJECT) == 0);
}

struct view *bridge_server_view(const struct provider *p)
{
    const struct bridge_server *s = p->entry;

    return s ? exposure_view(s->own) : NULL;
}

struct server_plan *bridge_server_plan(const struct provider *p)
{
    const struct bridge_server *s = p->entry;

    return s ? s->plan : NULL;
}

struct identity *bridge_server_identity(const struct provider *p, bool next)
{
    struct bridge_server *s = p->entry;
    struct identity *id = NULL;

    if (!s)
        return NULL;
    if (next && s->next_plan)
        id = signin_find(s->bridge->signin, s->next_plan);
    if (!id)
        id = signin_find(s->bridge->signin, s->plan);
    return id ? id : variants_identity(&s->variants, s->bridge->signin);
}

bool bridge_server_is_settled(const struct bridge_server *s)
{
    const struct provider *p = bridge_server_core(s);
    bool resting = p->state == PROVIDER_DOWN && server_is_lazy(s->plan) && !s->bridge->awake;

    return p->state == PROVIDER_READY || p->why || resting || p->refuses ||
           is_per_user(s->bridge, s->plan);
}
