/*
 * doctor: the findings of `rialto doctor`, and the functions that make the checks.
 *
 * Each file adds checks: one line each, good or bad, with advice. Nothing is changed; the servers
 * are started for a moment, as `rialto tools` does. All output passes the redactor. For this folder
 * only.
 *
 * Nouns: doctor_. Files: config, daemon, machine, proc, program, report, start, words.
 */
#ifndef RIALTO_CMD_DOCTOR_DOCTOR_H
#define RIALTO_CMD_DOCTOR_DOCTOR_H

#include "base/list.h"
#include "cmd/args.h"

struct server_plan;

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_LEVELS };

struct doctor_check {
    struct list node;
    enum doctor_level level;
    char *group;           /* "configuration", "server files" ... */
    char *server;          /* alias; NULL when the check is about no server */
    struct buf text, hint; /* hint may be empty */
    struct buf lines;      /* quoted output of a server, a line each; may be empty */
    struct buf data;       /* members for JSON: "\"tools\":3,..." */
};

struct doctor {
    const struct args *args;
    const char *only;      /* alias of the one server to check; NULL = all */
    struct config *config; /* NULL when it has errors */
    char *file;            /* of the configuration; NULL = built in */
    struct list checks;
    size_t count[DOCTOR_LEVELS];
    int daemon_pid;   /* of the running daemon; 0 = none */
    bool daemon_same; /* the running daemon has this configuration */
};

/* --- report.c --- */

/* Adds a check, which the doctor owns; hints and lines may be added to it. `server` may be NULL. */
struct doctor_check *doctor_add(struct doctor *d, enum doctor_level level, const char *group,
                                const char *server, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void doctor_hint(struct doctor_check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_line(struct doctor_check *c, struct span line);
void doctor_put(struct buf *out, const struct doctor *d, bool json);
void doctor_fini(struct doctor *d);
const char *doctor_plural(size_t n);

/* --- config.c --- */

/* Finds the configuration and reports its problems. */
void doctor_check_config(struct doctor *d);

/* --- program.c --- */

/* Checks the program of a server, or its address, before the start. */
void doctor_check_program(struct doctor *d, const struct config_server *s,
                          const struct server_plan *plan);

/* The value of the first of these variables that is set and not empty; NULL when none is. `names`
 * ends with NULL. */
const char *doctor_env(const char *const *names, const char **which);

/* --- start.c --- */

/* Checks the entries of the servers and, if `start`, starts the servers. */
void doctor_check_servers(struct doctor *d, bool start);

/* --- daemon.c --- */

/* Checks the daemon, if one runs, and the addresses where it listens or would listen. */
void doctor_check_daemon(struct doctor *d);

/* --- machine.c --- */

/* Checks folders, limits, clock. */
void doctor_check_machine(struct doctor *d);
/* Is `folder` a folder in which files can be made? */
bool doctor_can_write(const char *folder);

/* --- words.c: pure --- */

/* Advice for the reason why a server is not available; NULL when there is none. */
const char *doctor_advice(struct span why);
/* How to install a missing program; NULL when that is not known. */
const char *doctor_package(struct span program);
/* Does this argument look like the name of a file? */
bool doctor_names_file(struct span argument);
/* Does a list in the form of NO_PROXY include this host? */
bool doctor_list_has(struct span list, struct span host);

/* --- proc.c --- */

/* The inode of the listening socket, from the text of /proc/net/tcp, tcp6 or unix; false if there
 * is none. */
bool doctor_tcp_inode(struct span table, unsigned port, uint64_t *inode);
bool doctor_unix_inode(struct span table, const char *path, uint64_t *inode);
/* A variable in the environment of a process; false when it is not set or cannot be read. */
bool doctor_process_env(int pid, const char *name, struct buf *value);
/* The process that listens at "HOST:PORT" or "unix:PATH": returns its pid, or 0 when it cannot be
 * seen, and appends its name. */
int doctor_find_listener(const char *address, struct buf *name);

#endif
