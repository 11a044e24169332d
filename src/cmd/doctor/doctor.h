/*
 * doctor: what `rialto doctor` finds out, and the parts that find it.
 *
 * Each part adds checks: one line each, fine or not, with what to do about it. They only look; the
 * one thing that they do is to start the servers for a moment, as `rialto tools` does. Whatever is
 * shown passes the redactor. For this folder only.
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
    char *server;          /* its alias; NULL when it is about none */
    struct buf text, hint; /* hint may be empty */
    struct buf lines;      /* what somebody said, a line each; may be empty */
    struct buf data;       /* members for JSON: "\"tools\":3,..." */
};

struct doctor {
    const struct args *args;
    const char *only;      /* the one server to look at; NULL = all */
    struct config *config; /* NULL when it cannot be used */
    char *file;            /* of it; NULL = built in */
    struct list checks;
    size_t count[DOCTOR_LEVELS];
    int daemon_pid;   /* of the one that runs; 0 = none */
    bool daemon_same; /* and it has this very configuration */
};

/* --- report.c --- */

/* One more line; the check is the doctor's, and may be added to. `server` may be NULL. */
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

/* Finds the configuration and says what is wrong with it. */
void doctor_check_config(struct doctor *d);

/* --- program.c --- */

/* The program of a server, or its address, before it is started. */
void doctor_check_program(struct doctor *d, const struct config_server *s,
                          const struct server_plan *plan);

/* The first of these variables that says something; NULL when none does. NULL ends the names. */
const char *doctor_env(const char *const *names, const char **which);

/* --- start.c --- */

/* What can be seen of the servers, and, if `start`, what they do. */
void doctor_check_servers(struct doctor *d, bool start);

/* --- daemon.c --- */

/* The daemon, if one runs, and the addresses where it is, or would be. */
void doctor_check_daemon(struct doctor *d);

/* --- machine.c --- */

/* Folders, limits, clock. */
void doctor_check_machine(struct doctor *d);
/* Is it a folder in which files can be made? */
bool doctor_can_write(const char *folder);

/* --- words.c: pure --- */

/* What to do about a reason that a server is not available for; NULL when that is not known. */
const char *doctor_advice(struct span why);
/* How to come by a program that is missing; NULL when that is not known. */
const char *doctor_package(struct span program);
/* The program in the first line of a script ("#!..."), and what `env` is to find; empty when the
 * text is no script, or does not go through env. */
struct script {
    struct span interpreter, wanted;
    bool dos; /* the line ends with a carriage return, which becomes a part of the name */
};
struct script doctor_script(struct span head);
/* Is this argument surely meant as a file, by its looks? */
bool doctor_names_file(struct span argument);
/* Does a list as in NO_PROXY have this host? */
bool doctor_list_has(struct span list, struct span host);

/* --- proc.c --- */

/* The socket that listens, in the text of /proc/net/tcp, tcp6 or unix; false if there is none. */
bool doctor_tcp_inode(struct span table, unsigned port, uint64_t *inode);
bool doctor_unix_inode(struct span table, const char *path, uint64_t *inode);
/* A variable in the environment of a process; false when it is not there, or not to be seen. */
bool doctor_process_env(int pid, const char *name, struct buf *value);
/* Who listens there ("HOST:PORT", "unix:PATH"): its number, 0 when that is not to be seen, and its
 * name. */
int doctor_find_listener(const char *address, struct buf *name);

#endif
