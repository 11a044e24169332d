#include "cmd/ask.h"

#include "base/log.h"

#include <signal.h>

enum { POLL_MS = 2 };

static void on_poll(struct timer *t)
{
    struct ask_run *a = CONTAINER_OF(t, struct ask_run, poll);

    if (bridge_settled(a->bridge))
        a->settled(a);
    else
        timer_set(loop_timers(a->loop), &a->poll, POLL_MS);
}

static void on_stopped(void *arg)
{
    struct ask_run *a = arg;

    loop_stop(a->loop);
}

void ask_finish(struct ask_run *a, int code)
{
    if (a->finished)
        return;
    a->finished = true;
    a->code = code;
    timer_clear(loop_timers(a->loop), &a->poll);
    bridge_stop(a->bridge, on_stopped, a);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    ask_finish(arg, CMD_FAILED);
}

int ask_run(const struct config *config, bool verbose, void (*settled)(struct ask_run *a),
            void *arg)
{
    struct ask_run a = {.loop = loop_new(), .config = config, .arg = arg, .settled = settled};

    if (!verbose && !log_enabled(LOG_DEBUG))
        log_set_level(LOG_ERROR);
    a.bridge = bridge_new(a.loop, config);
    a.poll.fire = on_poll;
    if (loop_on_signal(a.loop, SIGINT, on_signal, &a) < 0 ||
        loop_on_signal(a.loop, SIGTERM, on_signal, &a) < 0)
        log_warn("rialto", "cannot handle signals");
    bridge_start(a.bridge);
    bridge_wake(a.bridge);
    timer_set(loop_timers(a.loop), &a.poll, 0);
    loop_run(a.loop);
    bridge_free(a.bridge);
    loop_free(a.loop);
    return a.code;
}

bool ask_report_failures(const struct command *self, const struct ask_run *a)
{
    const struct provider *p;
    bool any = false;

    for (size_t i = 0; (p = bridge_provider(a->bridge, i)); i++) {
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
