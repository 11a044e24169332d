/* The command `rialto doctor`: its options, and the order of the checks. Called through the table
 * of commands (cmd/table.c). */
#include "cmd/doctor/doctor.h"

#include "base/mem.h"
#include "cmd/commands.h"

enum { OPT_NO_START = ARGS_OWN };

/* False, with a message, if the configuration does not have the server to check. */
static bool has_server(const struct doctor *d)
{
    if (!d->only || !d->config || config_server(d->config, d->only))
        return true;
    args_no_server(d->args->command, d->config, d->only);
    return false;
}

static int examine(struct doctor *d, bool start)
{
    struct buf out = {0};

    list_init(&d->checks);
    doctor_check_config(d);
    if (!has_server(d))
        return CMD_USAGE;
    if (!d->only) {
        doctor_check_daemon(d);
        doctor_check_machine(d);
    }
    if (d->config)
        doctor_check_servers(d, start);
    doctor_put(&out, d, d->args->json);
    cmd_print(&out);
    return d->count[DOCTOR_FAIL] ? CMD_FAILED : CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool start = true;
    int id;

    while ((id = args_next(&a)) > 0)
        start = false;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    struct doctor d = {.args = &a, .only = a.rest_n ? a.rest[0] : NULL};
    int code = examine(&d, start);
    doctor_fini(&d);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG, {"no-start", OPT_NO_START, NULL, "only look: do not start the servers"},
    ARGS_OPTION_JSON,   ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,  {NULL}};

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Find out why something does not work, and what to do about it",
    .usage = "[SERVER]",
    .about =
        "Looks at the configuration, the running daemon, addresses, folders and limits, and at\n"
        "the programs and addresses of the servers; then starts each server for a moment, all\n"
        "at once and for 15 s at most, and tells how far it came. Nothing is changed. With a\n"
        "server's name only that one is looked at. Exits with 1 when something fails; warnings\n"
        "are fine.",
    .options = options,
    .run = run,
};
