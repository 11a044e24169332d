/*
 * host_setup: what the files of the command `rialto setup` share.
 *
 * setup.c is the command and its table; host_setup_plan.c reads the hosts' files and makes the new
 * texts of these and of the user's own configuration; host_setup_journal.c writes the files, keeps
 * a journal of the changes in the folder of backups, and undoes them.
 */
#ifndef RIALTO_CMD_HOST_SETUP_H
#define RIALTO_CMD_HOST_SETUP_H

#include "base/arena.h"
#include "cmd/args.h"
#include "config/config.h"
#include "config/host_program.h"
#include "config/value.h"

enum { HOST_SETUP_FILES = 64, HOST_SETUP_ENTRIES = 1000 };

/* A server of a host that moves into the user's configuration. */
struct host_setup_entry {
    struct edit_place place; /* in the host's file */
    struct span name;        /* in the host's file */
    struct span entry;       /* of the host's file, as JSON */
    struct span alias;       /* its name in the user's configuration, new or already there */
    struct host_setup_entry *next;
};

/* A file that is or would be changed: of a host, or the user's configuration (host NULL). */
struct host_setup_file {
    const struct host_program *host;
    char *path; /* as people know it; may be a symbolic link */
    char *real; /* with symbolic links resolved: the file that is written */
    bool made;  /* the file does not exist yet */
    bool written;
    struct buf backup; /* the name of the backup that this run has made */
    struct buf before, after;
    struct host_setup_entry *taken; /* servers that move out of the file */
    size_t servers;                 /* how many servers the host has in it, ours not counted */
    const char *put;                /* the name of our entry if that is put in, else NULL */
    struct err wrong;               /* why the file is left alone; no text if it is not */
};

/* Everything that setup would do. */
struct host_setup {
    const struct args *args;
    struct arena arena;
    struct host_setup_file config;
    struct host_setup_file files[HOST_SETUP_FILES];
    size_t n;
    struct buf notes;      /* lines for people */
    struct config *user;   /* the user's configuration as it is, or the defaults */
    struct value *servers; /* of the user's configuration, as they will be */
    size_t before;         /* how many of `servers` are there already */
};

/* Plans all changes. `names` are `n` names of hosts; n = 0 means all hosts. 0, or an exit code
 * after a message. */
int host_setup_plan(struct host_setup *s, char **names, int n);
void host_setup_fini(struct host_setup *s);
/* Is the file to be changed? */
bool host_setup_changes(const struct host_setup_file *f);

/* Writes backups and the journal, then the files. 0, or negative after messages. */
int host_setup_carry_out(struct host_setup *s);
/* Undoes the changes for these hosts; n = 0 means all hosts. Returns an exit code. */
int host_setup_undo(const struct args *a, char **names, int n);

#endif
