/* The command `rialto pair`: prints a code for the consent page, lists or revokes what was granted
 * there, or hashes a password. Called through the table of commands (cmd/table.c). */
#include "base/ascii.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "io/scrypt.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { OPT_PASSWORD = ARGS_OWN, OPT_LIST, OPT_REVOKE };
enum { PASSWORD_MIN = 8, PASSWORD_MAX = 1024 };

/* --- the password --- */

/* Reads a line of the standard input, without echo on a terminal. False: it is too short. */
static bool read_line(struct buf *out)
{
    struct termios before, silent;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    char c;

    if (terminal) {
        fputs("Password: ", stderr);
        silent = before;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    }
    while (out->n < PASSWORD_MAX && read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
        buf_char(out, c);
    if (terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        fputc('\n', stderr);
    }
    return out->n >= PASSWORD_MIN;
}

static int put_password(const struct command *self)
{
    BUF_SCOPED word = {0}, out = {0};
    struct err err;

    if (!read_line(&word)) {
        cmd_error(self, "a password has at least %d characters", PASSWORD_MIN);
        return CMD_USAGE;
    }
    buf_str(&out, "password: ");
    int code = scrypt_put(&out, buf_view(&word), &err);
    explicit_bzero(word.p, word.n);
    if (code) {
        cmd_error(self, "%s", err.text);
        return CMD_FAILED;
    }
    buf_char(&out, '\n');
    cmd_print(&out);
    cmd_hint("put this line below 'auth:' of the configuration");
    return CMD_FINE;
}

/* --- codes and grants --- */

static int put_code(struct daemon *d, const struct args *a)
{
    BUF_SCOPED answer = {0}, scratch = {0};
    struct buf out = {0};
    int status;

    if (daemon_fetch(d, "/api/pair", SPAN("{}"), &status, &answer))
        return CMD_FAILED;
    if (!daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    if (a->json)
        buf_span(&out, buf_view(&answer));
    else
        buf_printf(&out, "code: %s\n", daemon_cstr(buf_view(&answer), "code", &scratch));
    cmd_print(&out);
    return CMD_FINE;
}

static int list_grants(struct daemon *d, const struct args *a)
{
    static const char *const columns[] = {"ID", "NAME", "SCOPE", "CLIENT"};
    static const char *const members[] = {"id", "name", "scope", "client"};
    BUF_SCOPED answer = {0};
    struct buf out = {0};
    int status;

    if (daemon_fetch(d, "/api/grants", SPAN_EMPTY, &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    if (a->json) {
        buf_span(&out, buf_view(&answer));
        cmd_print(&out);
        return CMD_FINE;
    }
    struct grid g = {.columns = COUNT_OF(members)};
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        grid_add(&g, span_str(columns[i]));
    for (struct json_iter it = json_iter(buf_view(&answer)); json_next(&it);) {
        for (size_t i = 0; i < COUNT_OF(members); i++) {
            BUF_SCOPED scratch = {0};
            grid_add(&g, daemon_text(it.value, members[i], &scratch));
        }
    }
    grid_put(&out, &g);
    cmd_print(&out);
    return CMD_FINE;
}

static int end_grant(struct daemon *d, const struct args *a, const char *id)
{
    BUF_SCOPED answer = {0}, path = {0};
    int status;

    if (!*id || !ascii_is_words(span_str(id), "")) {
        cmd_error(a->command, "expected the ID of a grant, as --list shows it");
        return CMD_USAGE;
    }
    buf_printf(&path, "/api/grants/%s/revoke", id);
    if (daemon_fetch(d, buf_cstr(&path), SPAN("{}"), &status, &answer))
        return CMD_FAILED;
    return daemon_agreed(d, status, buf_view(&answer)) ? CMD_FINE : CMD_FAILED;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool password = false, list = false;
    const char *ended = NULL;
    int id;

    while ((id = args_next(&a)) > 0) {
        password |= id == OPT_PASSWORD;
        list |= id == OPT_LIST;
        ended = id == OPT_REVOKE ? a.value : ended;
    }
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    if (password)
        return put_password(self);
    struct daemon *d = daemon_find(&a);
    if (!d)
        return CMD_FAILED;
    int code = ended ? end_grant(d, &a, ended) : list ? list_grants(d, &a) : put_code(d, &a);
    daemon_free(d);
    return code;
}

static const struct cmd_option options[] = {
    {"list", OPT_LIST, NULL, "list the agents that were let in, and by which grant"},
    {"revoke", OPT_REVOKE, "ID", "end a grant: its tokens, and all that they have open"},
    {"password", OPT_PASSWORD, NULL, "read a password, and print what to put into auth.password"},
    ARGS_OPTION_CONFIG,
    ARGS_OPTION_JSON,
    {NULL},
};

const struct command command_pair = {
    .name = "pair",
    .summary = "Print a code that lets an agent in on the consent page",
    .usage = "",
    .about =
        "With auth.issuer: built-in, agents such as claude.ai sign in at this Rialto: a page asks\n"
        "whether to let them in, and wants this code, which is good once and for ten minutes,\n"
        "or the password of auth.password. 'rialto browser pair' is something else: the token\n"
        "of web pages that offer tools.",
    .options = options,
    .run = run,
};
