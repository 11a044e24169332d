/*
 * server_options: a server as a command line describes it, and its entry for a configuration.
 *
 *     rialto add NAME [OPTIONS] -- COMMAND...      rialto serve [OPTIONS] --from URL
 *
 * The command owns the struct; server_options_fini frees what the options left in it.
 */
#ifndef RIALTO_CMD_SERVER_OPTIONS_H
#define RIALTO_CMD_SERVER_OPTIONS_H

#include "cmd/args.h"

enum { SERVER_OPTIONS_ENV = 'e', SERVER_OPTIONS_HEADER = 'H', SERVER_OPTIONS_TRANSPORT = 't' };
enum { SERVER_OPTIONS_ALLOW = ARGS_OWN + 100, SERVER_OPTIONS_DENY };

/* Rows for a command's table. */
#define SERVER_OPTIONS_OPTIONS                                                                     \
    {"env", SERVER_OPTIONS_ENV, "K=V", "set a variable for the command; may be repeated"},         \
        {"header", SERVER_OPTIONS_HEADER, "'K: V'", "send a header to the URL; may be repeated"},  \
        {"allow", SERVER_OPTIONS_ALLOW, "GLOB", "offer only these tools; may be repeated"},        \
        {"deny", SERVER_OPTIONS_DENY, "GLOB", "hide these tools; may be repeated"},                \
    {                                                                                              \
        "transport", SERVER_OPTIONS_TRANSPORT, "WORD",                                             \
            "stdio, http, sse or ws; found out otherwise"                                          \
    }

struct server_options {
    struct buf env, headers; /* members of a JSON object */
    struct buf allow, deny;  /* elements of a JSON array */
    const char *transport;   /* a word of the configuration, or NULL */
    const char *url;         /* either this or `command` is set */
    char **command;
    int command_n;
};

void server_options_fini(struct server_options *o);
/* Takes one of the options above: 0, or CMD_USAGE after a message. Other ids are ignored. */
int server_options_read(struct server_options *o, const struct args *a, int id);
/* Does the command line go on with "-- COMMAND"? */
bool server_options_has_command(const struct args *a);
/* Takes what follows the options: an address, or a command with its arguments. 0, or CMD_USAGE
 * after a message. */
int server_options_words(struct server_options *o, const struct args *a, char **words, int n);
/* Append the entry as JSON. */
void server_options_put(struct buf *out, const struct server_options *o);
/*
 * The configuration with this server and nothing else, for commands that read no file: its tools
 * keep their names. The words are taken as they are, also "${". NULL, after a message, when there
 * is no such command or something is wrong; *code is then the exit code.
 */
struct config *server_options_config(const struct server_options *o, const struct args *a,
                                     int *code);

#endif
