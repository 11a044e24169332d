/* main of `rialto`: runs the command that the first argument names, or prints the help if there is
 * none. Under the name `conductor` it runs that command. Called by the C runtime. */
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/help.h"

#include <stdio.h>

/* The command that an option such as --help stands for; else the word itself. */
static const char *spelled_out(const char *word)
{
    static const struct {
        const char *word, *command;
    } same[] = {{"-h", "help"}, {"--help", "help"}, {"-V", "version"}, {"--version", "version"}};

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (strcmp(word, same[i].word) == 0)
            return same[i].command;
    return word;
}

static int no_such_command(const char *name)
{
    struct span near = command_nearest(name);

    cmd_error(NULL, "there is no command '%s'", name);
    if (near.n)
        cmd_hint("did you mean 'rialto " SPAN_FMT "'?", SPAN_ARG(near));
    else
        cmd_hint("'rialto help' lists the commands");
    return CMD_USAGE;
}

/* The command that the name of the program stands for: `conductor`; NULL for other names. */
static const struct command *called_as(const char *program)
{
    const char *slash = strrchr(program, '/');

    return strcmp(slash ? slash + 1 : program, "conductor") == 0 ? command_find("conductor") : NULL;
}

int main(int argc, char **argv)
{
    const struct command *itself = argc ? called_as(argv[0]) : NULL;

    mem_tune();
    if (itself)
        return cmd_finish(itself->run(itself, argc, argv));
    if (argc < 2) {
        BUF_SCOPED help = {0};
        help_put(&help, NULL);
        fputs(buf_cstr(&help), stderr);
        return CMD_USAGE;
    }
    const struct command *command = command_find(spelled_out(argv[1]));
    if (!command)
        return no_such_command(argv[1]);
    return cmd_finish(command->run(command, argc - 1, argv + 1));
}
