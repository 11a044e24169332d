/* The commands `rialto start`, `stop` and `restart`: one server of the running daemon. Called
 * through the table of commands (cmd/table.c). */
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "config/check.h"

enum { ACCEPTED = 202 };

static int order(struct daemon *d, const struct args *a)
{
    BUF_SCOPED path = {0}, answer = {0}, scratch = {0};
    struct buf out = {0};
    int status;

    buf_printf(&path, "/api/servers/%s/%s", a->rest[0], a->command->name);
    if (daemon_fetch(d, buf_cstr(&path), SPAN("{}"), &status, &answer))
        return CMD_FAILED;
    if (status != ACCEPTED)
        return daemon_agreed(d, status, buf_view(&answer)) ? CMD_FINE : CMD_FAILED;
    if (a->json)
        buf_span(&out, buf_view(&answer));
    else
        buf_printf(&out, "%s: %s\n", a->rest[0], daemon_cstr(buf_view(&answer), "state", &scratch));
    cmd_print(&out);
    return CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    const char *wrong = a.rest_n ? check_alias(span_str(a.rest[0])) : "give its name";
    if (wrong) {
        cmd_error(self, "which server? %s", wrong);
        cmd_hint("`rialto status` lists them");
        return CMD_USAGE;
    }
    if (args_expect(&a, 1))
        return CMD_USAGE;
    return daemon_do(&a, order);
}

static const struct cmd_option options[] = {ARGS_OPTION_CONFIG, ARGS_OPTION_JSON, {NULL}};

const struct command command_start = {
    .name = "start",
    .summary = "Start a server of the running daemon",
    .usage = "NAME",
    .about = "Also one that was given up after too many failures.",
    .options = options,
    .run = run,
};

const struct command command_stop = {
    .name = "stop",
    .summary = "Stop a server of the running daemon",
    .usage = "NAME",
    .about = "Its open calls end, and its tools are not offered until `rialto start`. The\n"
             "configuration stays as it is: `rialto disable` is for good.",
    .options = options,
    .run = run,
};

const struct command command_restart = {
    .name = "restart",
    .summary = "Stop and start a server of the running daemon",
    .usage = "NAME",
    .options = options,
    .run = run,
};
