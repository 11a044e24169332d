/* The command `rialto upgrade`: has another program take over from the running daemon. Called
 * through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "wire/json_out.h"

#include <limits.h>
#include <unistd.h>

/* For the rehearsal, for the last calls of an upgrade before this one, and for the start. */
enum { PATIENCE_MS = (15 + 30 + 20) * 1000 };

/* Makes the path absolute, because the daemon has another working folder. Symbolic links are not
 * resolved: the next upgrade follows them again. */
static void put_program(struct buf *out, const char *program)
{
    char folder[PATH_MAX];
    BUF_SCOPED path = {0};

    if (program[0] != '/' && strchr(program, '/') && getcwd(folder, sizeof folder))
        buf_printf(&path, "%s/", folder);
    buf_str(&path, program);
    json_out_str(out, "program", buf_cstr(&path));
}

static int upgrade(struct daemon *d, const struct args *a)
{
    BUF_SCOPED body = {0}, answer = {0};
    int status;

    buf_char(&body, '{');
    if (a->rest_n)
        put_program(&body, a->rest[0]);
    buf_char(&body, '}');
    daemon_wait_for(d, PATIENCE_MS);
    if (daemon_fetch(d, "/upgrade", buf_view(&body), &status, &answer) ||
        !daemon_agreed(d, status, buf_view(&answer)))
        return CMD_FAILED;
    struct buf out = {0};
    if (a->json)
        buf_span(&out, buf_view(&answer));
    else
        buf_str(&out, "the new program serves; calls that were open end in the old one\n");
    cmd_print(&out);
    return CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    return daemon_do(&a, upgrade);
}

static const struct cmd_option options[] = {ARGS_OPTION_CONFIG, ARGS_OPTION_JSON, {NULL}};

const struct command command_upgrade = {
    .name = "upgrade",
    .summary = "Let a new program take over from the running daemon, without losing a call",
    .usage = "[PROGRAM]",
    .about = "By default the program is the file that the daemon was started from, which may be\n"
             "another one by now. It is tried first: if it cannot start, or rejects the\n"
             "configuration, the daemon goes on as it was, and the exit status is 1.",
    .options = options,
    .run = run,
};
