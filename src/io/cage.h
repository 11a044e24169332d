/*
 * cage: what the kernel lets a child process do, set between vfork and exec.
 *
 * `struct cage_rules` is plain data that hub/graph/sandbox.c makes from `servers.*.sandbox`: which
 * files may be read, run and written, which sockets may be opened, and limits. spawn.c turns the
 * rules into a `struct cage`: a Landlock ruleset, a seccomp filter and limits, all prepared before
 * vfork, so that the child only makes system calls (docs/decisions/016-sandbox.md). cage_words.c
 * tells people what this kernel cannot enforce, and which rule would allow what was refused.
 *
 * Files: cage, cage_filter, cage_words.
 */
#ifndef RIALTO_IO_CAGE_H
#define RIALTO_IO_CAGE_H

#include "base/buf.h"
#include "base/err.h"

#include <linux/filter.h>

enum cage_may {
    CAGE_READ = 1,
    CAGE_RUN = 2,
    CAGE_WRITE = 4, /* also make and remove files */
};

struct cage_path {
    const char *path;
    unsigned may;  /* cage_may bits */
    bool optional; /* not on every machine: no warning when it is missing */
};

enum cage_network {
    CAGE_OPEN,      /* every socket */
    CAGE_NO_UNIX,   /* every socket but Unix sockets */
    CAGE_PORTS,     /* TCP connections to `ports`, nothing else */
    CAGE_NO_SOCKET, /* none */
};

struct cage_rules {
    const char *server; /* its name, for the log */
    const char *level;  /* as in the configuration: "light", "strict" or "map" */
    const struct cage_path *paths;
    size_t n_paths;
    const char *own;  /* folder of the server's own, made before the start, with `tmp` in it */
    const char *home; /* the user's: must not be the working folder or inside of it; or NULL */
    bool runs_what_it_writes;
    bool warns; /* start, with a warning, even if this kernel lacks something */
    enum cage_network network;
    const uint16_t *ports;
    size_t n_ports;
    uint64_t memory; /* bytes; 0 = no limit, like the others */
    uint64_t processes;
    uint64_t cpu; /* ms */
    uint64_t files;
};

/* What this machine offers to our user. */
struct cage_kernel {
    int landlock;    /* the ABI; 0 = none */
    bool filter;     /* seccomp filters */
    bool own_count;  /* processes can be counted for one server: in a user namespace */
    bool group_pids; /* the same by the control group of the child */
    bool group_memory;
};

/* `group` is the folder of the child's control group, or NULL. */
struct cage_kernel cage_kernel(const struct cage_rules *rules, const char *group);

/* --- for people; pure --- */

/* The rules that this kernel cannot enforce, separated by "; "; nothing if it can enforce all. */
void cage_put_lacks(struct buf *out, const struct cage_rules *rules,
                    const struct cage_kernel *kernel);
/* May `path`, or what lies in it, be accessed in all these ways? */
bool cage_allows(const struct cage_rules *rules, struct span path, unsigned may);
/* Is this line of a program's output about something refused? */
bool cage_is_refusal(struct span line);
/*
 * The first thing named in such a line that the rules refuse, and the setting that would allow it:
 * "read: [/path]". Both stay empty if the line names nothing.
 */
void cage_blame(const struct cage_rules *rules, struct span line, struct buf *refused,
                struct buf *remedy);
/* Is `path` the folder, or in it? Both without links and dots. */
bool cage_path_in(struct span path, struct span folder);

/* --- with the files of this machine --- */

/* Paths without links and dots, with what may be done there. */
struct cage_list {
    struct cage_path *items; /* own their paths */
    size_t n;
};

/*
 * The paths of the rules, the working folder (`cwd`, or the server's own), and the `files` that are
 * needed to start the program. Writable folders, and the folders above and below them, lose
 * CAGE_RUN, unless the rules say otherwise. Negative when the working folder or the program's place
 * cannot be allowed.
 */
MUST_CHECK int cage_list_make(struct cage_list *list, const struct cage_rules *rules,
                              const char *cwd, const struct cage_list *files, struct err *err);
void cage_list_add(struct cage_list *list, const char *path, unsigned may);
void cage_list_fini(struct cage_list *list);

/* --- for spawn.c --- */

enum { CAGE_FILTER_MAX = 256, CAGE_LIMITS = 5 };

struct cage {
    int ruleset; /* -1 = none */
    struct sock_filter code[CAGE_FILTER_MAX];
    struct sock_fprog filter; /* len 0 = none */
    bool own_count;
    char uid_map[32], gid_map[32];
    struct cage_limit {
        int resource;
        uint64_t most;
    } limits[CAGE_LIMITS];
    size_t n_limits;
};

/* Everything that cage_enter needs; also makes the server's own folder. */
MUST_CHECK int cage_make(struct cage *c, const struct cage_rules *rules,
                         const struct cage_kernel *kernel, const char *cwd,
                         const struct cage_list *files, struct err *err);
/* Between vfork and exec: only system calls. NULL, or the step that failed, with errno set. */
const char *cage_enter(const struct cage *c);
void cage_close(struct cage *c);

/* The filter for these rules; returns the number of instructions. */
size_t cage_filter(struct sock_filter *code, enum cage_network network);

#endif
