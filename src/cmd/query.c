/* Starts a bridge, calls the command back when the servers are up or have failed, and stops the
 * bridge again. Called by call.c, listing.c and doctor/start.c. */
#include "cmd/query.h"

#include "base/log.h"

#include <signal.h>

static void tell_settled(struct query_run *a)
{
    timer_clear(loop_timers(a->loop), &a->deadline);
    a->told = true;
    a->settled(a);
}

static void on_servers(struct observer *o)
{
    struct query_run *a = CONTAINER_OF(o, struct query_run, servers);

    if (!a->told && bridge_settled(a->bridge))
        tell_settled(a);
}

static void on_deadline(struct timer *t)
{
    tell_settled(CONTAINER_OF(t, struct query_run, deadline));
}

void query_again(struct query_run *a, uint64_t ms)
{
    a->told = false;
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
    observer_remove(&a->servers);
    bridge_stop(a->bridge, on_stopped, a);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    query_finish(arg, CMD_FAILED);
}

int query_run(const struct config *config, bool verbose, void (*settled)(struct query_run *a),
              void *arg)
{
    struct query_run a = {.loop = loop_new(), .config = config, .arg = arg, .settled = settled};

    if (!verbose && !log_enabled(LOG_DEBUG))
        log_set_level(LOG_ERROR);
    a.bridge = bridge_new(a.loop, config);
    a.servers.changed = on_servers;
    a.deadline.fire = on_deadline;
    if (loop_on_signal(a.loop, SIGINT, on_signal, &a) < 0 ||
        loop_on_signal(a.loop, SIGTERM, on_signal, &a) < 0)
        log_warn("rialto", "cannot handle signals");
    bridge_start(a.bridge);
    bridge_wake(a.bridge);
    observers_add(router_observers(bridge_router(a.bridge)), &a.servers);
    loop_run(a.loop);
    bridge_free(a.bridge);
    loop_free(a.loop);
    return a.code;
}

bool query_report_failures(const struct command *self, const struct query_run *a)
{
    bool any = false;

    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        if (p->state == PROVIDER_READY)
            continue;
        struct buf why = {0};
        log_redact(&why, span_str(p->why));
        cmd_error(self, "server '%s' is not available: %s", p->alias, buf_cstr(&why));
        buf_fini(&why);
        any = true;
    }
    return any;
}
