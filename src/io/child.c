/* A running child process: stderr lines, stopping, reaping, and killing the processes it left
 * behind. Called by mcp/server/stdio_upstream.c for servers, acp/component.c for components,
 * hub/rehearsal.c for a new version of this program, and inherited_child.c. */
#include "io/child.h"

#include "base/libc.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/cgroup.h"
#include "io/guard.h"
#include "io/kin.h"
#include "io/spawn.h"
#include "io/stream_uv.h"
#include "wire/json_out.h"
#include "wire/lines.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DRAIN_MS = 200,
    STDERR_LINE_MAX = 8 * 1024,
    LOOK_MS = 20,
    ORPHANS_MS = 1000, /* time for processes that a child left behind to end */
};

struct child {
    struct loop *loop;
    const struct child_events *on;
    void *owner;
    char *name;
    struct kin kin; /* in the loop's list `kin` until the child is reaped, then in `ended` */
    char *cgroup;   /* the folder of the child's control group, or NULL */
    int pidfd;
    uv_poll_t poll;    /* of the pidfd: readable when the process has ended */
    struct timer look; /* without a pidfd: when to check next whether the process has ended */
    struct stream *io, *err;
    struct lines lines;
    struct timer timer; /* of child_stop; then the limit for processes that the child left behind */
    uint64_t grace_ms;
    bool stopping, terminated, reaped;
    bool left;        /* handed over to another daemon */
    bool has_orphans; /* reaped, and as far as we know the child left processes behind */
    bool watching;    /* the process is not reaped, or the poll handle not closed */
    int status;
    char how[48];
};

/* --- the end --- */

/* `exited` comes when nothing of the child is left: process, orphans, streams, libuv handle. */
static void maybe_exited(struct child *c)
{
    if (!c->reaped || c->has_orphans || c->watching || c->io || c->err)
        return;
    timer_clear(&c->loop->timers, &c->timer);
    if (!c->left)
        c->on->exited(c->owner, c->status, c->how);
    lines_fini(&c->lines);
    mem_free(c->name);
    mem_free(c->cgroup);
    mem_free(c);
}

static void on_io_gone(void *arg)
{
    struct child *c = arg;
    c->io = NULL;
    maybe_exited(c);
}

static void on_err_gone(void *arg)
{
    struct child *c = arg;
    c->err = NULL;
    maybe_exited(c);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct child *c = handle->data;
    loop_enter(c->loop);
    close(c->pidfd);
    c->watching = false;
    maybe_exited(c);
}

static void on_orphans_gone(struct child *c)
{
    list_remove(&c->kin.node);
    timer_clear(&c->loop->timers, &c->timer);
    c->has_orphans = false;
    maybe_exited(c);
}

/* Called at SIGCHLD: orphans appear and disappear only when a process ends. While the daemon before
 * us works, its servers, which are children of ours that we do not know, look like orphans. */
static void sweep(void *arg, int signo)
{
    struct loop *l = arg;

    (void)signo;
    if (kin_sweep(&l->kin, l->shares_children ? &l->ended : NULL) > 0)
        return;
    LIST_EACH_SAFE (&l->ended, it) {
        struct child *c = LIST_ENTRY(it, struct child, kin.node);
        if (!c->cgroup || cgroup_remove(c->cgroup))
            on_orphans_gone(c);
    }
}

static void on_orphans_stay(struct timer *t)
{
    struct child *c = CONTAINER_OF(t, struct child, timer);

    log_warn(c->name, "processes that it left behind do not end");
    on_orphans_gone(c);
}

void child_watch_orphans(struct loop *l)
{
    if (loop_on_signal(l, SIGCHLD, sweep, l) < 0)
        log_debug("rialto", "orphans are not seen before a child ends");
}

void child_end_orphans(struct loop *l)
{
    sweep(l, SIGCHLD);
}

/* Processes that have left the child's group are killed as well. */
static void end_orphans(struct child *c)
{
    list_remove(&c->kin.node);
    list_append(&c->loop->ended, &c->kin.node);
    c->has_orphans = true;
    if (c->cgroup)
        cgroup_kill(c->cgroup);
    c->timer.fire = on_orphans_stay;
    timer_set(&c->loop->timers, &c->timer, ORPHANS_MS);
    sweep(c->loop, SIGCHLD);
}

static void kill_group(struct child *c, int signo)
{
    /* Once the child is reaped, its process id may belong to another process. */
    if (!c->reaped)
        kin_signal(&c->kin, signo);
}

static void describe(struct child *c, const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED) {
        c->status = info->si_status;
        snprintf(c->how, sizeof c->how, "exited with %d", c->status);
        return;
    }
    const char *name = sigabbrev_np(info->si_status);
    c->status = 128 + info->si_status;
    if (name)
        snprintf(c->how, sizeof c->how, "killed by SIG%s", name);
    else
        snprintf(c->how, sizeof c->how, "killed by signal %d", info->si_status);
}

/*
 * Has the process ended? Check first, then kill the group, and only then reap: until the process is
 * reaped, the kernel cannot reuse its id.
 */
static bool reap(struct child *c)
{
    idtype_t type = c->pidfd >= 0 ? P_PIDFD : P_PID;
    id_t id = (id_t)(c->pidfd >= 0 ? c->pidfd : c->kin.pid);
    siginfo_t info = {0};

    if (waitid(type, id, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
        c->status = 255;
        snprintf(c->how, sizeof c->how, "ended, and others took its status");
    } else if (info.si_pid == 0) {
        return false;
    } else {
        describe(c, &info);
        kill_group(c, SIGKILL);
        waitid(type, id, &info, WEXITED | WNOHANG);
    }
    c->reaped = true;
    log_debug(c->name, "process %d %s", c->kin.pid, c->how);
    if (c->io) {
        /* Read on even if the owner paused: a process that has ended left little in the pipe. */
        stream_resume(c->io);
        stream_drain(c->io, c->how, DRAIN_MS);
    }
    if (c->err)
        stream_drain(c->err, c->how, DRAIN_MS);
    end_orphans(c);
    return true;
}

static void on_ended(uv_poll_t *handle, int status, int events)
{
    struct child *c = handle->data;

    (void)status, (void)events;
    loop_enter(c->loop);
    if (reap(c))
        uv_close((uv_handle_t *)&c->poll, on_poll_closed);
}

static void on_look(struct timer *t)
{
    struct child *c = CONTAINER_OF(t, struct child, look);

    if (!reap(c)) {
        timer_set(&c->loop->timers, t, LOOK_MS);
        return;
    }
    c->watching = false;
    maybe_exited(c);
}

static void watch(struct child *c)
{
    c->watching = true;
    if (c->pidfd < 0) {
        c->look.fire = on_look;
        timer_set(&c->loop->timers, &c->look, LOOK_MS);
        return;
    }
    uv_poll_init(&c->loop->uv, &c->poll, c->pidfd);
    c->poll.data = c;
    uv_poll_start(&c->poll, UV_READABLE, on_ended);
}

/* --- stderr --- */

static void on_err_line(void *owner, struct span line)
{
    struct child *c = owner;
    log_info(c->name, SPAN_FMT, SPAN_ARG(line));
    if (c->on->stderr_line)
        c->on->stderr_line(c->owner, line);
}

static void on_err_too_long(void *owner, struct span head)
{
    struct child *c = owner;
    struct span cut = span_cut(head, 0, STDERR_LINE_MAX);
    log_info(c->name, SPAN_FMT " ... (line cut)", SPAN_ARG(cut));
    if (c->on->stderr_line)
        c->on->stderr_line(c->owner, cut);
}

static const struct lines_events err_lines = {on_err_line, on_err_too_long};

static void on_err_data(void *owner, struct span chunk)
{
    struct child *c = owner;
    if (c->on->stderr_bytes)
        c->on->stderr_bytes(c->owner, chunk);
    lines_feed(&c->lines, chunk, &err_lines, c);
}

static void on_err_closed(void *owner, const char *reason)
{
    struct child *c = owner;
    (void)reason;
    lines_end(&c->lines, &err_lines, c);
}

static const struct stream_events err_events = {.data = on_err_data, .closed = on_err_closed};

/* --- life --- */

struct child *child_spawn(struct loop *l, const struct child_spec *spec,
                          const struct child_events *on, void *owner, struct err *err)
{
    struct spawned new;

    if (spawn(&new, spec, &l->core, err) < 0)
        return NULL;
    return child_adopt(l, &new, spec->name, on, owner);
}

struct child *child_adopt(struct loop *l, const struct spawned *was, const char *name,
                          const struct child_events *on, void *owner)
{
    struct child *c = MEM_NEW(struct child);

    c->loop = l;
    c->on = on;
    c->owner = owner;
    c->name = mem_str(name);
    c->kin.pid = was->pid;
    c->kin.mark = was->mark;
    c->cgroup = was->cgroup;
    list_append(&l->kin, &c->kin.node);
    guard_tell(l, was->mark);
    child_watch_orphans(l);
    c->pidfd = was->pidfd;
    lines_init(&c->lines, STDERR_LINE_MAX);

    c->io = stream_from_fds(l, was->out, was->in, name);
    stream_on_gone(c->io, on_io_gone, c);
    c->err = stream_from_fds(l, was->err, -1, name);
    stream_on_gone(c->err, on_err_gone, c);
    stream_start(c->err, &err_events, c);

    watch(c);
    log_debug(c->name, "runs as process %d", c->kin.pid);
    return c;
}

/* --- handing over to another daemon --- */

void child_put_promise(const struct child *c, struct buf *out)
{
    json_out_number(out, "pid", (uint64_t)c->kin.pid);
    json_out_number(out, "mark", c->kin.mark);
    if (c->cgroup)
        json_out_str(out, "cgroup", c->cgroup);
}

static bool show(const struct stream *s, const struct stream_end *end, int *fd)
{
    return s && !s->closing && end->kind == END_UV && uv_fileno(&end->uv.handle, fd) == 0;
}

bool child_show_pipes(const struct child *c, int fds[3])
{
    return !c->reaped && !c->stopping && c->io && c->err && show(c->io, &c->io->back, &fds[0]) &&
           show(c->io, &c->io->in, &fds[1]) && show(c->err, &c->err->in, &fds[2]);
}

void child_leave(struct child *c)
{
    c->left = c->reaped = true;
    list_remove(&c->kin.node);
    timer_clear(&c->loop->timers, &c->timer);
    timer_clear(&c->loop->timers, &c->look);
    if (c->pidfd >= 0)
        uv_close((uv_handle_t *)&c->poll, on_poll_closed);
    else
        c->watching = false;
    stream_abandon(c->io, "left to another daemon", 0);
    stream_abandon(c->err, "left to another daemon", 0);
}

int child_pid(const struct child *c)
{
    return c->kin.pid;
}

struct stream *child_stream(struct child *c)
{
    return c->io;
}

static void on_patience_lost(struct timer *t)
{
    struct child *c = CONTAINER_OF(t, struct child, timer);

    if (c->terminated) {
        log_warn(c->name, "process %d ignores SIGTERM: killing it", c->kin.pid);
        kill_group(c, SIGKILL);
        return;
    }
    c->terminated = true;
    kill_group(c, SIGTERM);
    timer_set(&c->loop->timers, t, c->grace_ms);
}

void child_stop(struct child *c, uint64_t grace_ms)
{
    if (c->stopping || c->reaped)
        return;
    c->stopping = true;
    c->grace_ms = grace_ms;
    if (c->io)
        stream_shutdown(c->io);
    c->timer.fire = on_patience_lost;
    timer_set(loop_timers(c->loop), &c->timer, grace_ms);
}

bool child_signalled(const struct child *c)
{
    return c->terminated;
}
