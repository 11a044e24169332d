/* Starts a bridge, calls the command back when the servers are up or have failed, and stops the
 * bridge again. Called by call.c, candidates.c, inspect.c, listing.c, lock.c, sandbox.c, tools.c
 * and doctor/start.c. */
#include "cmd/query.h"

#include "base/log.h"
#include "base/mem.h"

#include <signal.h>

static void tell_settled(struct query_run *a)
{
    timer_clear(loop_timers(a->loop), &a->deadline);
    progress_line_stop(a->progress);
    a->told = true;
    a->settled(a);
}

static bool is_settled(const struct provider *p)
{
    return p->state == PROVIDER_READY || p->why;
}

/* The name of the program if it may have to download the server first, as npx does; else NULL. */
static const char *installer_of(const struct config_server *s)
{
    static const char *const names[] = {"npx", "uvx", "pipx", "bunx", "docker", "podman"};
    const char *slash = s && s->command ? strrchr(s->command, '/') : NULL;
    const char *name = slash ? slash + 1 : s ? s->command : NULL;

    for (size_t i = 0; name && i < COUNT_OF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return names[i];
    return NULL;
}

/* "starting files (npx may be installing it), search". False: nothing is being started. */
static bool tell_starting(struct query_run *a)
{
    BUF_SCOPED text = {0};

    for (size_t i = 0; i < a->n_wanted; i++) {
        const struct provider *p = a->wanted[i];
        const char *installer = installer_of(config_server(a->config, p->alias));
        if (is_settled(p))
            continue;
        buf_printf(&text, "%s%s", text.n ? ", " : "starting ", p->alias);
        if (installer)
            buf_printf(&text, " (%s may be installing it)", installer);
    }
    if (text.n)
        progress_line_say(a->progress, buf_view(&text));
    return text.n > 0;
}

static void on_servers(struct observer *o)
{
    struct query_run *a = CONTAINER_OF(o, struct query_run, servers);

    if (a->told)
        return;
    bool starting = tell_starting(a);
    if (a->how->wants ? !starting : bridge_settled(a->bridge))
        tell_settled(a);
}

static void on_deadline(struct timer *t)
{
    tell_settled(CONTAINER_OF(t, struct query_run, deadline));
}

void query_again(struct query_run *a, uint64_t ms)
{
    a->told = false;
    (void)tell_starting(a);
    timer_set(loop_timers(a->loop), &a->deadline, ms);
}

static void on_stopped(void *arg)
{
    struct query_run *a = arg;

    loop_stop(a->loop);
}

void query_finish(struct query_run *a, int code)
{
    if (a->finished)
        return;
    a->finished = true;
    a->code = code;
    timer_clear(loop_timers(a->loop), &a->deadline);
    progress_line_stop(a->progress);
    observer_remove(&a->servers);
    bridge_stop(a->bridge, on_stopped, a);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    query_finish(arg, CMD_FAILED);
}

/* Starts the servers that the command wants. Without `wants` it starts all as for agents, lazy ones
 * too. */
static void start_wanted(struct query_run *a)
{
    for (struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        if (a->how->wants && !a->how->wants(a, p))
            continue;
        a->wanted = mem_resize(a->wanted, (a->n_wanted + 1) * sizeof(struct provider *));
        a->wanted[a->n_wanted++] = p;
    }
    if (!a->how->wants) {
        bridge_start(a->bridge);
        bridge_wake(a->bridge);
    }
    for (size_t i = 0; a->how->wants && i < a->n_wanted; i++)
        provider_want(a->wanted[i]);
}

int query_run(const struct config *config, const struct query_how *how,
              void (*settled)(struct query_run *a), void *arg)
{
    struct query_run a = {
        .loop = loop_new(), .config = config, .how = how, .arg = arg, .settled = settled};

    if (!how->verbose && !log_enabled(LOG_DEBUG))
        log_set_level(LOG_ERROR);
    a.bridge = bridge_new(a.loop, config);
    a.progress = progress_line_new(a.loop, how->quiet);
    a.servers.changed = on_servers;
    a.deadline.fire = on_deadline;
    if (loop_on_signal(a.loop, SIGINT, on_signal, &a) < 0 ||
        loop_on_signal(a.loop, SIGTERM, on_signal, &a) < 0)
        log_warn("rialto", "cannot handle signals");
    start_wanted(&a);
    observers_add(router_observers(bridge_router(a.bridge)), &a.servers);
    loop_run(a.loop);
    progress_line_free(a.progress);
    mem_free(a.wanted);
    bridge_free(a.bridge);
    loop_free(a.loop);
    return a.code;
}

/* --- names --- */

/* Can the pattern for names have made `name` for a tool of this server? */
static bool may_be_of(const char *pattern, const char *alias, struct span name)
{
    BUF_SCOPED head = {0};

    for (const char *p = pattern; *p && strncmp(p, "{tool}", 6) != 0;) {
        bool server = strncmp(p, "{server}", 8) == 0;
        if (server)
            buf_str(&head, alias);
        else
            buf_char(&head, *p);
        p += server ? 8 : 1;
    }
    return strcmp(pattern, "bare") == 0 || span_starts(name, buf_view(&head));
}

bool query_may_have(const struct query_run *a, const struct provider *p, struct span name)
{
    const struct target *t = view_find(bridge_full_view(a->bridge), ITEM_TOOL, name);
    bool any = false;

    if (t)
        return strcmp(t->provider->alias, p->alias) == 0;
    for (const struct provider *other = NULL; (other = bridge_next(a->bridge, other));)
        any |= may_be_of(a->config->names, other->alias, name);
    return !any || may_be_of(a->config->names, p->alias, name);
}

/* --- the end --- */

bool query_report_failures(const struct command *self, const struct query_run *a)
{
    bool any = false;

    for (size_t i = 0; i < a->n_wanted; i++) {
        const struct provider *p = a->wanted[i];
        if (p->state == PROVIDER_READY)
            continue;
        BUF_SCOPED why = {0};
        log_redact(&why, span_str(p->why));
        cmd_error(self, "server '%s' is not available: %s", p->alias, buf_cstr(&why));
        any = true;
    }
    return any;
}
