/* Starts programs of the user and waits for their end. Called by open_page.c, by browser.c when it
 * closes, and by cmd/login.c. */
#include "browser/launch.h"

#include "base/libc.h"
#include "base/mem.h"
#include "io/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILS_WITHIN_MS = 2000 };

struct launch {
    struct list node;
    struct loop *loop;
    pid_t pid;
    struct poll *poll; /* on a pidfd, which is readable when the process has ended */
    struct timer timer;
    launch_told_fn *told; /* NULL once called */
    void *owner;
};

static void tell(struct launch *l, int code)
{
    launch_told_fn *told = l->told;

    timer_clear(loop_timers(l->loop), &l->timer);
    l->told = NULL;
    if (told)
        told(l->owner, code);
}

static void launch_free(struct launch *l, int code)
{
    list_remove(&l->node);
    poll_close(l->poll);
    tell(l, code);
    mem_free(l);
}

static void on_ended(void *owner)
{
    struct launch *l = owner;
    int status = 0;

    if (waitpid(l->pid, &status, WNOHANG) == 0)
        return;
    launch_free(l, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void on_runs(struct timer *t)
{
    tell(CONTAINER_OF(t, struct launch, timer), LAUNCH_RUNS);
}

/* The program must not inherit our signal settings, nor our stdout, which may carry a protocol. */
static int spawn(pid_t *pid, const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
    int code = posix_spawnp(pid, argv[0], &actions, &attr, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return code;
}

int launch_start(struct loop *l, struct list *in, const char *const *argv, launch_told_fn *told,
                 void *owner, struct err *err)
{
    pid_t pid;
    int code = spawn(&pid, argv);

    if (code)
        return err_set(err, -code, "cannot start %s: %s", argv[0], strerror(code));
    int fd = pidfd_open(pid, 0);
    if (fd < 0) { /* as with too many open files: nothing could tell us when to reap it */
        code = err_set(err, -errno, "cannot watch %s: %s", argv[0], strerror(errno));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return code;
    }
    struct launch *launch = MEM_NEW(struct launch);
    launch->loop = l;
    launch->pid = pid;
    launch->poll = poll_new(l, fd, on_ended, launch);
    launch->timer.fire = on_runs;
    launch->told = told;
    launch->owner = owner;
    list_append(in, &launch->node);
    timer_set(loop_timers(l), &launch->timer, FAILS_WITHIN_MS);
    return 0;
}

void launch_forget_all(struct list *in)
{
    LIST_EACH_SAFE (in, it)
        launch_free(LIST_ENTRY(it, struct launch, node), LAUNCH_FORGOTTEN);
}
