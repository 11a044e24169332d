#include "cmd/bridge.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/stdio_upstream.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* From closing a server's stdin to SIGTERM, and from there to SIGKILL: Ctrl-C ends within a second.
 */
enum { STOP_GRACE_MS = 400 };

/* A server as the graph has it. */
struct node {
    struct mcp_provider *provider;
    struct view *own; /* this server alone, names untouched */
    struct filter filter;
    bool lazy;
};

struct bridge {
    struct loop *loop;
    const struct config *config;
    struct router *router;
    struct view *all;
    struct node *nodes;
    size_t n;
    struct arena arena; /* argument vectors and filters that the providers borrow */
    bool awake;
    size_t stopping; /* servers that are not down yet, while stopping */
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct timer report;
};

static const char *const *argv_of(struct bridge *b, const struct config_server *s)
{
    const char **argv = ARENA_ARRAY(&b->arena, const char *, s->args.n + 2);

    argv[0] = s->command;
    for (size_t i = 0; i < s->args.n; i++)
        argv[i + 1] = s->args.items[i];
    return argv;
}

static const char *const *env_of(struct bridge *b, const struct config_server *s)
{
    const char **env = ARENA_ARRAY(&b->arena, const char *, s->env.n + 1);

    for (size_t i = 0; i < s->env.n; i++) {
        struct buf pair = {0};
        buf_printf(&pair, "%s=%s", s->env.items[i].name, s->env.items[i].value);
        env[i] = arena_span(&b->arena, buf_view(&pair)).p;
        buf_fini(&pair);
    }
    return env;
}

static const struct span *spans_of(struct bridge *b, const struct config_strings *list)
{
    struct span *spans = ARENA_ARRAY(&b->arena, struct span, list->n + 1);

    for (size_t i = 0; i < list->n; i++)
        spans[i] = span_str(list->items[i]);
    return spans;
}

static void apply_policy(struct provider *p, const struct config_server *s)
{
    p->policy.timeout = s->timeout;
    p->policy.progress_extends = s->timeout_on_progress == PROGRESS_RESET;
    p->policy.concurrency = s->concurrency;
    p->policy.queue = s->queue;
    p->policy.start_timeout = s->start_timeout;
    p->policy.restart_limit = (unsigned)s->restarts;
    p->policy.eager = s->start == START_EAGER;
}

static struct node *add_node(struct bridge *b, const struct stdio_upstream_options *options,
                             const struct filter *filter)
{
    struct node *node = &b->nodes[b->n++];

    node->provider = stdio_upstream_new(b->loop, options);
    node->filter = *filter;
    struct provider *core = mcp_provider_core(node->provider);
    router_add_provider(b->router, core);
    node->own = view_new(options->alias, NULL);
    view_add(node->own, core, &node->filter);
    router_add_view(b->router, node->own);
    view_add(b->all, core, &node->filter);
    return node;
}

static void add_server(struct bridge *b, const struct config_server *s)
{
    const struct filter filter = {spans_of(b, &s->allow), s->allow.n, spans_of(b, &s->deny),
                                  s->deny.n};
    const struct stdio_upstream_options options = {
        .alias = s->alias,
        .argv = argv_of(b, s),
        .env = env_of(b, s),
        .cwd = s->cwd,
        .max_message = b->config->limits.message,
        .stop_grace = STOP_GRACE_MS,
    };
    struct node *node = add_node(b, &options, &filter);

    apply_policy(mcp_provider_core(node->provider), s);
    node->lazy = s->start == START_LAZY;
}

/* Nothing configured: this very program has a small server to show what a bridge does. */
static void add_demo(struct bridge *b)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char **argv = ARENA_ARRAY(&b->arena, const char *, 3);
    static const char *const no_env[] = {NULL};

    if (n < 0)
        return;
    argv[0] = arena_span(&b->arena, span_of(self, (size_t)n)).p;
    argv[1] = "demo-server";
    add_node(b,
             &(struct stdio_upstream_options){.alias = "demo",
                                              .argv = argv,
                                              .env = no_env,
                                              .max_message = b->config->limits.message,
                                              .stop_grace = STOP_GRACE_MS},
             &(struct filter){0});
}

static void report_stopped(struct timer *t)
{
    struct bridge *b = CONTAINER_OF(t, struct bridge, report);

    b->stopped(b->stopped_arg);
}

static void on_stopped(void *arg, struct provider *p)
{
    struct bridge *b = arg;

    (void)p;
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
    b->all = view_new("all", bare ? NULL : c->names);
    b->nodes = MEM_ARRAY(struct node, c->servers.n + 1);
    b->report.fire = report_stopped;
    router_add_view(b->router, b->all);
    router_on_stopped(b->router, on_stopped, b);
    for (size_t i = 0; i < c->servers.n; i++)
        if (c->servers.items[i].enabled)
            add_server(b, &c->servers.items[i]);
    if (!c->file && !c->servers.n)
        add_demo(b);
    return b;
}

void bridge_free(struct bridge *b)
{
    timer_clear(loop_timers(b->loop), &b->report);
    for (size_t i = 0; i < b->n; i++) {
        router_remove_provider(b->router, mcp_provider_core(b->nodes[i].provider));
        router_remove_view(b->router, b->nodes[i].own);
        view_free(b->nodes[i].own);
        mcp_provider_free(b->nodes[i].provider);
    }
    view_free(b->all);
    router_free(b->router);
    mem_free(b->nodes);
    arena_fini(&b->arena);
    mem_free(b);
}

void bridge_start(struct bridge *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (!b->nodes[i].lazy)
            provider_want(mcp_provider_core(b->nodes[i].provider));
}

void bridge_wake(struct bridge *b)
{
    if (b->awake || b->stopping)
        return;
    b->awake = true;
    for (size_t i = 0; i < b->n; i++)
        if (b->nodes[i].lazy)
            provider_want(mcp_provider_core(b->nodes[i].provider));
}

void bridge_stop(struct bridge *b, void (*done)(void *arg), void *arg)
{
    b->stopped = done;
    b->stopped_arg = arg;
    b->stopping = b->n + 1;
    for (size_t i = 0; i < b->n; i++)
        provider_unwant(mcp_provider_core(b->nodes[i].provider));
    on_stopped(b, NULL); /* the one we counted ourselves: also right when there is no server */
}

struct router *bridge_router(const struct bridge *b)
{
    return b->router;
}

struct view *bridge_view(const struct bridge *b)
{
    return b->all;
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

struct mcp_host bridge_host(struct bridge *b, struct view *v)
{
    return (struct mcp_host){.router = b->router, .view = v, .wake = wake, .wake_arg = b};
}

struct provider *bridge_provider(const struct bridge *b, size_t n)
{
    return n < b->n ? mcp_provider_core(b->nodes[n].provider) : NULL;
}

bool bridge_settled(const struct bridge *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct provider *p = mcp_provider_core(b->nodes[i].provider);
        bool resting = p->state == PROVIDER_DOWN && b->nodes[i].lazy && !b->awake;
        if (p->state != PROVIDER_READY && !p->why[0] && !resting)
            return false;
    }
    return true;
}
