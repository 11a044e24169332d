/* Starting a program: its environment, the search in PATH, pipes, vfork and exec. Called by
 * child.c, and by program.c and cmd/doctor/ to find which file would be run. */
#include "io/spawn.h"

#include "base/libc.h"
#include "base/mem.h"
#include "io/cage.h"
#include "io/cgroup.h"
#include "io/kin.h"
#include "io/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

/* A NULL-terminated array that owns its strings. */
struct strings {
    char **p;
    size_t n;
};

static void strings_add(struct strings *list, struct span s)
{
    list->p = mem_resize(list->p, (list->n + 2) * sizeof(char *));
    list->p[list->n++] = mem_span(s);
    list->p[list->n] = NULL;
}

static void strings_fini(struct strings *list)
{
    for (size_t i = 0; i < list->n; i++)
        mem_free(list->p[i]);
    mem_free(list->p);
}

/* --- environment --- */

static struct span env_key(const char *entry)
{
    return span_cut(span_str(entry), 0, span_find(span_str(entry), '='));
}

/* Variables that programs need to run, and that cannot hold a secret of ours. */
static bool is_safe(struct span key)
{
    static const char *const safe[] = {"PATH",    "HOME",  "LANG",   "LC_*", "TERM", "USER",
                                       "LOGNAME", "SHELL", "TMPDIR", "TZ",   "XDG_*"};
    for (size_t i = 0; i < COUNT_OF(safe); i++)
        if (span_glob(span_str(safe[i]), key))
            return true;
    return false;
}

static bool has_key(const char *const *env, struct span key)
{
    for (; env && *env; env++)
        if (span_eq(env_key(*env), key))
            return true;
    return false;
}

static struct strings make_env(const struct child_spec *spec)
{
    struct strings env = {0};

    for (char **at = environ; at && *at; at++) {
        struct span key = env_key(*at);
        if ((spec->inherit_env || is_safe(key)) && !has_key(spec->env, key))
            strings_add(&env, span_str(*at));
    }
    for (const char *const *at = spec->env; at && *at; at++)
        strings_add(&env, span_str(*at));
    if (!env.p)
        env.p = MEM_ARRAY(char *, 1);
    return env;
}

static const char *find_path(const struct strings *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (span_starts(span_str(env->p[i]), SPAN("PATH=")))
            return env->p[i] + strlen("PATH=");
    return default_path;
}

/* The files that argv[0] may mean, in order. A name with a slash means itself. */
static struct strings make_candidates(const char *program, const char *path)
{
    struct strings files = {0};

    if (strchr(program, '/')) {
        strings_add(&files, span_str(program));
        return files;
    }
    for (const char *at = path; at;) {
        const char *colon = strchr(at, ':');
        struct span folder = {at, colon ? (size_t)(colon - at) : strlen(at)};
        BUF_SCOPED file = {0};
        buf_span(&file, folder.n ? folder : SPAN("."));
        buf_char(&file, '/');
        buf_str(&file, program);
        strings_add(&files, buf_view(&file));
        at = colon ? colon + 1 : NULL;
    }
    return files;
}

char *spawn_path(const struct child_spec *spec)
{
    struct strings env = make_env(spec);
    char *path = mem_str(find_path(&env));

    strings_fini(&env);
    return path;
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int spawn_find(const struct child_spec *spec, const char *program, struct buf *file)
{
    char *path = spawn_path(spec);
    struct strings files = make_candidates(program, path);
    int code = -ENOENT;

    for (size_t i = 0; i < files.n && code; i++) {
        BUF_SCOPED seen = {0};
        if (spec->cwd && files.p[i][0] != '/')
            buf_printf(&seen, "%s/", spec->cwd);
        buf_str(&seen, files.p[i]);
        bool there = is_file(buf_cstr(&seen)), fine = there && access(seen.p, X_OK) == 0;
        if (fine || (there && code == -ENOENT)) {
            code = fine ? 0 : -EACCES;
            file->n = 0;
            buf_span(file, buf_view(&seen));
        }
    }
    strings_fini(&files);
    mem_free(path);
    return code;
}

/* --- the new process --- */

enum { PIPE_BYTES = 256 * 1024 };

/* What the new process needs, prepared before vfork, and its error when exec failed. */
struct spawn_plan {
    char *const *files;
    char *const *argv;
    char *const *env;
    const char *cwd;
    int stdio[3]; /* the child's ends of the pipes; loop_new made sure that all are above 2 */
    int parent;
    rlim_t mark;
    int cgroup; /* the open cgroup.procs of the child's control group, or -1 */
    const struct rlimit *core;
    struct cage *cage; /* NULL = none */
    const char *level; /* of the cage */
    volatile int chdir_errno, exec_errno;
    const char *volatile cage_step; /* the step that failed; why is in exec_errno */
};

/*
 * A process group of its own, so that a server can be killed with all it started, and no terminal:
 * Ctrl-C is not meant for a server, and a server that asks for a password must get an error, rather
 * than be stopped in the background. A session of its own has the same effect, but the kernel also
 * makes a scheduling group of each session (autogroup), and on a busy machine every message then
 * waits for the turn of a whole group. So setsid is used only when the terminal cannot be given up.
 */
static void leave_terminal(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    if (terminal < 0 ? errno == ENXIO : ioctl(terminal, TIOCNOTTY) == 0)
        setpgid(0, 0);
    else
        setsid();
}

/*
 * The child between vfork and exec. It runs in the parent's memory while the parent stands still:
 * it makes system calls, writes nothing but `plan`'s error fields, and never returns.
 */
static _Noreturn void become(struct spawn_plan *plan)
{
    sigset_t none;
    int why = ENOENT;

    leave_terminal();
    /* If the parent died before prctl took effect, no signal would come any more. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != plan->parent)
        _exit(127);
    /*
     * All signals are blocked here (see fork_and_exec), so no handler of ours can run. The system
     * call is made directly: glibc reserves two signals and refuses to set them, and some programs
     * (GNU make) start us with those two ignored.
     */
    static const unsigned long to_default[4]; /* the kernel's sigaction */
    for (int sig = 1; sig < NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, to_default, NULL, sizeof to_default[0]);
    for (int fd = 0; fd < 3; fd++)
        dup2(plan->stdio[fd], fd);
    cgroup_join(plan->cgroup);
    close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    setrlimit(RLIMIT_CORE, plan->core);
    kin_brand(plan->mark);
    if (plan->cwd && chdir(plan->cwd) < 0) {
        plan->chdir_errno = errno;
        _exit(127);
    }
    if (plan->cage && (plan->cage_step = cage_enter(plan->cage))) {
        plan->exec_errno = errno;
        _exit(127);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (char *const *file = plan->files; *file; file++) {
        execve(*file, plan->argv, plan->env);
        /* EACCES of a file that exists says more than ENOENT of the folders after it. */
        if (why != EACCES)
            why = errno;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    plan->exec_errno = why;
    _exit(127);
}

/*
 * vfork, because fork copies the page tables of a large parent (milliseconds in which the loop
 * stands still) and posix_spawn cannot set PR_SET_PDEATHSIG: docs/decisions/002-vfork.md. Kept
 * apart and not inlined, so that no variable of a caller lives in the stack frame that both
 * processes share.
 */
static __attribute__((noinline)) int fork_and_exec(struct spawn_plan *plan)
{
    sigset_t all, before;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int pid = vfork();
    if (pid == 0)
        become(plan);
    int code = pid < 0 ? -errno : pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* --- putting it together --- */

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int explain(const struct spawn_plan *plan, const char *path, struct err *err)
{
    const char *program = plan->argv[0];
    int code;

    if (plan->chdir_errno) {
        code = -plan->chdir_errno;
        err_set(err, code, "cannot start %s: folder %s: %s", program, plan->cwd, err_name(code));
        err_hint(err, "check `cwd`");
        return code;
    }
    code = -plan->exec_errno;
    if (plan->cage_step) {
        err_set(err, code, "cannot start %s: its sandbox (%s) cannot be made: %s: %s", program,
                plan->level, plan->cage_step, err_name(code));
        return code;
    }
    if (plan->cage && code == -EACCES) {
        char *const *file = plan->files;
        while (file[1] && access(*file, F_OK) < 0)
            file++;
        return err_set(err, code, "cannot start %s " SPAWN_REFUSED " (%s): %s", *file, plan->level,
                       err_name(code));
    }
    err_set(err, code, "cannot start %s: %s", program, err_name(code));
    if ((code == -ENOENT || code == -ENOTDIR) && strchr(program, '/'))
        err_hint(err, "check the path; for a script, also the program named in its #! line");
    else if (code == -ENOENT || code == -ENOTDIR)
        err_hint(err, "install it, or write its full path; looked in PATH=%.180s", path);
    else if (code == -EACCES)
        err_hint(err, "it is there but may not be executed; chmod +x helps if it is yours");
    else if (code == -ENOEXEC)
        err_hint(err, "a script needs a first line like #!/bin/sh");
    return code;
}

/* A kernel (or valgrind) without pidfds says ENOSYS: the child is then watched by its process
 * id. */
static int watch(struct spawned *to, int pid, struct err *err)
{
    to->pid = pid;
    to->pidfd = pidfd_open(pid, 0);
    if (to->pidfd >= 0 || errno == ENOSYS)
        return 0;
    int code = -errno;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return err_set(err, code, "cannot watch a child process: %s", err_name(code));
}

/* Start the program of the plan; a child that could not exec is reaped here. */
static int launch(struct spawned *to, struct spawn_plan *plan, const char *path, struct err *err)
{
    int pid = fork_and_exec(plan);

    if (pid < 0) {
        err_set(err, pid, "cannot start %s: %s", plan->argv[0], err_name(pid));
        return pid;
    }
    if (!plan->chdir_errno && !plan->exec_errno)
        return watch(to, pid, err);
    waitpid(pid, NULL, 0);
    return explain(plan, path, err);
}

/* The cage of the new process, if it is to have one; `group` is the folder of its control group. */
static int prepare_cage(struct spawn_plan *plan, const struct child_spec *spec, const char *group,
                        struct err *err)
{
    struct child_spec placed = *spec;
    struct cage_list files = {0};

    if (!spec->cage)
        return 0;
    if (!placed.cwd)
        placed.cwd = spec->cage->own;
    program_files(&placed, &files);
    struct cage_kernel kernel = cage_kernel(spec->cage, group);
    plan->cage = MEM_NEW(struct cage);
    plan->cwd = placed.cwd;
    plan->level = spec->cage->level;
    int code = cage_make(plan->cage, spec->cage, &kernel, placed.cwd, &files, err);
    if (!code && kernel.group_memory)
        cgroup_bound(group, "memory.max", spec->cage->memory);
    if (!code && kernel.group_pids)
        cgroup_bound(group, "pids.max", spec->cage->processes);
    cage_list_fini(&files);
    return code;
}

int spawn(struct spawned *to, const struct child_spec *spec, const struct rlimit *core,
          struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int code = 0;

    for (int i = 0; i < 3 && code == 0; i++)
        code = pipe2(pipes[i], O_CLOEXEC) < 0 ? -errno : 0;
    if (code < 0) {
        err_set(err, code, "cannot make pipes for %s: %s", spec->argv[0], err_name(code));
        close_all(&pipes[0][0], 6);
        return code;
    }
    /* Larger pipes pass a large message in fewer turns. The kernel may refuse: a user's pipes have
     * a limit. That is no error. */
    for (int i = 0; i < 2; i++)
        fcntl(pipes[i][1], F_SETPIPE_SZ, PIPE_BYTES);
    struct strings env = make_env(spec);
    const char *path = find_path(&env);
    struct strings files = make_candidates(spec->argv[0], path);
    struct spawn_plan plan = {
        .files = files.p,
        .argv = (char *const *)spec->argv,
        .env = env.p,
        .cwd = spec->cwd,
        .stdio = {pipes[0][0], pipes[1][1], pipes[2][1]},
        .parent = getpid(),
        .mark = kin_expect(),
        .core = core,
    };
    to->mark = plan.mark;
    bool limited = spec->cage && (spec->cage->memory || spec->cage->processes);
    to->cgroup = cgroup_make(plan.mark, limited, &plan.cgroup);
    code = prepare_cage(&plan, spec, to->cgroup, err);
    if (!code)
        code = launch(to, &plan, path, err);
    if (plan.cage)
        cage_close(plan.cage);
    mem_free(plan.cage);
    close_all(plan.stdio, 3);
    close_all(&plan.cgroup, 1);
    to->in = pipes[0][1];
    to->out = pipes[1][0];
    to->err = pipes[2][0];
    if (code < 0) {
        close_all(&to->in, 3);
        if (to->cgroup)
            cgroup_remove(to->cgroup);
        mem_free(to->cgroup);
    }
    strings_fini(&files);
    strings_fini(&env);
    return code;
}
