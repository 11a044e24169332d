#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "config/edit.h"
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_OUTPUT = 'o' };

static int write_all(int fd, struct span text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text = span_from(text, (size_t)n);
    }
    return 0;
}

/* What other programs keep in their files may be secret: a new file is for its owner alone. */
static int write_new(const char *path, struct span text, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : write_all(fd, text);

    if (fd >= 0 && close(fd) < 0 && !rc)
        rc = -errno;
    return rc ? err_set(err, rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

/* A file that is there is replaced whole or not at all; a pipe or a device is written to. */
static int write_file(const struct command *self, const char *path, struct span text)
{
    struct stat st;
    struct err err;
    bool there = stat(path, &st) == 0;
    int rc = there && S_ISREG(st.st_mode) ? edit_replace_file(path, text, &err)
                                          : write_new(path, text, &err);

    if (!rc)
        return CMD_FINE;
    if (!there)
        (void)unlink(path);
    cmd_error(self, "%s", err.text);
    return CMD_FAILED;
}

static int import(const struct args *a, const char *from, const char *to)
{
    struct problems problems = {0};
    struct buf text = {0}, out = {0};
    int code = CMD_USAGE;

    bool fine = config_read_text(from, &text, &problems) &&
                config_convert(buf_view(&text), config_format_of(from, buf_view(&text)), from, &out,
                               &problems);
    buf_fini(&text);
    if (!fine || !a->quiet)
        args_show_problems(&problems);
    if (fine && to) {
        code = write_file(a->command, to, buf_view(&out));
        buf_fini(&out);
    } else if (fine) {
        cmd_print_exact(&out);
        code = CMD_FINE;
    }
    problems_fini(&problems);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    const char *output = NULL;
    int id;

    while ((id = args_next(&a)) > 0)
        if (id == OPT_OUTPUT)
            output = a.value;
    if (id < 0)
        return a.exit_code;
    if (!a.rest_n) {
        cmd_error(self, "which file? Give a configuration of another program");
        cmd_hint("rialto import ~/.cursor/mcp.json -o rialto.yaml");
        return CMD_USAGE;
    }
    if (args_expect(&a, 1))
        return CMD_USAGE;
    return import(&a, a.rest[0], output);
}

static const struct cmd_option options[] = {
    {"output", OPT_OUTPUT, "OUT", "write to this file instead of the standard output"},
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_import = {
    .name = "import",
    .summary = "Turn another program's configuration into one of ours",
    .usage = "FILE",
    .about =
        "Reads the files of Claude Desktop, Cursor, Windsurf, RockBot and the like (a map\n"
        "mcpServers), of VS Code (mcp.json or its settings), and manifest.yaml of assistant4,\n"
        "and prints the same as rialto.yaml. What could not be carried over stands in its\n"
        "comments. FILE may be - for the standard input.",
    .options = options,
    .run = run,
};
