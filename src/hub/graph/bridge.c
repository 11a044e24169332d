/* The graph: all servers and the views that show them, what another configuration changes, and the
 * queries of agents and commands. Called by hub/hub.c, follow.c, hub/endpoints.c, hub/web_pages.c,
 * hub/bus_role.c and hub/bus_host.c, by admin/, and by the commands that need servers but no
 * daemon. */
#include "hub/graph/bridge_inside.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/graph/instance.h"
#include "hub/graph/lock.h"
#include "hub/graph/rulebook.h"
#include "hub/graph/server.h"
#include "hub/graph/variant.h"
#include "mcp/consent.h"
#include "wire/json.h"

static struct bridge_server *find_server(const struct bridge *b, struct span alias)
{
    LIST_EACH (&b->servers, it)
        if (span_is(alias, server_alias(bridge_server_at(it)->plan)))
            return bridge_server_at(it);
    return NULL;
}

/* --- views --- */

/* The providers added by bridge_admit. They leave by being removed from the router. */
struct admitted {
    struct provider **items;
    size_t n;
};

static struct admitted find_admitted(const struct bridge *b)
{
    struct admitted g = {0};
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
    struct admitted g = find_admitted(b);
    const struct lease_terms *terms = lease_terms(l);

    lease_clear(l);
    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = bridge_server_at(it);
        struct variant *v;
        if (!bridge_server_is_in(s, lease_shared(l)))
            continue;
        if (bridge_server_differs(s, bridge_server_core(s)->halted ? NULL : terms->variables, &v)) {
            if (v)
                bridge_server_add_variant(s, l, v);
        } else if (bridge_server_is_own(s, terms) &&
                   (!bridge_server_core(s)->halted || lease_has_own(l, s->plan))) {
            lease_add_own(l, s->plan, bridge_server_core(s)->catalog);
        } else {
            lease_add_shared(
                l, terms->stateless ? bridge_server_core(s) : bridge_server_legacy_core(s),
                server_filter(s->plan));
        }
    }
    for (size_t i = 0; i < g.n; i++)
        if (view_has(lease_shared(l), g.items[i]))
            lease_add_shared(l, g.items[i], NULL);
    mem_free(g.items);
    lease_settle(l);
}

void bridge_arrange(struct bridge *b)
{
    struct admitted g = find_admitted(b);
    struct lease *next;

    exposure_clear(b->all);
    LIST_EACH (&b->servers, it) {
        struct bridge_server *s = bridge_server_at(it);
        exposure_clear(s->own);
        exposure_add(s->own, bridge_server_core(s), bridge_server_legacy_core(s),
                     server_filter(s->plan));
        exposure_add(b->all, bridge_server_core(s), bridge_server_legacy_core(s),
                     server_filter(s->plan));
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

void bridge_tell_watches(struct bridge *b)
{
    LIST_EACH_SAFE (&b->watches, it) {
        struct bridge_watch *w = LIST_ENTRY(it, struct bridge_watch, node);
        w->changed(w);
    }
}

void bridge_show_servers(struct bridge *b, void (*show)(void *arg, struct mcp_provider *p),
                         void *arg)
{
    instances_show(b->instances, show, arg);
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

/* The server cannot be used as its entry is now; what it should become is not forgotten. */
static void keep_as_it_was(struct bridge_server *s, enum plan_act act)
{
    s->stale |= act != PLAN_KEEP;
    log_warn(server_alias(s->plan), "goes on as it was before");
}

/* Carry out the step for a server that is in the configuration. Takes the plan over. */
static enum plan_act take_step(struct bridge *b, enum plan_act act, struct server_plan *plan)
{
    struct bridge_server *s = find_server(b, span_str(server_alias(plan)));

    if (!s) {
        bridge_server_want(
            bridge_server_new(b, plan)); /* also a server that lacked a secret before */
        return PLAN_ADD;
    }
    list_remove(&s->node);
    list_append(&b->servers, &s->node); /* the order is the configuration's */
    if (act == PLAN_REPLACE)
        variants_retire(&s->variants);
    if (server_lacks(plan) && !server_lacks(s->plan)) {
        keep_as_it_was(s, act); /* for callers without variables */
        server_plan_drop(plan);
        return act;
    }
    /* While a `next` is waiting, the entry is compared with the plan of `next`. */
    const struct server_plan *latest = s->next_plan ? s->next_plan : s->plan;
    if ((act == PLAN_KEEP || act == PLAN_ADJUST) &&
        (s->stale || !server_plan_same_secrets(latest, plan)))
        act = PLAN_REPLACE;
    s->stale = false;
    if (act == PLAN_REPLACE) {
        bool lacked = server_lacks(s->plan);
        bridge_server_replace(s, plan);
        return lacked ? PLAN_ADD : act;
    }
    if (act == PLAN_ADJUST) {
        instances_adjust(b->instances, s->plan, plan);
        if (s->next_plan)
            instances_adjust(b->instances, s->next_plan, plan);
        if (bridge_server_core(s)->rests && !server_policy(s->plan)->idle_stop)
            bridge_server_want(
                s); /* a resting server is not shown without idle_stop: no call would start it */
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
                bridge_server_drop(s);
            continue;
        }
        BUF_SCOPED missing = {0};
        struct server_plan *server = server_plan_for_callers(c, step->to, b->secrets, &missing);
        mem_free(
            map_put(&b->lacks, span_str(step->to->alias), missing.n ? buf_take(&missing) : NULL));
        struct bridge_server *before = server ? NULL : find_server(b, span_str(step->to->alias));
        bool starts = server && !server_lacks(server);
        enum plan_act act = server ? take_step(b, step->act, server) : step->act;
        if (before)
            keep_as_it_was(before, act);
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

/* There is a configuration file now, so the demo server is not needed any more. */
static void drop_demo(struct bridge *b)
{
    LIST_EACH_SAFE (&b->servers, it)
        if (bridge_server_at(it)->demo)
            bridge_server_drop(bridge_server_at(it));
}

void bridge_apply(struct bridge *b, struct config *c, struct bridge_changes *changes)
{
    struct config *before = b->newer;
    struct plan plan;

    if (c->file)
        drop_demo(b);
    plan_make(&plan, bridge_config(b), c);
    b->newer = c; /* first: a step may fill the views, and callers' variants are made from it */
    take_rules(b, c);
    carry_out(b, c, &plan, changes);
    plan_fini(&plan);
    config_free(before);
    bridge_arrange(b);
    bridge_tell_watches(b);
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
        bridge_server_new(b, demo)->demo = true;
    bridge_arrange(b);
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
    session_list_init(&b->sessions);
    b->report.fire = report_stopped;
    b->replace.changed = bridge_server_on_replace;
    b->lock = lock_new(c);
    b->signin = signin_new(loop, c);
    b->instances =
        instances_new(loop, b->router, b->lock, b->signin, c->limits.processes, on_emptied, b);
    b->second.changed = bridge_server_on_second;
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
        struct bridge_server *s = bridge_server_at(it); /* the bridge was never started */
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
        bridge_server_want(bridge_server_at(it));
}

void bridge_wake(struct bridge *b)
{
    if (b->awake || b->stopping)
        return;
    b->awake = true;
    LIST_EACH (&b->servers, it)
        bridge_server_want(bridge_server_at(it));
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
        bridge_server_drop(bridge_server_at(it));
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

struct session_list *bridge_sessions(struct bridge *b)
{
    return &b->sessions;
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

/* --- agents; the `arg` of their mcp_host is the exposure that they see --- */

static void wake(void *arg)
{
    bridge_wake(exposure_style(arg)->bridge);
}

/* Does a caller on these terms get an instance of its own of a server in this view? */
static bool has_own(struct bridge *b, const struct view *shared, const struct lease_terms *terms)
{
    LIST_EACH (&b->servers, it)
        if (bridge_server_is_own(bridge_server_at(it), terms) &&
            bridge_server_is_in(bridge_server_at(it), shared))
            return true;
    return false;
}

struct view *bridge_enter(struct exposure *e, struct view *shared, const struct lease_terms *terms,
                          struct lease **lease)
{
    struct bridge *b = exposure_style(e)->bridge;
    bool brings = terms->variables && b->variables.n;

    if ((!brings && !has_own(b, shared, terms)) || b->stopping)
        return NULL;
    *lease = lease_new(b->leases, exposure_style(e), shared, terms);
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
        arg, shared, &(struct lease_terms){.principal = principal, .answers = answers}, &l);

    *lease = l;
    return own;
}

/* The terms of the agents of the stateless era of one owner. */
static struct lease_terms terms_of(struct principal *principal)
{
    return (struct lease_terms){.principal = principal,
                                .answers =
                                    ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL | ANSWERS_SAMPLING,
                                .stateless = true};
}

bool bridge_has_own(struct exposure *e, struct principal *principal)
{
    const struct lease_terms terms = terms_of(principal);

    return has_own(exposure_style(e)->bridge, exposure_view(e), &terms);
}

struct view *bridge_enter_owner(struct exposure *e, struct principal *principal,
                                struct lease **lease)
{
    const struct lease_terms terms = terms_of(principal);

    return bridge_enter(e, exposure_view(e), &terms, lease);
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
                             .sessions = &b->sessions,
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

struct provider *bridge_next(const struct bridge *b, const struct provider *p)
{
    const struct bridge_server *s = p ? p->entry : NULL;
    const struct list *next = s ? s->node.next : b->servers.next;

    if (p && !s)
        return NULL;
    for (; next != &b->servers; next = next->next) {
        s = CONTAINER_OF(next, const struct bridge_server, node);
        if (bridge_server_is_of_use(s))
            return bridge_server_core(s);
    }
    return NULL;
}

struct mcp_provider *bridge_mcp_provider(const struct provider *p)
{
    const struct bridge_server *s = p->entry;

    return s && bridge_server_core(s) == p ? instance_server(s->instance) : NULL;
}

bool bridge_settled(const struct bridge *b)
{
    LIST_EACH (&b->servers, it)
        if (!bridge_server_is_settled(bridge_server_at(it)))
            return false;
    return true;
}

bool bridge_is_known(const struct bridge *b)
{
    LIST_EACH (&b->servers, it)
        if ((!bridge_server_is_settled(bridge_server_at(it)) &&
             !bridge_server_core(bridge_server_at(it))->remembered) ||
            !variants_are_known(&bridge_server_at(it)->variants))
            return false;
    return true;
}
