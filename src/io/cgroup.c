/* Control groups of our children: found, made, ended, removed. Called by spawn.c, which puts a
 * child into its group, and by child.c, which ends the group with the child. */
#include "io/cgroup.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/kin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { FILE_MOST = 1024 * 1024 };

/* The group that we move to when the groups of our children get limits: see step_aside(). */
static const char aside[] = "/rialto-main";

/* --- our own group --- */

/* Where cgroup v2 is mounted: the fifth field of the mountinfo line, before " - cgroup2 ". */
static bool put_mount_point(struct buf *out)
{
    BUF_SCOPED mounts = {0};

    if (file_read(&mounts, "/proc/self/mountinfo", FILE_MOST))
        return false;
    const char *line = buf_cstr(&mounts);
    const char *type = strstr(line, " - cgroup2 ");
    if (!type)
        return false;
    for (const char *end; (end = strchr(line, '\n')) && end < type; line = end + 1)
        ;
    int from = 0, to = 0;
    sscanf(line, "%*s %*s %*s %*s %n%*s%n", &from, &to);
    buf_span(out, span_of(line + from, (size_t)(to - from)));
    return to > from;
}

/* The line of cgroup v2 is "0::/path". After step_aside, our group is the one above. */
static bool put_own_path(struct buf *out)
{
    BUF_SCOPED groups = {0};

    if (file_read(&groups, "/proc/self/cgroup", FILE_MOST))
        return false;
    const char *text = buf_cstr(&groups);
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!line)
        return false;
    const char *path = strchr(line, '/');
    if (!path)
        return false;
    struct span own = span_of(path, strcspn(path, "\n"));
    if (own.n > strlen(aside) && span_is(span_from(own, own.n - strlen(aside)), aside))
        own.n -= strlen(aside);
    buf_span(out, own);
    return true;
}

/* Root may write everywhere, but a group that was not delegated is managed by somebody else. */
static bool is_ours(const char *folder)
{
    static const char *const notes[] = {"trusted.delegate", "user.delegate"};
    struct stat st;
    char value;

    for (size_t i = 0; i < COUNT_OF(notes); i++)
        if (getxattr(folder, notes[i], &value, 1) == 1 && value == '1')
            return true;
    return geteuid() != 0 && stat(folder, &st) == 0 && st.st_uid == geteuid();
}

/* --- limits of groups --- */

static void write_text(const char *folder, const char *name, const char *text)
{
    BUF_SCOPED path = {0};

    buf_printf(&path, "%s/%s", folder, name);
    int fd = open(buf_cstr(&path), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, text, strlen(text)) < 0) {
        /* A controller that this group does not have, or a group that no longer exists. */
    }
    close(fd);
}

void cgroup_bound(const char *folder, const char *name, uint64_t most)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, most);
    write_text(folder, name, text);
}

/* The next process in the text of a cgroup.procs, or 0. */
static int next_process(struct span *procs)
{
    uint64_t pid = 0;
    size_t end = span_find(*procs, '\n');

    if (!ascii_number(span_cut(*procs, 0, end), &pid) || pid > INT32_MAX)
        return 0;
    *procs = span_from(*procs, end + 1);
    return (int)pid;
}

/* Is nobody there but this process and its guard? */
static bool are_all_ours(struct span procs)
{
    int pid;

    while ((pid = next_process(&procs)))
        if (pid != getpid() && kin_parent(pid) != getpid())
            return false;
    return true;
}

/*
 * The kernel lets a group give limits to the groups below it only while the group itself has no
 * processes. So we move to a group beside those of our children. Where others share our group,
 * nothing is moved, and limits are set in the other ways (cage.c).
 */
static void step_aside(const char *own)
{
    BUF_SCOPED path = {0}, procs = {0};

    buf_printf(&path, "%s/cgroup.procs", own);
    if (file_read(&procs, buf_cstr(&path), FILE_MOST) || !are_all_ours(buf_view(&procs)))
        return;
    path.n = 0;
    buf_printf(&path, "%s%s", own, aside);
    if (procs.n && mkdir(buf_cstr(&path), 0755) < 0 && errno != EEXIST)
        return;
    struct span rest = buf_view(&procs);
    for (int pid; (pid = next_process(&rest));)
        cgroup_bound(buf_cstr(&path), "cgroup.procs", (uint64_t)pid);
    write_text(own, "cgroup.subtree_control", "+memory");
    write_text(own, "cgroup.subtree_control", "+pids");
}

/* --- groups of our children: rialto-<our process>-<number> --- */

static void remove_leftovers(const char *own)
{
    DIR *all = opendir(own);
    const struct dirent *e;
    int pid;

    while (all && (e = readdir(all))) {
        if (sscanf(e->d_name, "rialto-%d-", &pid) != 1)
            continue;
        bool is_dead = kill(pid, 0) < 0 && errno == ESRCH;
        BUF_SCOPED folder = {0};
        buf_printf(&folder, "%s/%s", own, e->d_name);
        if (is_dead)
            cgroup_kill(buf_cstr(&folder));
        if (is_dead || pid == getpid()) /* ours: busy when its child ended, maybe empty now */
            cgroup_remove(buf_cstr(&folder));
    }
    if (all)
        closedir(all);
}

char *cgroup_make(uint64_t number, bool limited, int *procs)
{
    BUF_SCOPED path = {0};

    *procs = -1;
    if (!put_mount_point(&path) || !put_own_path(&path) || !is_ours(buf_cstr(&path)))
        return NULL;
    remove_leftovers(path.p);
    if (limited)
        step_aside(path.p);
    buf_printf(&path, "/rialto-%d-%" PRIu64, getpid(), number);
    if (mkdir(buf_cstr(&path), 0755) < 0)
        return NULL;
    char *folder = mem_str(path.p);
    buf_str(&path, "/cgroup.procs");
    *procs = open(buf_cstr(&path), O_WRONLY | O_CLOEXEC);
    return folder;
}

void cgroup_join(int procs)
{
    if (procs >= 0 && write(procs, "0", 1) < 0)
        return; /* a child outside of its group is known by its mark alone */
}

void cgroup_kill(const char *folder)
{
    cgroup_bound(folder, "cgroup.kill", 1);
}

/* A child that is itself a Rialto may have left groups of its own below. */
bool cgroup_remove(const char *folder)
{
    if (rmdir(folder) == 0 || errno != EBUSY)
        return true;
    DIR *all = opendir(folder);
    const struct dirent *e;
    while (all && (e = readdir(all))) {
        BUF_SCOPED below = {0};
        buf_printf(&below, "%s/%s", folder, e->d_name);
        if (strncmp(e->d_name, "rialto-", strlen("rialto-")) == 0)
            cgroup_remove(buf_cstr(&below));
    }
    if (all)
        closedir(all);
    return rmdir(folder) == 0 || errno != EBUSY;
}
