/* The command `rialto import`: converts another program's file and writes the result. Called
 * through the table of commands (cmd/table.c). */
#include "base/file.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "config/edit.h"
#include "config/host_program.h"
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_OUTPUT = 'o', OPT_HOST = ARGS_OWN };

/* Writes to a pipe or a device. */
static int write_into(const char *path, struct span text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : file_write_fd(fd, text);

    if (fd >= 0 && close(fd) < 0 && !rc)
        rc = -errno;
    return rc;
}

/*
 * A file is replaced whole or not at all. A new file has mode 0600, because other programs' files
 * may have secrets in them.
 */
static int write_file(const struct command *self, const char *path, struct span text)
{
    struct stat st;
    struct err err;
    bool there = stat(path, &st) == 0;

    int rc = !there                ? file_replace(path, text)
             : S_ISREG(st.st_mode) ? edit_replace_file(path, text, &err)
                                   : write_into(path, text);

    if (!rc)
        return CMD_FINE;
    cmd_error(self, "cannot write %s: %s", path, err_name(rc));
    return CMD_FAILED;
}

static int import(const struct args *a, const struct host_program *host, const char *from,
                  const char *to)
{
    struct problems problems = {0};
    BUF_SCOPED text = {0}, out = {0};
    static const enum config_format formats[] = {
        [EDIT_JSON] = CONFIG_JSON, [EDIT_YAML] = CONFIG_YAML, [EDIT_TOML] = CONFIG_TOML};
    int code = CMD_USAGE;

    if (!host)
        host = host_program_of_path(from);
    bool fine =
        config_read_text(from, &text, &problems) &&
        config_convert(buf_view(&text),
                       host ? formats[host->format] : config_format_of(from, buf_view(&text)), host,
                       from, &out, &problems);
    if (!fine || !a->quiet)
        args_show_problems(&problems);
    if (fine && to) {
        code = write_file(a->command, to, buf_view(&out));
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
    const char *output = NULL, *name = NULL;
    int id;

    while ((id = args_next(&a)) > 0)
        *(id == OPT_OUTPUT ? &output : &name) = a.value;
    if (id < 0)
        return a.exit_code;
    const struct host_program *host = name ? host_program_find(name) : NULL;
    if (name && !host) {
        cmd_error(self, "there is no host '%s'", name);
        cmd_hint("'rialto help setup' lists them");
        return CMD_USAGE;
    }
    if (!a.rest_n) {
        cmd_error(self, "which file? Give a configuration of another program");
        cmd_hint("rialto import ~/.cursor/mcp.json -o rialto.yaml");
        return CMD_USAGE;
    }
    if (args_expect(&a, 1))
        return CMD_USAGE;
    return import(&a, host, a.rest[0], output);
}

static const struct cmd_option options[] = {
    {"output", OPT_OUTPUT, "OUT", "write to this file instead of the standard output"},
    {"host", OPT_HOST, "HOST", "whose file it is, if neither its path nor its content tells"},
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_import = {
    .name = "import",
    .summary = "Turn another program's configuration into one of ours",
    .usage = "FILE",
    .about =
        "Reads the files of the hosts that 'rialto help setup' lists (and of others with a map\n"
        "mcpServers, such as RockBot), VS Code's settings, and manifest.yaml of assistant4, and\n"
        "prints the same as rialto.yaml. What could not be carried over is in its comments.\n"
        "FILE may be - for the standard input. 'rialto setup' does it for all hosts at once.",
    .options = options,
    .run = run,
};
