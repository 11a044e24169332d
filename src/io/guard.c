/* The guard's process, and telling it about children. Called by cmd/conductor.c, by child.c for
 * each child, and by loop.c at the end. */
#include "io/guard.h"

#include "base/libc.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/kin.h"
#include "io/loop_uv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct guard {
    int pid; /* 0: not started */
    int fd;  /* our end of the pipe to the guard */
};

/* A mark that no child has: tells the guard to leave without killing anything. */
enum { NOBODY = 0 };
/* A process may fork just before it is killed: search again, so many times, with this pause. */
enum { LOOKS = 100, PAUSE_US = 10 * 1000 };

/* --- the guard --- */

static int read_mark(int fd, rlim_t *mark)
{
    ssize_t n;

    do
        n = read(fd, mark, sizeof *mark);
    while (n < 0 && errno == EINTR);
    return n == sizeof *mark;
}

static _Noreturn void keep_watch(int pipe_end)
{
    rlim_t *marks = NULL;
    size_t n = 0;

    setsid();
    prctl(PR_SET_NAME, KIN_GUARD_NAME);
    /* A service manager that stops us signals all our processes: the guard must outlive the
     * others. */
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, sig == SIGTERM || sig == SIGINT || sig == SIGHUP ? SIG_IGN : SIG_DFL);
    dup2(pipe_end, 0);
    close_range(1, UINT_MAX, 0);
    if (chdir("/") < 0)
        _exit(1);
    for (rlim_t mark; read_mark(0, &mark);) {
        if (mark == NOBODY)
            _exit(0);
        marks = mem_resize(marks, (n + 1) * sizeof *marks);
        marks[n++] = mark;
    }
    for (int i = 0; i < LOOKS && kin_kill_marked(marks, n); i++)
        usleep(PAUSE_US);
    _exit(0);
}

/* --- our side --- */

void guard_children(struct loop *l)
{
    if (!l->guard)
        l->guard = MEM_NEW(struct guard);
}

static void start(struct guard *g)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    g->pid = fork();
    if (g->pid == 0)
        keep_watch(ends[0]);
    close(ends[0]);
    g->fd = ends[1];
    if (g->pid > 0)
        return;
    log_warn("guard", "cannot be started: if this process is killed, its children's may live on");
    g->pid = 0;
    close(g->fd);
}

static void tell(const struct guard *g, rlim_t mark)
{
    if (g->pid && write(g->fd, &mark, sizeof mark) < 0)
        log_debug("guard", "is gone");
}

void guard_tell(struct loop *l, rlim_t mark)
{
    if (!l->guard || mark == NOBODY)
        return;
    if (!l->guard->pid)
        start(l->guard);
    tell(l->guard, mark);
}

void guard_dismiss(struct loop *l)
{
    struct guard *g = l->guard;

    if (!g)
        return;
    tell(g, NOBODY);
    if (g->pid) {
        close(g->fd);
        waitpid(g->pid, NULL, 0);
    }
    mem_free(g);
    l->guard = NULL;
}
