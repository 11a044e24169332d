/*
 * server_wish: a server as a command line describes it, and its entry for a configuration.
 *
 *     rialto add NAME [OPTIONS] -- COMMAND...      rialto serve [OPTIONS] --from URL
 *
 * The command owns the struct; server_wish_fini frees what the options left in it.
 */
#ifndef RIALTO_CMD_SERVER_WISH_H
#define RIALTO_CMD_SERVER_WISH_H

#include "cmd/args.h"

enum { SERVER_WISH_ENV = 'e', SERVER_WISH_HEADER = 'H', SERVER_WISH_TRANSPORT = 't' };
enum { SERVER_WISH_ALLOW = ARGS_OWN + 100, SERVER_WISH_DENY };

/* Rows for a command's table. */
#define SERVER_WISH_OPTIONS                                                                        \
    {"env", SERVER_WISH_ENV, "K=V", "set a variable for the command; may be repeated"},            \
        {"header", SERVER_WISH_HEADER, "'K: V'", "send a header to the URL; may be repeated"},     \
        {"allow", SERVER_WISH_ALLOW, "GLOB", "offer only these tools; may be repeated"},           \
        {"deny", SERVER_WISH_DENY, "GLOB", "hide these tools; may be repeated"},                   \
    {                                                                                              \
        "transport", SERVER_WISH_TRANSPORT, "WORD", "stdio, http, sse or ws; found out otherwise"  \
    }

struct server_wish {
    struct buf env, headers; /* members of a JSON object */
    struct buf allow, deny;  /* elements of a JSON array */
    const char *transport;   /* a word of the configuration, or NULL */
    const char *url;         /* either this or `command` is set */
    char **command;
    int command_n;
};

void server_wish_fini(struct server_wish *w);
/* Takes one of the options above: 0, or CMD_USAGE after a message. Other ids are ignored. */
int server_wish_option(struct server_wish *w, const struct args *a, int id);
/* Does the command line go on with "-- COMMAND"? */
bool server_wish_has_command(const struct args *a);
/* Takes what follows the options: an address, or a command with its arguments. 0, or CMD_USAGE
 * after a message. */
int server_wish_words(struct server_wish *w, const struct args *a, char **words, int n);
/* Append the entry as JSON. */
void server_wish_put(struct buf *out, const struct server_wish *w);
/*
 * The configuration with this server and nothing else, for commands that read no file: its tools
 * keep their names. The words are taken as they are, also "${". NULL, after a message, when there
 * is no such command or something is wrong; *code is then the exit code.
 */
struct config *server_wish_config(const struct server_wish *w, const struct args *a, int *code);

#endif
