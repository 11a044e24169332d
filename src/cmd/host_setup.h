/*
 * host_setup: what the files of the command `rialto setup` share.
 *
 * setup.c is the command and its table; host_setup_plan.c reads the hosts' files and finds out what
 * each and the user's own configuration are to become; host_setup_journal.c remembers what was
 * done, in the folder of backups, and takes it back.
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
    struct edit_place place; /* where it was */
    struct span name;        /* there */
    struct span entry;       /* there, as JSON */
    struct span alias;       /* here; also when it was here already */
    struct host_setup_entry *next;
};

/* A file that is or would be changed: of a host, or the user's configuration (host NULL). */
struct host_setup_file {
    const struct host_program *host;
    char *path; /* as people know it */
    char *real; /* the file itself, behind symbolic links */
    bool made;  /* there is none yet */
    struct buf before, after;
    struct host_setup_entry *taken; /* out of it */
    size_t servers;                 /* how many servers the host has in it, ours not counted */
    const char *put;                /* the name of our entry if that was put in, else NULL */
    struct err wrong;               /* text[0]: why it is left alone */
};

/* Everything that setup would do. */
struct host_setup {
    const struct args *args;
    struct arena arena;
    struct host_setup_file config;
    struct host_setup_file files[HOST_SETUP_FILES];
    size_t n;
    struct buf notes;      /* lines for people */
    struct config *user;   /* the user's configuration as it is, or what holds without one */
    struct value *servers; /* in it, as they will be */
    size_t before;         /* how many of them were there before */
};

/* Finds out what is to be done. `names` are those of the hosts; none means all. 0, or a status
 * after a message. */
int host_setup_plan(struct host_setup *s, char **names, int n);
void host_setup_fini(struct host_setup *s);
/* Is the file to be changed? */
bool host_setup_changes(const struct host_setup_file *f);

/* Writes backups and the journal, then the files. 0, or negative after messages. */
int host_setup_carry_out(struct host_setup *s);
/* Takes back what was done for these hosts; none means all. A status. */
int host_setup_undo(const struct args *a, char **names, int n);

#endif
