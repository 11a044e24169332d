/*
 * args: the options of a command line, parsed with the command's table of options.
 *
 *     struct args a = args_begin(self, argc, argv);
 *     int id;
 *     while ((id = args_next(&a)) > 0)
 *         switch (id) ...                   a.value is the option's argument
 *     if (id < 0)
 *         return a.exit_code;               help was shown, or the line was wrong
 *     ... a.rest[0 .. a.rest_n]
 *
 * The common options below are kept in the struct and not returned. -h and --help always exist.
 */
#ifndef RIALTO_CMD_ARGS_H
#define RIALTO_CMD_ARGS_H

#include "cmd/cmd.h"
#include "config/config.h"
#include "config/problems.h"

enum { ARGS_JSON = 256, ARGS_OWN /* first id for a command's own long options */ };

/* Rows for a command's table. */
#define ARGS_OPTION_CONFIG                                                                         \
    {                                                                                              \
        "config", 'c', "FILE", "read this configuration (also RIALTO_CONFIG)"                      \
    }
#define ARGS_OPTION_JSON                                                                           \
    {                                                                                              \
        "json", ARGS_JSON, NULL, "print JSON"                                                      \
    }
#define ARGS_OPTION_VERBOSE                                                                        \
    {                                                                                              \
        "verbose", 'v', NULL, "log more"                                                           \
    }
#define ARGS_OPTION_QUIET                                                                          \
    {                                                                                              \
        "quiet", 'q', NULL, "say only what is wrong"                                               \
    }

struct args {
    const struct command *command;
    int argc;
    char **argv;

    const char *config;
    bool outside; /* the working folder is not searched for a configuration */
    bool serves;  /* serves hosts: their project folders count, not the working folder */
    bool json, verbose, quiet;

    const char *value;
    char **rest;
    int rest_n;
    int exit_code;
};

struct args args_begin(const struct command *command, int argc, char **argv);
int args_next(struct args *a);
/* 0, or CMD_USAGE with a message when more than `most` arguments are left. */
int args_expect(const struct args *a, int most);

/*
 * The configuration these options ask for: the file, then the environment. Sets the format and
 * level of the log. Problems go to the standard error. NULL when there are errors: leave with
 * CMD_USAGE.
 */
struct config *args_load_config(const struct args *a);
/* The same in two steps, for commands that show the problems in another way. */
struct config *args_read_config(const struct args *a, struct problems *problems);
void args_show_problems(const struct problems *problems);
/* Prints that there is no server of this name, and the most similar name. Returns CMD_USAGE. */
int args_no_server(const struct command *who, const struct config *c, const char *name);

#endif
