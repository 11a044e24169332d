/* The graph: adding, replacing and removing servers, the views that show them, and the queries of
 * agents and commands. Called by hub.c, follow.c, endpoints.c, web_pages.c, bus_role.c and
 * bus_host.c, by admin/, and by the commands that need servers but no daemon. */
#include "hub/bridge.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/instance.h"
#include "hub/lease.h"
#include "hub/lock.h"
#include "hub/rulebook.h"
#include "hub/server.h"
#include "hub/variant.h"
#include "mcp/consent.h"
#include "wire/json.h"

/* How long calls to a server that was replaced or dropped may still take; for how long a server
 * that refused the initialize era is not asked again. */
enum { PATIENCE_MS = 30 * 1000, VERDICT_MS = 24 * 3600 * 1000 };

struct bridge_server {
    struct list node; /* in bridge.servers; in no list once the server is gone */
    struct bridge *bridge;
    struct server_plan *plan;
    struct instance *instance;
    struct instance *legacy; /* serves agents of the initialize era; NULL: `instance` does */
    bool legacy_proven;      /* `legacy` has been started once */
    uint64_t modern_until;   /* the server did not serve them itself: not tried before this time */
    struct instance *next;   /* replaces `instance` once ready; NULL when there is none */
    struct server_plan *next_plan;
    bool next_failed;     /* `next` did not come up, and that was logged */
    struct list variants; /* for callers whose variables differ */
    struct exposure *own; /* this server alone, names untouched */
    bool gone;
    bool demo;        /* of no configuration */
    unsigned holders; /* of this struct, the bridge among them */
};

struct bridge {
    struct loop *loop;
    const struct config *config; /* the configuration of the start, not owned */
    struct config *newer;        /* the configuration applied since; NULL when there is none */
    struct router *router;
    struct exposure *all;
    struct list servers; /* in config order */
    struct lock *lock;
    struct signin *signin;
    struct instances *instances;
    struct leases *leases;
    struct rulebook *rules;
    bool started, awake, stopping;
    bool for_one; /* see bridge_set_for_one */
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct timer report;
    struct observer replace; /* set while any server has a `next` */
    struct observer second;  /* set while any `legacy` has not shown yet that it can be started */
    struct list watches;
    struct roll roll; /* the agents */
    struct map lacks; /* alias -> names of the secrets that the server was left out for, or NULL */
    struct secrets *secrets; /* of the current configuration */
    struct buf variables;    /* the names that callers may bring values for: "A B" */
};

static struct bridge_server *entry(struct list *it)
{
    return LIST_ENTRY(it, struct bridge_server, node);
}

static struct provider *core_of(const struct bridge_server *s)
{
    return instance_provider(s->instance);
}

/* The same for agents of the initialize era. */
static struct provider *legacy_core_of(const struct bridge_server *s)
{
    return instance_provider(s->legacy ? s->legacy : s->instance);
}

/* Is the server seen in this view, which may be of either era? */
static bool is_in(const struct bridge_server *s, const struct view *v)
{
    return view_has(v, core_of(s)) || view_has(v, legacy_core_of(s));
}

/* Do new sessions get an instance of their own: by the configuration, or because the server asks
 * its clients questions without saying on which call? Where there is only one agent, it is meant.
 */
static bool is_per_session(const struct bridge_server *s)
{
    return server_is_per_session(s->plan) || (!s->bridge->for_one && server_is_per_user(s->plan)) ||
           (!s->bridge->for_one && (server_traits(s->plan) & SERVER_ASKS));
}

static struct bridge_server *find_server(const struct bridge *b, struct span alias)
{
    LIST_EACH (&b->servers, it)
        if (span_is(alias, server_alias(entry(it)->plan)))
            return entry(it);
    return NULL;
}

/* --- views --- */

/* The providers added by bridge_admit. They leave by being removed from the router. */
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

/* May this server be another for other callers? */
static bool may_vary(const struct bridge_server *s)
{
    return server_fills(s->plan) || (s->next_plan && server_fills(s->next_plan)) ||
           bridge_lacks(s->bridge, server_alias(s->plan));
}

/* Is the server another for a caller with these variables? Then *v is that, held; NULL: the caller
 * cannot have the server, and the log says why. */
static bool differs(struct bridge_server *s, const struct variables *brought, struct variant **v)
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

static void on_orphan(void *arg);

/* The server as it is for the caller of this lease. */
static void add_variant(struct bridge_server *s, struct lease *l, struct variant *v)
{
    const struct catalog *known = core_of(s)->catalog;
    struct provider *p;

    if (!known)
        known = variants_catalog(&s->variants);
    lease_claim(l, v);
    if (!is_per_session(s) || lease_wish(l)->stateless) {
        p = variant_provider(v, known, on_orphan, s);
        lease_add_shared(l, p, server_filter(variant_plan(v)));
        return;
    }
    p = lease_add_own(l, variant_plan(v), known);
    if (!p->catalog && !p->refuses)
        provider_want(p); /* there may be nobody else to learn its lists from */
}

static void furnish(struct bridge *b, struct lease *l)
{
    struct guests g = find_guests(b);
    const struct lease_wish *wish = lease_wish(l);

    lease_clear(l);
    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = entry(it);
        struct variant *v;
        if (!is_in(s, lease_shared(l)))
            continue;
        if (differs(s, core_of(s)->halted ? NULL : wish->variables, &v)) {
            if (v)
                add_variant(s, l, v);
        } else if (wish->stateless) {
            lease_add_shared(l, core_of(s), server_filter(s->plan));
        } else if (is_per_session(s) && !core_of(s)->halted) {
            lease_add_own(l, s->plan, core_of(s)->catalog);
        } else {
            lease_add_shared(l, legacy_core_of(s), server_filter(s->plan));
        }
    }
    for (size_t i = 0; i < g.n; i++)
        if (view_has(lease_shared(l), g.items[i]))
            lease_add_shared(l, g.items[i], NULL);
    mem_free(g.items);
    lease_settle(l);
}

/* Fill all views again with the servers there are now, in the order of the configuration. */
static void arrange(struct bridge *b)
{
    struct guests g = find_guests(b);
    struct lease *next;

    exposure_clear(b->all);
    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = entry(it);
        exposure_clear(s->own);
        exposure_add(s->own, core_of(s), legacy_core_of(s), server_filter(s->plan));
        exposure_add(b->all, core_of(s), legacy_core_of(s), server_filter(s->plan));
    }
    for (size_t i = 0; i < g.n; i++)
        exposure_add(b->all, g.items[i], g.items[i], NULL);
    mem_free(g.items);
    for (struct lease *l = leases_next(b->leases, NULL); l; l = next) {
        next = leases_next(b->leases, l);
        furnish(b, l);
    }
    exposure_weigh(b->all);
    router_tell_changes(b->router, NULL);
}

void bridge_admit(struct bridge *b, struct provider *p)
{
    exposure_add(b->all, p, p, NULL);
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

static void tell_watches(struct bridge *b)
{
    LIST_EACH_SAFE (&b->watches, it) {
        struct bridge_watch *w = LIST_ENTRY(it, struct bridge_watch, node);
        w->changed(w);
    }
}

/* --- one server --- */

/* The server asks like that: this is remembered. */
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

/* --- the instance for agents of the initialize era (decision 012) --- */

/* The instance may outlive the entry: clear the pointers back to the entry. */
static void let_go_of(struct instance *i)
{
    instance_provider(i)->entry = NULL;
    mcp_provider_on_orphan(instance_server(i), NULL, NULL);
    instance_on_lists(i, NULL, NULL);
}

/* It was started: the server is of both eras, and this is known at the next start. */
static void on_legacy_lists(void *arg)
{
    struct bridge_server *s = arg;

    s->legacy_proven = true;
    instance_note(s->instance, SERVER_BOTH_ERAS, true);
}

/* By this, the next daemon knows the running program again. */
static void set_key(const struct instance *i, const char *role)
{
    BUF_SCOPED key = {0};

    buf_printf(&key, "%s %s", instance_provider(i)->alias, role);
    mcp_provider_set_key(instance_server(i), buf_cstr(&key));
}

void bridge_show_servers(struct bridge *b, void (*show)(void *arg, struct mcp_provider *p),
                         void *arg)
{
    instances_show(b->instances, show, arg);
}

static void add_legacy(struct bridge_server *s)
{
    struct bridge *b = s->bridge;

    s->legacy = instance_new(b->instances, s->plan, NULL);
    set_key(s->legacy, "legacy");
    instance_second(s->legacy, s->instance);
    instance_learn(s->legacy, core_of(s)->catalog);
    mcp_provider_on_orphan(instance_server(s->legacy), on_orphan, s);
    instance_on_lists(s->legacy, on_legacy_lists, s);
    observers_add(router_observers(b->router), &b->second);
}

/* The server has no such instance any more. The caller takes it out of the views (arrange), and
 * then lets go of it. NULL if there was none. */
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

/* The shared instance knows its lists and speaks the stateless era: do sessions of the initialize
 * era get another? Not if each of them has one anyway, or if the server does not serve them. */
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
    struct provider *failed = legacy_core_of(s);

    log_info(failed->alias, "has one instance for agents of both eras, for the second one: %s",
             failed->why);
    s->modern_until = loop_timers(s->bridge->loop)->now + VERDICT_MS;
    instance_note(s->instance, SERVER_BOTH_ERAS, false);
    call_hand_over(failed, core_of(s), false);
    struct instance *before = take_legacy(s);
    arrange(s->bridge);
    end_instance(s->bridge, before);
}

static void on_second(struct observer *o)
{
    struct bridge *b = CONTAINER_OF(o, struct bridge, second);
    bool more = false;

    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = entry(it);
        if (!s->legacy || s->legacy_proven)
            continue;
        /* If the other instance is not up either, this tells nothing about the eras. */
        if (legacy_core_of(s)->why[0] && core_of(s)->state == PROVIDER_READY)
            give_up_legacy(s);
        more |= s->legacy != NULL;
    }
    if (!more)
        observer_remove(o);
}

/* --- instances that everybody shares --- */

static void tell_legacy(struct bridge_server *s)
{
    struct provider *second = legacy_core_of(s);

    instance_learn(s->legacy, core_of(s)->catalog);
    if (second->rests && !catalog_same(second->catalog, core_of(s)->catalog))
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
        core_of(s)->takes_turns = false; /* it asks by its answers */
    for (struct lease *l = NULL; is_per_session(s) && (l = leases_next(b->leases, l));)
        lease_learn(l, s->plan, core_of(s)->catalog);
    if (s->legacy)
        tell_legacy(s);
    if (s->legacy || is_per_session(s))
        router_tell_changes(b->router, NULL);
    if (!wants_legacy(s))
        return;
    add_legacy(s);
    arrange(b);
    call_hand_over(core_of(s), legacy_core_of(s), true);
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

/* Takes the plan over. */
static struct bridge_server *add_server(struct bridge *b, struct server_plan *plan)
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

static void want(struct bridge_server *s)
{
    if (server_lacks(s->plan) || (server_is_per_user(s->plan) && !s->bridge->for_one))
        return; /* each caller's own instance is started with its session */
    if (s->bridge->started && (s->bridge->awake || !server_is_lazy(s->plan)))
        provider_want(core_of(s));
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

static void drop_server(struct bridge_server *s)
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
    arrange(s->bridge);
    end_instance(s->bridge, legacy);
    end_instance(s->bridge, before);
    tell_watches(s->bridge);
}

/* Is the current instance of use? If not, nothing is lost by replacing it at once. */
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

static void on_replace(struct observer *o)
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
        want(s);
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

/* Carry out the step for a server that is in the configuration. Takes the plan over. */
static enum plan_act take_step(struct bridge *b, enum plan_act act, struct server_plan *plan)
{
    struct bridge_server *s = find_server(b, span_str(server_alias(plan)));

    if (!s) {
        want(add_server(b, plan)); /* also a server that lacked a secret before */
        return PLAN_ADD;
    }
    list_remove(&s->node);
    list_append(&b->servers, &s->node); /* the order is the configuration's */
    if (act == PLAN_REPLACE)
        variants_retire(&s->variants);
    if (server_lacks(plan) && !server_lacks(s->plan)) {
        server_plan_drop(plan); /* the old one goes on, for those who bring nothing */
        return act;
    }
    /* While a `next` is waiting, the entry is compared with the plan of `next`. */
    const struct server_plan *latest = s->next_plan ? s->next_plan : s->plan;
    if ((act == PLAN_KEEP || act == PLAN_ADJUST) && !server_plan_same_secrets(latest, plan))
        act = PLAN_REPLACE;
    if (act == PLAN_REPLACE) {
        bool lacked = server_lacks(s->plan);
        replace(s, plan);
        return lacked ? PLAN_ADD : act;
    }
    if (act == PLAN_ADJUST) {
        instances_adjust(b->instances, s->plan, plan);
        if (s->next_plan)
            instances_adjust(b->instances, s->next_plan, plan);
        if (core_of(s)->rests && !server_policy(s->plan)->idle_stop)
            want(s); /* not shown without idle_stop, so no call would start the server */
    }
    server_plan_drop(plan);
    return act;
}

static void carry_out(struct bridge *b, const struct config *c, const struct plan *plan,
                      struct bridge_changes *changes)
{
    secrets_free(b->secrets);
    b->secrets = secrets_new(c);
    for (size_t i = 0; i < plan->n; i++) {
        const struct plan_step *step = &plan->steps[i];
        if (step->act == PLAN_REMOVE) {
            struct bridge_server *s = find_server(b, span_str(step->from->alias));
            note(changes, PLAN_REMOVE, step->from->alias);
            if (s)
                drop_server(s);
            continue;
        }
        BUF_SCOPED missing = {0};
        struct server_plan *server = server_plan_for_callers(c, step->to, b->secrets, &missing);
        mem_free(
            map_put(&b->lacks, span_str(step->to->alias), missing.n ? buf_take(&missing) : NULL));
        bool starts = server && !server_lacks(server);
        enum plan_act act = server ? take_step(b, step->act, server) : step->act;
        if (starts)
            note(changes, act, step->to->alias);
    }
    b->variables.n = 0;
    secrets_put_open(b->secrets, &b->variables);
}

struct span bridge_variables(const struct bridge *b)
{
    return buf_view(&b->variables);
}

const char *bridge_lacks(const struct bridge *b, const char *alias)
{
    return map_get(&b->lacks, span_str(alias));
}

static void forget_lacks(struct bridge *b)
{
    size_t at = 0;
    struct span alias;
    void *names;

    while (map_next(&b->lacks, &at, &alias, &names))
        mem_free(names);
    map_fini(&b->lacks);
}

const struct config *bridge_config(const struct bridge *b)
{
    return b->newer ? b->newer : b->config;
}

static void take_rules(struct bridge *b, const struct config *c)
{
    struct rulebook *before = b->rules;

    b->rules = rulebook_new(c);
    rules_set(b->router, rulebook_rules(b->rules));
    rulebook_free(before);
}

/* There is a file now: what showed what a bridge does has done that. */
static void drop_demo(struct bridge *b)
{
    LIST_EACH_SAFE (&b->servers, it)
        if (entry(it)->demo)
            drop_server(entry(it));
}

void bridge_apply(struct bridge *b, struct config *c, struct bridge_changes *changes)
{
    struct plan plan;

    if (c->file)
        drop_demo(b);
    plan_make(&plan, bridge_config(b), c);
    take_rules(b, c);
    carry_out(b, c, &plan, changes);
    plan_fini(&plan);
    config_free(b->newer);
    b->newer = c;
    arrange(b);
    tell_watches(b);
}

struct lock *bridge_lock(const struct bridge *b)
{
    return b->lock;
}

struct signin *bridge_signin(const struct bridge *b)
{
    return b->signin;
}

void bridge_compare(struct bridge *b)
{
    instances_judge(b->instances);
}

void bridge_relock(struct bridge *b)
{
    lock_read(b->lock, bridge_config(b));
    bridge_compare(b);
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

/* At the start, every server is an addition to an empty configuration. */
static void first_servers(struct bridge *b)
{
    struct bridge_changes changes = {0};
    struct plan plan;

    plan_make(&plan, NULL, b->config);
    carry_out(b, b->config, &plan, &changes);
    plan_fini(&plan);
    bridge_changes_fini(&changes);
    /* No configuration: this program contains a small server that shows what a bridge does. */
    struct server_plan *demo =
        !b->config->file && !b->config->servers.n ? server_plan_demo(b->config) : NULL;
    if (demo)
        add_server(b, demo)->demo = true;
    arrange(b);
}

struct bridge *bridge_new(struct loop *loop, const struct config *c)
{
    static const char *const before[] = {
        [DESCRIBE_NOT] = NULL, [DESCRIBE_NAME] = "[", [DESCRIBE_MCP] = "[MCP: "};
    struct bridge *b = MEM_NEW(struct bridge);
    bool bare = strcmp(c->names, "bare") == 0;

    loop_hide_memory(); /* the secrets of all servers are here, and no server may read them */
    b->loop = loop;
    b->config = c;
    loop_holdings(loop)->limit = c->limits.memory;
    b->router = router_new(loop_timers(loop), id_random_u64());
    router_set_max_catalog(b->router, c->limits.catalog);
    router_set_holdings(b->router, loop_holdings(loop));
    approval_set_approver(b->router, &consent_approver);
    take_rules(b, c);
    b->all =
        exposure_new(b->router, &(struct exposure_style){.bridge = b,
                                                         .of_both_eras = true,
                                                         .name = "all",
                                                         .pattern = bare ? NULL : c->names,
                                                         .described = before[c->describe_server],
                                                         .expose = c->expose,
                                                         .above = c->expose_above,
                                                         .gateway = c->bus.gateway});
    list_init(&b->servers);
    list_init(&b->watches);
    roll_init(&b->roll);
    b->report.fire = report_stopped;
    b->replace.changed = on_replace;
    b->lock = lock_new(c);
    b->signin = signin_new(loop, c);
    b->instances =
        instances_new(loop, b->router, b->lock, b->signin, c->limits.processes, on_emptied, b);
    b->second.changed = on_second;
    b->leases = leases_new(loop, b->router, b->instances);
    router_on_stopped(b->router, on_stopped, b);
    first_servers(b);
    exposure_open(b->all);
    return b;
}

void bridge_free(struct bridge *b)
{
    timer_clear(loop_timers(b->loop), &b->report);
    observer_remove(&b->replace);
    observer_remove(&b->second);
    leases_free(b->leases);
    LIST_EACH_SAFE (&b->servers, it) {
        struct bridge_server *s = entry(it); /* the bridge was never started */
        list_remove(&s->node);
        bridge_server_release(s);
    }
    exposure_free(b->all);
    instances_free(b->instances);
    signin_free(b->signin);
    lock_free(b->lock);
    router_free(b->router);
    rulebook_free(b->rules);
    secrets_free(b->secrets);
    buf_fini(&b->variables);
    config_free(b->newer);
    forget_lacks(b);
    mem_free(b);
}

void bridge_set_for_one(struct bridge *b)
{
    b->for_one = true;
}

void bridge_start(struct bridge *b)
{
    b->started = true;
    LIST_EACH (&b->servers, it)
        want(entry(it));
}

void bridge_wake(struct bridge *b)
{
    if (b->awake || b->stopping)
        return;
    b->awake = true;
    LIST_EACH (&b->servers, it)
        want(entry(it));
}

void bridge_stop(struct bridge *b, void (*done)(void *arg), void *arg)
{
    b->stopped = done;
    b->stopped_arg = arg;
    b->stopping = true;
    observer_remove(&b->replace);
    observer_remove(&b->second);
    exposure_stop(b->all);
    LIST_EACH_SAFE (&b->servers, it)
        drop_server(entry(it));
    instances_hurry(b->instances);
    if (!instances_count(b->instances))
        on_emptied(b);
}

struct router *bridge_router(const struct bridge *b)
{
    return b->router;
}

struct view *bridge_full_view(const struct bridge *b)
{
    return exposure_full(b->all);
}

struct roll *bridge_roll(struct bridge *b)
{
    return &b->roll;
}

struct exposure *bridge_all(const struct bridge *b)
{
    return b->all;
}

struct exposure *bridge_one(const struct bridge *b, struct span alias)
{
    const struct bridge_server *s = find_server(b, alias);

    return s ? s->own : NULL;
}

struct bridge_server *bridge_server_hold(struct bridge *b, struct span alias)
{
    struct bridge_server *s = find_server(b, alias);

    if (s)
        s->holders++;
    return s;
}

struct exposure *bridge_server_exposure(const struct bridge_server *s)
{
    return s->own;
}

bool bridge_server_is_gone(const struct bridge_server *s)
{
    return s->gone;
}

/* --- agents; the `arg` of their mcp_host is the exposure that they see --- */

static void wake(void *arg)
{
    bridge_wake(exposure_style(arg)->bridge);
}

struct view *bridge_enter(struct exposure *e, struct view *shared, const struct lease_wish *wish,
                          struct lease **lease)
{
    struct bridge *b = exposure_style(e)->bridge;
    bool any = wish->variables && b->variables.n;

    LIST_EACH (&b->servers, it)
        any |= !wish->stateless && is_per_session(entry(it)) && is_in(entry(it), shared);
    if (!any || b->stopping)
        return NULL;
    *lease = lease_new(b->leases, exposure_style(e), shared, wish);
    furnish(b, *lease);
    return lease_view(*lease);
}

void bridge_bring(struct bridge *b, struct lease *lease, struct variables *variables)
{
    lease_bring(lease, variables);
    furnish(b, lease);
    router_tell_changes(b->router, NULL);
}

static struct view *enter(void *arg, struct view *shared, struct principal *principal,
                          unsigned answers, void **lease)
{
    struct lease *l = NULL;
    struct view *own = bridge_enter(
        arg, shared, &(struct lease_wish){.principal = principal, .answers = answers}, &l);

    *lease = l;
    return own;
}

struct view *bridge_enter_owner(struct bridge *b, struct exposure *e, struct principal *principal,
                                struct lease **lease)
{
    struct view *shared = exposure_view(e);
    bool any = false;

    LIST_EACH (&b->servers, it)
        any |= server_is_per_user(entry(it)->plan) && is_in(entry(it), shared);
    if (!any || !principal || b->stopping)
        return NULL;
    *lease = lease_new(b->leases, exposure_style(e), shared,
                       &(struct lease_wish){.principal = principal,
                                            .answers = ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL |
                                                       ANSWERS_SAMPLING});
    furnish(b, *lease);
    return lease_view(*lease);
}

void bridge_leave(struct lease *lease)
{
    lease_end(lease);
}

static void leave(void *arg, void *lease)
{
    (void)arg;
    lease_end(lease);
}

struct mcp_host bridge_host(struct bridge *b, struct exposure *e)
{
    static const enum mcp_errors errors[] = {[ERRORS_AUTO] = MCP_ERRORS_AUTO,
                                             [ERRORS_PROTOCOL] = MCP_ERRORS_PROTOCOL,
                                             [ERRORS_RESULTS] = MCP_ERRORS_RESULTS};
    const struct narrowing *narrowing = exposure_style(e)->narrowing;
    bool own = narrowing && narrowing->errors;

    return (struct mcp_host){.router = b->router,
                             .view = exposure_view(e),
                             .errors = errors[own ? narrowing->errors : (int)b->config->errors],
                             .legacy_view = exposure_legacy_view(e),
                             .max_batch = b->config->limits.batch,
                             .max_answers = b->config->limits.message,
                             .roll = &b->roll,
                             .arg = e,
                             .wake = wake,
                             .enter = enter,
                             .leave = leave};
}

struct exposure *bridge_narrow(struct bridge *b, const struct bridge_server *s,
                               const struct narrowing *narrowing)
{
    struct exposure *whole = s ? s->own : b->all;
    struct exposure_style style = *exposure_style(whole);

    style.narrowing = narrowing;
    style.of_both_eras = true;
    if (!s && narrowing->expose)
        style.expose = (enum config_expose)(narrowing->expose - VIEW_EXPOSE_FIRST);
    if (narrowing->expose_above)
        style.above = narrowing->expose_above;
    struct exposure *e = exposure_new(b->router, &style);
    exposure_follow(e, whole);
    exposure_open(e);
    return e;
}

/* --- queries --- */

/* Does the server serve anybody, or may it, as far as is known? Else it is left out. */
static bool is_of_use(const struct bridge_server *s)
{
    const char *lacks = bridge_lacks(s->bridge, server_alias(s->plan));

    return !server_lacks(s->plan) || !list_empty(&s->variants) ||
           (lacks && strcmp(lacks, VARIABLES_PROJECT) == 0);
}

struct provider *bridge_next(const struct bridge *b, const struct provider *p)
{
    const struct bridge_server *s = p ? p->entry : NULL;
    const struct list *next = s ? s->node.next : b->servers.next;

    if (p && !s)
        return NULL;
    for (; next != &b->servers; next = next->next) {
        s = CONTAINER_OF(next, const struct bridge_server, node);
        if (is_of_use(s))
            return core_of(s);
    }
    return NULL;
}

struct view *bridge_server_view(const struct provider *p)
{
    const struct bridge_server *s = p->entry;

    return s ? exposure_view(s->own) : NULL;
}

struct mcp_provider *bridge_mcp_provider(const struct provider *p)
{
    const struct bridge_server *s = p->entry;

    return s && core_of(s) == p ? instance_server(s->instance) : NULL;
}

struct server_plan *bridge_server_plan(const struct provider *p)
{
    const struct bridge_server *s = p->entry;

    return s ? s->plan : NULL;
}

static bool is_settled(const struct bridge_server *s)
{
    const struct provider *p = core_of(s);
    bool resting = p->state == PROVIDER_DOWN && server_is_lazy(s->plan) && !s->bridge->awake;

    return p->state == PROVIDER_READY || p->why[0] || resting || p->refuses;
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
        if ((!is_settled(entry(it)) && !core_of(entry(it))->remembered) ||
            !variants_are_known(&entry(it)->variants))
            return false;
    return true;
}
