/*
 * host_program: the host programs that `rialto setup` and `rialto import` know, a row each.
 *
 * A row says where the host keeps its MCP servers, in which format, below which keys, what an entry
 * of ours looks like there, and how the host writes variables and times. Everything else works on
 * these rows; to add a host, add a row.
 */
#ifndef RIALTO_CONFIG_HOST_PROGRAM_H
#define RIALTO_CONFIG_HOST_PROGRAM_H

#include "config/edit.h"

enum { HOST_PATHS = 5 };

/* How a host's texts refer to variables. */
enum host_variables {
    HOST_DOLLAR_BRACES, /* ${X}, ${env:X}, ${X:-default} */
    HOST_NO_VARIABLES,  /* "${" means nothing */
    HOST_BARE,          /* also $X */
    HOST_BARE_IN_URL,   /* also $X, in addresses and headers only */
    HOST_ENV_BRACES,    /* {env:X} */
    HOST_SECRETS,       /* ${{ secrets.X }} */
};

struct host_program {
    const char *name;  /* on the command line */
    const char *title; /* for people */
    /*
     * Its files. "~/" is the home folder, "$X/" the user's configuration folder, "$NAME" the value
     * of a variable; if it is not set, the path does not count. If the folder before "//" exists,
     * the host is installed.
     */
    const char *paths[HOST_PATHS];
    const char *program; /* if it is on PATH, the host is installed; may be NULL */
    const char *folder;  /* the same if this folder exists, for paths without "//"; may be NULL */
    enum edit_format format;
    struct edit_place place;
    bool projects;     /* its file also has servers of projects: projects.FOLDER.mcpServers */
    const char *entry; /* our entry in its file, as JSON; @ is the path of this program */
    const char *unit;  /* of a number in `timeout`: "s" or "ms"; NULL: not known */
    enum host_variables variables;
    const char *then; /* what the user has to do so that the host notices the change */
};

extern const struct host_program host_programs[];
extern const size_t host_programs_n;

const struct host_program *host_program_find(const char *name);
/* The host whose file has this path, wherever the home folder is; NULL when none has. */
const struct host_program *host_program_of_path(const char *path);
/* The host's n-th file, which may not exist; NULL past the end. *installed: the host seems to be
 * installed. The caller frees the path. */
char *host_program_path(const struct host_program *h, size_t n, bool *installed);
/* Is the program of this name on PATH? Its path, which the caller frees, or NULL. */
char *host_program_command(const char *name);

#endif
