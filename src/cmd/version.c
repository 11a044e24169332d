/* The command `rialto version`: the version and the compiler. Called through the table of commands
 * (cmd/table.c). */
#include "cmd/args.h"
#include "cmd/commands.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct buf out = {0};

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    if (a.json)
        buf_printf(&out, "{\"version\":\"%s\",\"compiler\":\"%s\"}\n", RIALTO_VERSION, COMPILER);
    else
        buf_printf(&out, "rialto %s\ncompiled with %s\n", RIALTO_VERSION, COMPILER);
    cmd_print(&out);
    return CMD_FINE;
}

static const struct cmd_option options[] = {ARGS_OPTION_JSON, {NULL}};

const struct command command_version = {
    .name = "version",
    .summary = "Show the version",
    .usage = "",
    .options = options,
    .run = run,
};
