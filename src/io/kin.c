/* Which processes descend from our children, and killing orphans. Called by spawn.c, child.c,
 * cgroup.c and guard.c, and by stream_peer.c, which asks who is at a socket. */
#include "io/kin.h"

#include "base/ascii.h"
#include "base/file.h"
#include "base/id.h"
#include "base/libc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FILE_MOST = 1024 * 1024,
    RETRIES = 8,
    GENERATIONS_MOST = 4096,
};

/* --- the brand --- */

/* Our own limit as it was before the first child. Any process of our user may lower it later, and
 * then no child would be below it. */
static rlim_t own_limit;
static bool own_is_known;

void kin_keep_limit(rlim_t limit)
{
    own_limit = limit;
    own_is_known = true;
}

rlim_t kin_limit(void)
{
    struct rlimit now = {0};

    if (!own_is_known) {
        getrlimit(RLIMIT_LOCKS, &now);
        kin_keep_limit(now.rlim_max);
    }
    return own_limit;
}

/* If another Rialto started us, we have a mark ourselves. A hard limit can only be lowered, so our
 * children get a smaller number. */
rlim_t kin_expect(void)
{
    struct rlimit own = {0};

    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    kin_limit();
    getrlimit(RLIMIT_LOCKS, &own);
    rlim_t below = own.rlim_max < INT32_MAX ? own.rlim_max : INT32_MAX;
    return below > 1 ? 1 + (rlim_t)(id_random_u64() % (below - 1)) : 0;
}

void kin_brand(rlim_t mark)
{
    struct rlimit limit = {mark, mark};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_LOCKS, &limit);
}

void kin_signal(const struct kin *k, int signo)
{
    kill(-k->pid, signo);
    if (getpgid(k->pid) != k->pid)
        kill(k->pid, signo);
}

/* --- what the kernel says of a process --- */

/* The text of a file in /proc/PID, NUL-terminated; false if the file cannot be read. */
static bool read_proc(struct buf *out, int pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int rc = file_read(out, path, FILE_MOST);
    buf_cstr(out);
    return !rc;
}

int kin_parent(int pid)
{
    BUF_SCOPED text = {0};

    /* The name in parentheses may itself contain parentheses. */
    const char *name_end = read_proc(&text, pid, "stat") ? strrchr(text.p, ')') : NULL;
    return name_end ? (int)strtol(name_end + strlen(") S "), NULL, 10) : -1;
}

static bool is_confined(int pid)
{
    BUF_SCOPED text = {0};

    return read_proc(&text, pid, "status") && strstr(text.p, "\nNoNewPrivs:\t1\n");
}

/* The hard limit, the second of the line's numbers: "unlimited" for a process that has no mark. */
static rlim_t mark_of(int pid)
{
    static const char title[] = "Max file locks";
    BUF_SCOPED text = {0};

    const char *at = read_proc(&text, pid, "limits") ? strstr(text.p, title) : NULL;
    at = at ? at + strlen(title) : "";
    at += strspn(at, " ");
    at += strcspn(at, " ");
    at += strspn(at, " ");
    return ascii_is_digit(*at) ? strtoull(at, NULL, 10) : RLIM_INFINITY;
}

static bool has_mark(int pid)
{
    return mark_of(pid) < kin_limit();
}

/*
 * The brand is a mark below our own, or no_new_privs. If we have no_new_privs ourselves, processes
 * that are not our kin may have it, too, so it does not count. Nor does it count in our own
 * session, where a process that was started before us may have it. Elsewhere a browser of the
 * user's may have it (all programs of a Flatpak do), so nothing is killed for no_new_privs: it only
 * keeps a process from acting as the operator.
 */
static bool has_brand(int pid)
{
    return has_mark(pid) || (getsid(pid) != getsid(0) && is_confined(pid) &&
                             prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
}

/* --- whose a process is --- */

static bool is_child(const struct list *kin, int pid)
{
    LIST_EACH (kin, it)
        if (LIST_ENTRY(it, struct kin, node)->pid == pid)
            return true;
    return false;
}

/*
 * Is this process, whose parent we are, an orphan of one of our children? A process without the
 * brand came from elsewhere: a library started it for us, or it was there before us, or the kernel
 * gave it to us as process 1 of a container.
 */
static bool is_orphan(const struct list *kin, int pid)
{
    return !is_child(kin, pid) && has_brand(pid);
}

static bool is_of_any(const struct list *kin, int orphan)
{
    rlim_t mark = mark_of(orphan);

    LIST_EACH (kin, it)
        if (LIST_ENTRY(it, struct kin, node)->mark == mark)
            return true;
    return false;
}

static bool has_living_server(const struct list *kin, int orphan)
{
    return is_child(kin, getpgid(orphan)) || is_of_any(kin, orphan);
}

/* --- orphans --- */

/* The ids of our child processes, with blanks between. Some kernels are built without that list. */
static void put_children(struct buf *out)
{
    char name[32];
    const struct dirent *e;

    snprintf(name, sizeof name, "task/%d/children", getpid());
    if (read_proc(out, getpid(), name))
        return;
    DIR *all = opendir("/proc");
    while (all && (e = readdir(all)))
        if (kin_parent((int)strtol(e->d_name, NULL, 10)) == getpid())
            buf_printf(out, "%s ", e->d_name);
    if (all)
        closedir(all);
    buf_cstr(out);
}

/*
 * The process is our child and not reaped, so its id cannot have been reused. The whole group is
 * killed at once, or it could go on forking. An orphan in a group of other processes joined that
 * group on purpose, and could have killed it as well.
 */
static void kill_orphan(int pid)
{
    int group = getpgid(pid);

    if (group > 1 && group != getpgrp())
        kill(-group, SIGKILL);
    kill(pid, SIGKILL);
}

size_t kin_sweep(const struct list *kin, const struct list *ended)
{
    BUF_SCOPED children = {0};
    size_t left = 0;
    char *end;

    put_children(&children);
    for (const char *at = children.p;; at = end) {
        int pid = (int)strtol(at, &end, 10);
        if (end == at)
            break;
        if (is_child(kin, pid) || !has_mark(pid) || waitpid(pid, NULL, WNOHANG) == pid ||
            has_living_server(kin, pid) || (ended && !is_of_any(ended, pid)))
            continue;
        kill_orphan(pid);
        left++;
    }
    return left;
}

/* Has the process ended without being reaped, or is it a guard, which ends by itself? */
static bool is_spared(int pid)
{
    BUF_SCOPED text = {0};

    const char *name_end = read_proc(&text, pid, "stat") ? strrchr(text.p, ')') : NULL;
    return !name_end || name_end[strlen(") ")] == 'Z' || strstr(text.p, "(" KIN_GUARD_NAME ")");
}

static bool is_marked(int pid, const rlim_t *marks, size_t n)
{
    rlim_t mark = mark_of(pid);

    for (size_t i = 0; i < n; i++)
        if (marks[i] == mark)
            return !is_spared(pid);
    return false;
}

size_t kin_kill_marked(const rlim_t *marks, size_t n)
{
    const struct dirent *e;
    size_t killed = 0;

    DIR *all = opendir("/proc");
    while (all && (e = readdir(all))) {
        int pid = (int)strtol(e->d_name, NULL, 10);
        /* The pidfd is opened before the check, or the id could be reused between check and
         * kill. */
        int held = pid > 1 && pid != getpid() ? pidfd_open(pid, 0) : -1;
        if (held < 0)
            continue;
        if (is_marked(pid, marks, n) && pidfd_send_signal(held, SIGKILL, NULL, 0) == 0)
            killed++;
        close(held);
    }
    if (all)
        closedir(all);
    return killed;
}

/* --- who is at a socket --- */

enum answer { NO, YES, PARENT_DIED };

static enum answer climb(const struct list *kin, int pid)
{
    int self = getpid();

    for (int i = 0; i < GENERATIONS_MOST; i++) {
        if (pid <= 1 || pid == self)
            return NO;
        if (is_child(kin, pid))
            return YES;
        int parent = kin_parent(pid);
        if (parent < 0) /* a process of another user that /proc hides: not one of ours */
            return kill(pid, 0) < 0 && errno == EPERM ? NO : PARENT_DIED;
        if (parent == self)
            return is_orphan(kin, pid) ? YES : NO;
        pid = parent;
    }
    return YES;
}

bool kin_includes(const struct list *kin, int pid)
{
    enum answer answer = PARENT_DIED;

    /* If a parent has died meanwhile, its children have a new parent by now. */
    for (int i = 0; i < RETRIES && answer == PARENT_DIED; i++)
        answer = climb(kin, pid);
    return answer != NO;
}

/* A process that made itself undumpable hides its descriptors from us, unless we are root. */
static bool has_socket(int pid, const char *wanted)
{
    char path[32], target[64];
    const struct dirent *e;
    bool has = false;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *fds = opendir(path);
    if (!fds)
        return errno == EACCES;
    while (!has && (e = readdir(fds))) {
        ssize_t n = readlinkat(dirfd(fds), e->d_name, target, sizeof target);
        has = n > 0 && span_is(span_of(target, (size_t)n), wanted);
    }
    closedir(fds);
    return has;
}

bool kin_has_socket(const struct list *kin, unsigned long inode)
{
    char wanted[48];
    const struct dirent *e;
    bool has = false;

    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *all = opendir("/proc");
    while (all && !has && (e = readdir(all))) {
        int pid = (int)strtol(e->d_name, NULL, 10);
        has = pid > 0 && has_brand(pid) && kin_includes(kin, pid) && has_socket(pid, wanted);
    }
    if (all)
        closedir(all);
    return has;
}
