/* The help texts, made from the tables of commands and options, and the command `rialto help`.
 * Called by main.c without a command, by args.c for --help, and through the table of commands. */
#include "cmd/help.h"

#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/man.h"

enum { COLUMN = 26, OPT_MAN = ARGS_OWN };

/* "  LEFT     RIGHT"; RIGHT goes on the next line if LEFT reaches into its column. */
static void put_row(struct buf *out, const char *left, const char *right)
{
    if (strlen(left) > COLUMN) {
        buf_printf(out, "  %s\n", left);
        left = "";
    }
    buf_printf(out, "  %-*s %s\n", COLUMN, left, right);
}

static void put_option(struct buf *out, const struct cmd_option *o)
{
    BUF_SCOPED left = {0};

    if (o->id < 256)
        buf_printf(&left, "-%c, ", o->id);
    else
        buf_str(&left, "    ");
    buf_printf(&left, "--%s%s%s", o->name, o->arg && o->arg[0] != '[' ? " " : "",
               o->arg ? o->arg : "");
    put_row(out, buf_cstr(&left), o->help);
}

static void put_overview(struct buf *out)
{
    buf_str(out, "Usage: rialto COMMAND [OPTIONS] [ARGS]\n\n"
                 "The bridge between agents and tools that speak MCP and its relatives.\n\n"
                 "Commands:\n");
    for (size_t i = 0; commands[i]; i++)
        put_row(out, commands[i]->name, commands[i]->summary);
    buf_str(out, "\n'rialto help COMMAND' tells more about one.\n");
}

void help_put(struct buf *out, const struct command *command)
{
    if (!command) {
        put_overview(out);
        return;
    }
    buf_printf(out, "Usage: rialto %s [OPTIONS]%s%s\n\n%s.\n", command->name,
               *command->usage ? " " : "", command->usage, command->summary);
    if (command->about)
        buf_printf(out, "\n%s\n", command->about);
    buf_str(out, "\nOptions:\n");
    for (const struct cmd_option *o = command->options; o->name; o++)
        put_option(out, o);
    put_option(out, &(struct cmd_option){"help", 'h', NULL, "show this help"});
}

void help_show(const struct command *command)
{
    struct buf out = {0};

    help_put(&out, command);
    cmd_print(&out);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool man = false;
    int id;

    while ((id = args_next(&a)) > 0)
        man = true;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    const struct command *about = a.rest_n ? command_find(a.rest[0]) : NULL;
    if (a.rest_n && !about) {
        cmd_error(self, "there is no command '%s'", a.rest[0]);
        struct span near = command_nearest(a.rest[0]);
        if (near.n)
            cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near));
        return CMD_USAGE;
    }
    if (man) {
        struct buf page = {0};
        man_put(&page, about);
        cmd_print(&page);
    } else {
        help_show(about);
    }
    return CMD_FINE;
}

static const struct cmd_option options[] = {
    {"man", OPT_MAN, NULL, "print the manual page: rialto help --man | man -l -"}, {NULL}};

const struct command command_help = {
    .name = "help",
    .summary = "Show the commands, or explain one",
    .usage = "[COMMAND]",
    .options = options,
    .run = run,
};
