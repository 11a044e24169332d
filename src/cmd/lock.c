/* The command `rialto lock`: writes the tools of all servers as mcp.lock, or compares them with it.
 * Called through the table of commands (cmd/table.c). */
#include "hub/graph/lock.h"

#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/query.h"

#include <unistd.h>

enum { OPT_CHECK = ARGS_OWN };

struct lock_run {
    const struct command *self;
    struct lock *approved; /* the file to compare with; NULL: write it */
    const char *path;
};

static int compare(const struct lock_run *r, const struct lock *recorded)
{
    BUF_SCOPED lines = {0};
    struct buf out = {0};

    lock_put_comparison(&lines, recorded, r->approved);
    bool same = !lines.n;
    if (same)
        buf_printf(&out, "%s: %zu tools, all as approved\n", r->path, lock_count(recorded));
    for (struct span rest = buf_view(&lines); rest.n;) {
        struct span line = span_cut(rest, 0, span_find(rest, '\n'));
        cmd_put_plain(&out, line);
        buf_char(&out, '\n');
        rest = span_from(rest, line.n + 1);
    }
    cmd_print(&out);
    return same ? CMD_FINE : CMD_FAILED;
}

static int write_file(const struct lock_run *r, struct lock *recorded)
{
    bool first = access(r->path, F_OK) != 0;
    struct buf out = {0};
    struct err err = {0};

    if (lock_write(recorded, &err)) {
        cmd_error(r->self, "%s", err.text);
        return CMD_FAILED;
    }
    buf_printf(&out, "%s: %zu tools\n", r->path, lock_count(recorded));
    if (first)
        buf_str(&out, "A daemon that runs takes it with 'rialto reload', and follows it from then "
                      "on.\n");
    cmd_print(&out);
    return CMD_FINE;
}

static void settled(struct query_run *a)
{
    const struct lock_run *r = a->arg;
    struct lock *recorded = bridge_lock(a->bridge);
    int code = CMD_FAILED;

    if (query_report_failures(r->self, a)) {
        if (!r->approved)
            cmd_hint("nothing was written; 'enabled: false' leaves a server out");
    } else {
        code = r->approved ? compare(r, recorded) : write_file(r, recorded);
    }
    query_finish(a, code);
}

static int start(const struct args *a, struct config *config, struct lock_run *r, bool check)
{
    if (!config->file) {
        cmd_error(a->command, "there is no configuration, so there is nothing to lock");
        cmd_hint("-c FILE names one");
        return CMD_USAGE;
    }
    char *path = lock_path(config->file);
    int code = CMD_FAILED;
    r->path = path;
    r->approved = check ? lock_new(config) : NULL;
    if (check && !lock_in_force(r->approved)) {
        cmd_error(a->command, "there is no %s", path);
        cmd_hint("'rialto lock' writes it");
    } else if (!check || lock_is_readable(r->approved)) {
        config->lock.on_change = ON_CHANGE_RECORD;
        code = query_run(config, &(struct query_how){.verbose = a->verbose, .quiet = a->quiet},
                         settled, r);
    }
    if (r->approved)
        lock_free(r->approved);
    mem_free(path);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct lock_run r = {.self = self};
    bool check = false;
    int id;

    while ((id = args_next(&a)) > 0)
        check |= id == OPT_CHECK;
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    struct config *config = args_load_config(&a);
    if (!config)
        return CMD_USAGE;
    int code = start(&a, config, &r, check);
    config_free(config);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"check", OPT_CHECK, NULL, "compare only: exit 1 for a changed, new or vanished tool"},
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};

const struct command command_lock = {
    .name = "lock",
    .summary = "Approve the tools as they are now: writes mcp.lock",
    .usage = "",
    .about = "Starts every server and writes mcp.lock beside the configuration: a line for each\n"
             "tool, with the digest of what agents go by (name, description, schemas,\n"
             "annotations). From then on a tool that is new or has changed is not offered, or as\n"
             "'lock.on_change' says. When a server does not start, nothing is written.",
    .options = options,
    .run = run,
};
