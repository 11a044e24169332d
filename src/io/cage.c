/* The cage of a child: what this kernel offers, the paths of the rules on this machine, the
 * Landlock ruleset, limits, and the system calls between vfork and exec. Called by spawn.c,
 * program.c, cmd/sandbox.c and cmd/learn.c. */
#include "io/cage.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Landlock, which has no functions in the C library; <linux/landlock.h> may be too old --- */

enum {
    SYS_CREATE_RULESET = 444,
    SYS_ADD_RULE = 445,
    SYS_RESTRICT_SELF = 446,
    CREATE_RULESET_VERSION = 1,
    RULE_PATH = 1,
    RULE_PORT = 2,
    LANDLOCK_KNOWN = 9, /* the newest ABI whose bits are in the tables below */
};

struct ruleset_attr {
    uint64_t files, network, scoped;
};
struct path_attr {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));
struct port_attr {
    uint64_t allowed, port;
};

enum {
    BIT_EXECUTE = 0,
    BIT_WRITE_FILE = 1,
    BIT_READ_FILE = 2,
    BIT_READ_DIR = 3,
    BIT_REMOVE_DIR = 4,
    BIT_REMOVE_FILE = 5,
    BIT_MAKE_DIR = 7,
    BIT_MAKE_REG = 8,
    BIT_MAKE_SOCK = 9,
    BIT_MAKE_FIFO = 10,
    BIT_MAKE_SYM = 12,
    BIT_REFER = 13,
    BIT_TRUNCATE = 14,
    BIT_IOCTL_DEV = 15,
    BIT_RESOLVE_UNIX = 16,
};

#define BIT(n)      (UINT64_C(1) << (n))
#define READ_BITS   (BIT(BIT_READ_FILE) | BIT(BIT_READ_DIR))
#define FILE_BITS   (BIT(BIT_EXECUTE) | BIT(BIT_WRITE_FILE) | BIT(BIT_READ_FILE) | BIT(BIT_TRUNCATE))
#define CONNECT_TCP BIT(1)
#define ALL_TCP     (BIT(0) | BIT(1))
#define ALL_SCOPES  (BIT(0) | BIT(1))
/* Without making device files: through them a server run by root could open every disk. */
#define WRITE_BITS                                                                                 \
    (BIT(BIT_WRITE_FILE) | BIT(BIT_REMOVE_DIR) | BIT(BIT_REMOVE_FILE) | BIT(BIT_MAKE_DIR) |        \
     BIT(BIT_MAKE_REG) | BIT(BIT_MAKE_SOCK) | BIT(BIT_MAKE_FIFO) | BIT(BIT_MAKE_SYM) |             \
     BIT(BIT_REFER) | BIT(BIT_TRUNCATE) | BIT(BIT_RESOLVE_UNIX))

/* All bits of file access that an ABI knows. */
static uint64_t known_bits(int abi)
{
    static const int last[LANDLOCK_KNOWN + 1] = {0,
                                                 BIT_MAKE_SYM,
                                                 BIT_REFER,
                                                 BIT_TRUNCATE,
                                                 BIT_TRUNCATE,
                                                 BIT_IOCTL_DEV,
                                                 BIT_IOCTL_DEV,
                                                 BIT_IOCTL_DEV,
                                                 BIT_IOCTL_DEV,
                                                 BIT_RESOLVE_UNIX};

    return BIT(last[abi < LANDLOCK_KNOWN ? abi : LANDLOCK_KNOWN] + 1) - 1;
}

static int add_path(int ruleset, int abi, const struct cage_path *p)
{
    struct path_attr rule = {0};
    struct stat st;

    if (p->may & CAGE_READ)
        rule.allowed |= READ_BITS;
    if (p->may & CAGE_RUN)
        rule.allowed |= BIT(BIT_EXECUTE);
    if (p->may & CAGE_WRITE)
        rule.allowed |= WRITE_BITS;
    rule.allowed &= known_bits(abi);
    rule.fd = open(p->path, O_PATH | O_CLOEXEC);
    if (rule.fd < 0)
        return -errno;
    if (fstat(rule.fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed &= FILE_BITS;
    int code = syscall(SYS_ADD_RULE, ruleset, RULE_PATH, &rule, 0) < 0 ? -errno : 0;
    close(rule.fd);
    return code;
}

static int add_ports(int ruleset, const struct cage_rules *rules)
{
    int code = 0;

    for (size_t i = 0; i < rules->n_ports && !code; i++) {
        struct port_attr rule = {CONNECT_TCP, rules->ports[i]};
        code = syscall(SYS_ADD_RULE, ruleset, RULE_PORT, &rule, 0) < 0 ? -errno : 0;
    }
    return code;
}

/* A descriptor, -1 where there is no Landlock, or a negative errno. */
static int make_ruleset(const struct cage_rules *rules, int abi, const struct cage_list *list)
{
    bool ports = rules->network == CAGE_PORTS && abi >= 4;
    struct ruleset_attr attr = {.files = known_bits(abi),
                                .network = ports ? ALL_TCP : 0,
                                .scoped = abi >= 6 ? ALL_SCOPES : 0};
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 16 : 8;

    if (!abi)
        return -1;
    int ruleset = (int)syscall(SYS_CREATE_RULESET, &attr, size, 0);
    int code = ruleset < 0 ? -errno : ports ? add_ports(ruleset, rules) : 0;
    for (size_t i = 0; i < list->n && !code; i++) {
        code = add_path(ruleset, abi, &list->items[i]);
        if (code == -ENOENT)
            code = 0; /* removed since the list was made: stays closed */
    }
    if (code && ruleset >= 0)
        close(ruleset);
    return code ? code : ruleset;
}

/* --- what the kernel offers --- */

static bool has_file(const char *folder, const char *name)
{
    BUF_SCOPED path = {0};

    buf_printf(&path, "%s/%s", folder, name);
    return access(buf_cstr(&path), W_OK) == 0;
}

/* Tried in a child process: many settings decide whether a user may create a user namespace. */
static bool has_own_count(void)
{
    int status = 1, pid;

    if (geteuid() == 0)
        return false; /* RLIMIT_NPROC does not apply to root */
    pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) < 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

struct cage_kernel cage_kernel(const struct cage_rules *rules, const char *group)
{
    long abi = syscall(SYS_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
    struct cage_kernel k = {.landlock = abi > 0 ? (int)abi : 0};

    k.filter = prctl(PR_GET_SECCOMP) >= 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0,
                                                     &(uint32_t){SECCOMP_RET_ERRNO}) == 0;
    k.group_memory = group && rules->memory && has_file(group, "memory.max");
    k.group_pids = group && rules->processes && has_file(group, "pids.max");
    k.own_count = rules->processes && !k.group_pids && has_own_count();
    return k;
}

/* --- paths --- */

void cage_list_add(struct cage_list *list, const char *path, unsigned may)
{
    list->items = mem_resize(list->items, (list->n + 1) * sizeof *list->items);
    list->items[list->n++] = (struct cage_path){.path = mem_str(path), .may = may};
}

void cage_list_fini(struct cage_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        mem_free((char *)(uintptr_t)list->items[i].path);
    mem_free(list->items);
    *list = (struct cage_list){0};
}

static bool add_real(struct cage_list *list, const char *path, unsigned may)
{
    char *real = realpath(path, NULL);

    if (real)
        cage_list_add(list, real, may);
    free(real);
    return real != NULL;
}

/*
 * Does `path` lie in a folder that the server may write, but lead out of that folder through a
 * link? The server may have made the link, so the configuration did not mean to open its target.
 */
static bool is_led_out(const struct cage_rules *rules, const char *cwd, const char *path)
{
    char *real = realpath(path, NULL);
    bool led_out = false;

    for (size_t i = 0; real && i < rules->n_paths + 2 && !led_out; i++) {
        const char *folder = i == rules->n_paths                ? rules->own
                             : i == rules->n_paths + 1          ? cwd
                             : rules->paths[i].may & CAGE_WRITE ? rules->paths[i].path
                                                                : NULL;
        if (!folder || strcmp(folder, path) == 0 || !cage_path_in(span_str(path), span_str(folder)))
            continue;
        char *whole = realpath(folder, NULL);
        led_out = whole && !cage_path_in(span_str(real), span_str(whole));
        free(whole);
    }
    free(real);
    return led_out;
}

static int check_folder(const struct cage_rules *rules, const char *cwd, struct err *err)
{
    char *home = rules->home ? realpath(rules->home, NULL) : NULL;
    bool wide = strcmp(cwd, "/") == 0 || (home && cage_path_in(span_str(home), span_str(cwd)));

    free(home);
    if (!wide)
        return 0;
    err_set(err, -EPERM,
            "its sandbox (%s) does not take the folder %s as `cwd`: everything in it would be open",
            rules->level, cwd);
    err_hint(err, "name a folder below it, or leave `cwd` out");
    return -EPERM;
}

/*
 * Files in a writable folder may not be run, unless the rules allow it. The kernel adds up the
 * rights of all folders above a file, so folders above and below a writable one lose CAGE_RUN as
 * well. The `files` at the end of the list keep their rights: one in a writable folder is an error.
 */
static int part(struct cage_list *list, size_t n_rules, const struct cage_rules *rules,
                struct err *err)
{
    for (size_t w = 0; w < n_rules; w++) {
        struct span folder = span_str(list->items[w].path);
        if (!(list->items[w].may & CAGE_WRITE))
            continue;
        for (size_t i = 0; i < list->n; i++) {
            struct span path = span_str(list->items[i].path);
            if (i >= n_rules && cage_path_in(path, folder)) {
                err_set(err, -EPERM,
                        "its sandbox (%s) refuses to run %s: it lies in %s, where the server may "
                        "write",
                        rules->level, path.p, folder.p);
                err_hint(err, "set `cwd` to another folder, and name this one in `read`");
                return -EPERM;
            }
            bool overlap = cage_path_in(path, folder) || cage_path_in(folder, path);
            if (i < n_rules && overlap && !rules->runs_what_it_writes)
                list->items[i].may &= ~(unsigned)CAGE_RUN;
        }
    }
    return 0;
}

int cage_list_make(struct cage_list *list, const struct cage_rules *rules, const char *cwd,
                   const struct cage_list *files, struct err *err)
{
    unsigned own = CAGE_READ | CAGE_WRITE | (rules->runs_what_it_writes ? CAGE_RUN : 0);

    *list = (struct cage_list){0};
    if (!add_real(list, cwd ? cwd : rules->own, own)) {
        int code = -errno;
        err_set(err, code, "its folder %s: %s", cwd ? cwd : rules->own, err_name(code));
        err_hint(err, "check `cwd`");
        return code;
    }
    if (check_folder(rules, list->items[0].path, err)) {
        cage_list_fini(list);
        return -EPERM;
    }
    if (cwd && is_led_out(rules, NULL, cwd)) {
        cage_list_fini(list);
        return err_set(err, -EPERM,
                       "its sandbox (%s) does not take %s as `cwd`: a link leads out of a "
                       "folder that the server may write",
                       rules->level, cwd);
    }
    add_real(list, rules->own, own);
    for (size_t i = 0; i < rules->n_paths; i++) {
        const struct cage_path *p = &rules->paths[i];
        if (is_led_out(rules, cwd, p->path))
            log_warn(
                rules->server,
                "sandbox: a link at %s leads out of a folder that it may write: it stays closed",
                p->path);
        else if (!add_real(list, p->path, p->may) && !p->optional)
            log_warn(rules->server, "sandbox: there is no %s: it stays closed", p->path);
    }
    size_t n_rules = list->n;
    for (size_t i = 0; i < files->n; i++)
        add_real(list, files->items[i].path, files->items[i].may);
    int code = part(list, n_rules, rules, err);
    if (code)
        cage_list_fini(list);
    return code;
}

/* --- preparing --- */

static void limit(struct cage *c, int resource, uint64_t most)
{
    c->limits[c->n_limits++] = (struct cage_limit){resource, most};
}

static void set_limits(struct cage *c, const struct cage_rules *rules,
                       const struct cage_kernel *kernel)
{
    limit(c, RLIMIT_CORE, 0);
    if (rules->files)
        limit(c, RLIMIT_NOFILE, rules->files);
    if (rules->cpu)
        limit(c, RLIMIT_CPU, (rules->cpu + 999) / 1000);
    if (rules->memory && !kernel->group_memory)
        limit(c, RLIMIT_DATA, rules->memory);
    c->own_count = kernel->own_count;
    if (c->own_count)
        limit(c, RLIMIT_NPROC, rules->processes);
    snprintf(c->uid_map, sizeof c->uid_map, "%u %u 1", geteuid(), geteuid());
    snprintf(c->gid_map, sizeof c->gid_map, "%u %u 1", getegid(), getegid());
}

static int check_kernel(const struct cage_rules *rules, const struct cage_kernel *kernel,
                        struct err *err)
{
    BUF_SCOPED lacks = {0};

    cage_put_lacks(&lacks, rules, kernel);
    if (!lacks.n || rules->warns) {
        if (lacks.n)
            log_warn(rules->server, "sandbox (%s): this kernel cannot enforce: %s", rules->level,
                     buf_cstr(&lacks));
        return 0;
    }
    err_set(err, -ENOSYS, "its sandbox (%s) needs what this kernel lacks: %s", rules->level,
            buf_cstr(&lacks));
    err_hint(err, "`sandbox: {missing: warn}` at the top level starts it without");
    return -ENOSYS;
}

int cage_make(struct cage *c, const struct cage_rules *rules, const struct cage_kernel *kernel,
              const char *cwd, const struct cage_list *files, struct err *err)
{
    BUF_SCOPED tmp = {0};
    struct cage_list list;

    *c = (struct cage){.ruleset = -1};
    int code = check_kernel(rules, kernel, err);
    if (code)
        return code;
    buf_printf(&tmp, "%s/tmp/", rules->own);
    file_make_folders(buf_cstr(&tmp));
    code = cage_list_make(&list, rules, cwd, files, err);
    if (code)
        return code;
    c->ruleset = make_ruleset(rules, kernel->landlock, &list);
    cage_list_fini(&list);
    if (c->ruleset < -1)
        return err_set(err, c->ruleset, "its sandbox (%s) cannot be made: Landlock: %s",
                       rules->level, err_name(c->ruleset));
    if (kernel->filter)
        c->filter = (struct sock_fprog){.len = (unsigned short)cage_filter(c->code, rules->network),
                                        .filter = c->code};
    set_limits(c, rules, kernel);
    return 0;
}

void cage_close(struct cage *c)
{
    if (c->ruleset >= 0)
        close(c->ruleset);
    c->ruleset = -1;
}

/* --- the new process: only system calls --- */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

/*
 * RLIMIT_NPROC counts a user's processes in one user namespace: in a new namespace with the same
 * user the count begins at 1. Until exec the child shares our memory. While that is hidden
 * (loop_hide_memory), uid_map and gid_map belong to root, so the memory is made dumpable for these
 * writes.
 */
static int count_from_one(const struct cage *c)
{
    int shown = prctl(PR_GET_DUMPABLE);

    if (unshare(CLONE_NEWUSER) < 0)
        return -1;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int code = write_file("/proc/self/setgroups", "deny") ||
               write_file("/proc/self/uid_map", c->uid_map) ||
               write_file("/proc/self/gid_map", c->gid_map);
    int why = errno;
    prctl(PR_SET_DUMPABLE, shown == 1, 0, 0, 0);
    errno = why;
    return code ? -1 : 0;
}

/*
 * A server run by root keeps the capabilities over files and users that root's programs expect,
 * within the rules. The others are dropped, because they lead around the rules (CAP_PERFMON shows
 * the environment of any process). For other users nothing changes.
 */
static void drop_capabilities(void)
{
    static const uint64_t kept = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
                                 BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) |
                                 BIT(CAP_SETUID) | BIT(CAP_NET_BIND_SERVICE);

    for (unsigned long cap = 0; cap < 64; cap++)
        if (!(kept & BIT(cap)))
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

const char *cage_enter(const struct cage *c)
{
    drop_capabilities();
    if (c->own_count && count_from_one(c) < 0)
        return "a user namespace";
    for (size_t i = 0; i < c->n_limits; i++) {
        struct rlimit now, want = {c->limits[i].most, c->limits[i].most};
        if (getrlimit(c->limits[i].resource, &now) == 0 && now.rlim_max < want.rlim_max)
            want = (struct rlimit){now.rlim_max, now.rlim_max};
        if (setrlimit(c->limits[i].resource, &want) < 0)
            return "limits";
    }
    /* kin_brand has set this already; without it the kernel refuses Landlock and seccomp. */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (c->ruleset >= 0 && syscall(SYS_RESTRICT_SELF, c->ruleset, 0) < 0)
        return "Landlock";
    if (c->filter.len && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &c->filter) < 0)
        return "seccomp";
    return NULL;
}
