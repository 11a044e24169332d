/* Creating, counting, stopping and freeing the running copies of servers; also the limit on
 * processes and saving catalogs. Called by bridge.c, lease.c and variant.c. */
#include "hub/graph/instance.h"

#include "base/mem.h"
#include "core/principal.h"
#include "hub/graph/memory.h"
#include "hub/signin/signin_tool.h"

#include <stdio.h>

/* What agents that share an instance may be asked. */
enum {
    ANSWERS_OF_SHARED = ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL | ANSWERS_SAMPLING | ANSWERS_ROOTS
};
enum { SAVE_MS = 1000, SECOND_IDLE_MS = 30 * 60 * 1000 };

struct instance {
    struct list node; /* in one of the lists of struct instances */
    struct instances *all;
    struct mcp_provider *provider;
    struct server_plan *plan;
    struct provider_room room;   /* used by instances beside the shared one */
    struct principal *principal; /* of the only session that it serves, held; or NULL */
    struct identity *identity;   /* who we are at the server, held; NULL: nobody signs in there */
    struct signin_tool *signin_tool; /* where people sign in; NULL: nobody does */
    char full[160];              /* the reason that callers get when the principal has no room */
    void (*on_lists)(void *arg); /* may be NULL */
    void *lists_arg;
    struct timer patience; /* how long the last calls may take */
    bool unsaved;          /* the catalog or a trait has changed since it was saved */
    bool second;           /* see instance_second */
};

struct instances {
    struct loop *loop;
    struct router *router;
    void (*emptied)(void *arg);
    void *arg;
    struct list held;     /* in use */
    struct list draining; /* let go, with calls in flight */
    struct list stopping;
    struct list down;
    size_t n; /* instances that are not down */
    size_t max_processes;
    char full[160];        /* the reason that callers get when there are max_processes */
    struct lock *lock;     /* the bridge's */
    struct signin *signin; /* the bridge's */
    struct observer calls; /* watches the calls of draining instances */
    struct timer sweep;    /* frees the instances in `down`, from the loop */
    struct timer save;     /* saves catalogs */
};

static void free_instance(struct instance *i)
{
    struct router *router = i->all->router;
    struct provider *core = mcp_provider_core(i->provider);

    list_remove(&i->node);
    if (i->signin_tool)
        signin_tool_free(i->signin_tool);
    router_remove_provider(router, core);
    struct provider *heir = router_provider(router, span_str(core->alias));
    if (heir)
        stats_add(&heir->stats, &core->stats); /* counters must never go down */
    mcp_provider_free(i->provider);
    if (i->identity)
        identity_drop(i->identity);
    server_plan_drop(i->plan);
    principal_release(i->principal);
    mem_free(i);
}

static void on_sweep(struct timer *t)
{
    struct instances *is = CONTAINER_OF(t, struct instances, sweep);

    LIST_EACH_SAFE (&is->down, it)
        free_instance(LIST_ENTRY(it, struct instance, node));
    if (!is->n)
        is->emptied(is->arg);
}

/* --- saving catalogs for the next start --- */

static void save(struct instance *i)
{
    const struct catalog *known = mcp_provider_core(i->provider)->catalog;

    if (i->unsaved && known)
        memory_keep(server_memory(i->plan), known, server_traits(i->plan));
    i->unsaved = false;
}

static void on_save(struct timer *t)
{
    struct instances *is = CONTAINER_OF(t, struct instances, save);

    LIST_EACH (&is->held, it)
        save(LIST_ENTRY(it, struct instance, node));
}

static void save_soon(struct instance *i)
{
    if (!server_memory(i->plan))
        return;
    i->unsaved = true;
    /* A list that changes all the time is not written each time. */
    if (!timer_is_set(&i->all->save))
        timer_set(loop_timers(i->all->loop), &i->all->save, SAVE_MS);
}

static void on_lists(void *arg)
{
    struct instance *i = arg;

    if (i->on_lists)
        i->on_lists(i->lists_arg);
    if (!i->second)
        save_soon(i);
}

void instance_note(struct instance *i, unsigned trait, bool has)
{
    unsigned before = server_traits(i->plan);

    server_set_traits(i->plan, has ? before | trait : before & ~trait);
    if (server_traits(i->plan) != before)
        save_soon(i);
}

static void remember(struct instance *i)
{
    const char *path = server_memory(i->plan);
    unsigned traits = 0;
    struct catalog *known = path ? memory_recall(path, &traits) : NULL;

    if (known)
        provider_recall(mcp_provider_core(i->provider), known);
    server_set_traits(i->plan, server_traits(i->plan) | traits);
    mcp_provider_on_lists(i->provider, on_lists, i);
}

/* --- the limit on processes --- */

static bool has_process(const struct instance *i)
{
    enum provider_state state = mcp_provider_core(i->provider)->state;

    return server_program(i->plan) && state != PROVIDER_DOWN && state != PROVIDER_BACKOFF;
}

/* Of the instances that a call starts again (only this principal's, unless NULL), the one that has
 * been idle for longest; NULL when none is idle. */
static struct provider *find_idle(const struct instances *is, const struct principal *of)
{
    struct provider *found = NULL;

    LIST_EACH (&is->held, it) {
        const struct instance *i = LIST_ENTRY(it, struct instance, node);
        struct provider *p = mcp_provider_core(i->provider);
        bool idle = (!of || i->principal == of) && p->room && has_process(i) &&
                    p->state == PROVIDER_READY && !provider_in_use(p);
        if (idle && (!found || p->used_at < found->used_at))
            found = p;
    }
    return found;
}

/* How many processes there are (for this principal, unless NULL), and whether one is about to end.
 */
static size_t count_processes(const struct instances *is, const struct principal *of, bool *soon)
{
    const struct list *const lists[] = {&is->held, &is->draining, &is->stopping};
    size_t n = 0;

    for (size_t k = 0; k < COUNT_OF(lists); k++) {
        LIST_EACH (lists[k], it) {
            const struct instance *i = LIST_ENTRY(it, struct instance, node);
            bool counts = has_process(i) && (!of || i->principal == of);
            n += counts;
            *soon |= counts && mcp_provider_core(i->provider)->state == PROVIDER_STOPPING;
        }
    }
    return n;
}

static const char *ask_for_room(struct provider_room *room, bool *soon)
{
    struct instance *asks = CONTAINER_OF(room, struct instance, room);
    struct instances *is = asks->all;
    const struct principal *of = asks->principal;
    bool limited = of && of->limits.processes;

    if (limited && count_processes(is, of, soon) >= of->limits.processes) {
        snprintf(asks->full, sizeof asks->full,
                 "all %llu processes that the token '%.64s' may have are at work. Try again later",
                 (unsigned long long)of->limits.processes, of->name);
    } else if (count_processes(is, NULL, soon) < is->max_processes) {
        return NULL;
    } else {
        limited = false;
    }
    struct provider *idle = *soon ? NULL : find_idle(is, limited ? of : NULL);
    *soon |= idle && provider_rest(idle);
    return limited ? asks->full : is->full;
}

/* --- instances beside the shared one --- */

/* The plan's policy, but calls start the instance, and it may rest in between. */
static struct policy policy_of(const struct instance *i)
{
    struct policy policy = *server_policy(i->plan);

    policy.eager = false;
    if (i->second && !policy.idle_stop && server_program(i->plan))
        policy.idle_stop = SECOND_IDLE_MS;
    return policy;
}

static void set_aside(struct instance *i, enum mcp_era era)
{
    struct provider *core = mcp_provider_core(i->provider);

    i->room.ask = ask_for_room;
    core->policy = policy_of(i);
    if (server_program(i->plan))
        core->room = &i->room;
    if (server_era(i->plan) == MCP_ERA_AUTO)
        mcp_provider_set_era(i->provider, era);
}

void instance_own(struct instance *i, struct principal *principal, bool stateless)
{
    i->principal = principal_hold(principal);
    set_aside(i, stateless ? MCP_ERA_AUTO : MCP_ERA_LEGACY_FIRST);
}

void instance_share(struct instance *i)
{
    set_aside(i, MCP_ERA_LEGACY_FIRST);
    mcp_provider_set_answers(i->provider, ANSWERS_OF_SHARED);
}

void instance_second(struct instance *i, const struct instance *first)
{
    i->second = true;
    set_aside(i, MCP_ERA_LEGACY);
    /* A directly connected agent would declare what it can be asked, so we declare that here. Roots
     * as well: a server that asks without a call is not shared any longer (core/doubts.h). */
    mcp_provider_set_answers(i->provider, ANSWERS_OF_SHARED);
    mcp_provider_core(i->provider)->stand_in = mcp_provider_core(first->provider);
}

static struct catalog *copy_of(const struct catalog *known)
{
    struct catalog *copy = catalog_new();

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        catalog_copy_kind(copy, known, (enum item_kind)kind);
    catalog_set_instructions(copy, known->instructions);
    catalog_set_declares(copy, known->declares);
    copy->offers = known->offers;
    return copy;
}

void instance_learn(struct instance *i, const struct catalog *known)
{
    struct provider *core = mcp_provider_core(i->provider);

    if (!known || core->stats.starts)
        return;
    core->tells_later = true;
    provider_publish(core, copy_of(known));
    core->tells_later = false;
}

/* --- letting go --- */

static void stop(struct instance *i)
{
    timer_clear(loop_timers(i->all->loop), &i->patience);
    list_remove(&i->node);
    list_append(&i->all->stopping, &i->node);
    provider_unwant(mcp_provider_core(i->provider)); /* may go down inside this call */
}

static void on_calls(struct observer *o)
{
    struct instances *is = CONTAINER_OF(o, struct instances, calls);

    LIST_EACH_SAFE (&is->draining, it) {
        struct instance *i = LIST_ENTRY(it, struct instance, node);
        if (!provider_has_calls(mcp_provider_core(i->provider)))
            stop(i);
    }
    if (list_empty(&is->draining))
        observer_remove(o);
}

static void on_patience(struct timer *t)
{
    stop(CONTAINER_OF(t, struct instance, patience));
}

struct instances *instances_new(struct loop *loop, struct router *router, struct lock *lock,
                                struct signin *signin, size_t max_processes,
                                void (*emptied)(void *arg), void *arg)
{
    struct instances *is = MEM_NEW(struct instances);

    is->loop = loop;
    is->router = router;
    is->lock = lock;
    is->signin = signin;
    is->emptied = emptied;
    is->arg = arg;
    is->max_processes = max_processes;
    snprintf(is->full, sizeof is->full,
             "all %zu processes that limits.processes allows are at work. Try again later",
             max_processes);
    is->calls.changed = on_calls;
    is->sweep.fire = on_sweep;
    is->save.fire = on_save;
    list_init(&is->held);
    list_init(&is->draining);
    list_init(&is->stopping);
    list_init(&is->down);
    return is;
}

void instances_free(struct instances *is)
{
    observer_remove(&is->calls);
    timer_clear(loop_timers(is->loop), &is->sweep);
    timer_clear(loop_timers(is->loop), &is->save);
    LIST_EACH_SAFE (&is->down, it)
        free_instance(LIST_ENTRY(it, struct instance, node));
    LIST_EACH_SAFE (&is->held, it)
        free_instance(LIST_ENTRY(it, struct instance, node)); /* the bridge was never started */
    mem_free(is);
}

size_t instances_count(const struct instances *is)
{
    return is->n;
}

bool instances_have(const struct instances *is, const struct provider *p)
{
    const struct list *const lists[] = {&is->held, &is->draining, &is->stopping, &is->down};

    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (const struct list *it = lists[i]->next; it != lists[i]; it = it->next)
            if (mcp_provider_core(CONTAINER_OF(it, const struct instance, node)->provider) == p)
                return true;
    return false;
}

static void judge(const struct instance *i)
{
    struct lock *lock = i->all->lock;

    mcp_provider_set_judge(i->provider, lock_in_force(lock) ? lock_admits : NULL, lock);
}

void instances_judge(struct instances *is)
{
    LIST_EACH (&is->held, it) {
        const struct instance *i = LIST_ENTRY(it, struct instance, node);
        judge(i);
        mcp_provider_relist(i->provider);
    }
}

void instances_hurry(struct instances *is)
{
    for (struct instance *first; (first = LIST_FIRST(&is->draining, struct instance, node));)
        stop(first);
}

void instances_adjust(struct instances *is, struct server_plan *plan, struct server_plan *newer)
{
    server_plan_adjust(plan, newer);
    LIST_EACH (&is->held, it) {
        const struct instance *i = LIST_ENTRY(it, struct instance, node);
        struct provider *core = mcp_provider_core(i->provider);
        if (i->plan != plan)
            continue;
        struct policy aside = policy_of(i);
        provider_adjust(core, i->room.ask ? &aside : server_policy(plan));
    }
}

void instances_show(struct instances *is, void (*show)(void *arg, struct mcp_provider *p),
                    void *arg)
{
    struct list *const lists[] = {&is->held, &is->draining};

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        LIST_EACH_SAFE (lists[i], it) {
            struct mcp_provider *p = LIST_ENTRY(it, struct instance, node)->provider;
            if (mcp_provider_key(p))
                show(arg, p);
        }
    }
}

void instances_stopped(struct instances *is, const struct provider *p)
{
    LIST_EACH (&is->stopping, it) {
        struct instance *i = LIST_ENTRY(it, struct instance, node);
        if (mcp_provider_core(i->provider) != p)
            continue;
        /* The provider is still inside its own stopping: free it from the loop. */
        list_remove(&i->node);
        list_append(&is->down, &i->node);
        is->n--;
        timer_set(loop_timers(is->loop), &is->sweep, 0);
        return;
    }
}

struct instance *instance_new(struct instances *is, struct server_plan *plan,
                              struct principal *principal)
{
    struct instance *i = MEM_NEW(struct instance);

    i->all = is;
    i->patience.fire = on_patience;
    i->plan = server_plan_hold(plan);
    if (server_signin(plan))
        i->identity = identity_hold(is->signin, plan, principal);
    i->provider = server_start(is->loop, plan, i->identity ? identity_signer(i->identity) : NULL);
    mcp_provider_core(i->provider)->refuses = server_lacks(plan);
    mcp_provider_core(i->provider)->tokenless_only = server_is_per_user(plan) && !principal;
    judge(i);
    list_append(&is->held, &i->node);
    is->n++;
    router_add_provider(is->router, mcp_provider_core(i->provider));
    if (i->identity && identity_wants_person(i->identity))
        i->signin_tool = signin_tool_new(is->router, mcp_provider_core(i->provider), i->identity);
    remember(i);
    return i;
}

struct provider *instance_provider(const struct instance *i)
{
    return mcp_provider_core(i->provider);
}

struct mcp_provider *instance_server(const struct instance *i)
{
    return i->provider;
}

const struct server_plan *instance_plan(const struct instance *i)
{
    return i->plan;
}

void instance_on_lists(struct instance *i, void (*fn)(void *arg), void *arg)
{
    i->on_lists = fn;
    i->lists_arg = arg;
}

void instance_let_go(struct instance *i, uint64_t patience)
{
    struct instances *is = i->all;
    struct provider *core = mcp_provider_core(i->provider);

    save(i);
    mcp_provider_on_lists(i->provider, NULL, NULL);
    core->stand_in = NULL; /* the stand-in may be freed first */
    /* Out of the views first: a late call must not start an instance that is being stopped. */
    router_withdraw_provider(is->router, core);
    if (!patience || !provider_has_calls(core)) {
        stop(i);
        return;
    }
    core->draining = true;
    list_remove(&i->node);
    list_append(&is->draining, &i->node);
    timer_set(loop_timers(is->loop), &i->patience, patience);
    observers_add(router_observers(is->router), &is->calls);
}
