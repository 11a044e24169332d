/* Control groups of our children: found, made, ended, removed. Called by spawn.c, which puts a
 * child into its group, and by child.c, which ends the group with the child. */
#include "io/cgroup.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

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

/* The line of cgroup v2 is "0::/path". */
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
    if (path)
        buf_span(out, span_of(path, strcspn(path, "\n")));
    return path != NULL;
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
        if (is_dead || pid == getpid()) /* empty now, busy when its child ended */
            cgroup_remove(buf_cstr(&folder));
    }
    if (all)
        closedir(all);
}

char *cgroup_make(uint64_t number, int *procs)
{
    BUF_SCOPED path = {0};

    *procs = -1;
    if (!put_mount_point(&path) || !put_own_path(&path) || !is_ours(buf_cstr(&path)))
        return NULL;
    remove_leftovers(path.p);
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

void cgroup_bound(const char *folder, const char *name, uint64_t most)
{
    BUF_SCOPED path = {0};

    buf_printf(&path, "%s/%s", folder, name);
    int fd = open(buf_cstr(&path), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (dprintf(fd, "%" PRIu64, most) < 0) {
        /* Only a group that no longer exists refuses the write. */
    }
    close(fd);
}

void cgroup_kill(const char *folder)
{
    cgroup_bound(folder, "cgroup.kill", 1);
}

bool cgroup_remove(const char *folder)
{
    return rmdir(folder) == 0 || errno != EBUSY;
}
