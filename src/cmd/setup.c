/* The command `rialto setup`: shows the servers of this user's host programs, asks, and replaces
 * them by Rialto. Called through the table of commands (cmd/table.c). */
#include "cmd/host_setup.h"

#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/grid.h"
#include "config/nearest.h"
#include "wire/json_out.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPT_YES = 'y', OPT_DRY_RUN = ARGS_OWN, OPT_UNDO };

/* "move files, search; put rialto in" */
static void put_what(struct buf *out, const struct host_setup_file *f)
{
    const char *comma = "";

    if (f->wrong.text[0]) {
        buf_printf(out, "left alone: %s", f->wrong.text);
        return;
    }
    if (f->made)
        buf_str(out, "make it with rialto");
    else if (f->taken)
        buf_str(out, "move ");
    else if (!f->put)
        buf_str(out, "nothing to do");
    for (const struct host_setup_entry *e = f->taken; e; e = e->next, comma = ", ") {
        buf_printf(out, "%s" SPAN_FMT, comma, SPAN_ARG(e->name));
        if (!span_eq(e->name, e->alias))
            buf_printf(out, " (as " SPAN_FMT ")", SPAN_ARG(e->alias));
    }
    if (f->put && !f->made)
        buf_printf(out, "%sput %s in", f->taken ? "; " : "", f->put);
}

static void put_grid(struct buf *out, const struct host_setup *s)
{
    static const char *const titles[] = {"HOST", "FILE", "SERVERS", "WHAT IS DONE"};
    struct grid grid = {.columns = COUNT_OF(titles)};

    for (size_t i = 0; i < COUNT_OF(titles); i++)
        grid_add(&grid, span_str(titles[i]));
    for (size_t i = 0; i < s->n; i++) {
        const struct host_setup_file *f = &s->files[i];
        BUF_SCOPED what = {0}, servers = {0};
        put_what(&what, f);
        buf_u64(&servers, f->servers);
        grid_add(&grid, span_str(f->host->title));
        grid_add(&grid, span_str(f->path));
        grid_add(&grid, f->wrong.text[0] ? SPAN("?") : buf_view(&servers));
        grid_add(&grid, buf_view(&what));
    }
    grid_put(out, &grid);
    size_t n = s->servers->n - s->before;
    if (n)
        buf_printf(out, "\n%zu of their servers %s into %s%s.\n", n, n == 1 ? "goes" : "go",
                   s->config.path, s->config.made ? ", which is made" : "");
    buf_span(out, buf_view(&s->notes));
}

static void put_json(struct buf *out, const struct host_setup *s)
{
    buf_char(out, '[');
    for (size_t i = 0; i < s->n; i++) {
        const struct host_setup_file *f = &s->files[i];
        BUF_SCOPED what = {0};
        put_what(&what, f);
        json_out_open(out, NULL, '{');
        json_out_str(out, "host", f->host->name);
        json_out_str(out, "file", f->path);
        json_out_number(out, "servers", f->servers);
        json_out_bool(out, "changes", host_setup_changes(f));
        json_out_text(out, "what", buf_view(&what));
        buf_char(out, '}');
    }
    buf_str(out, "]\n");
}

/* Asks at the terminal. Only y and yes, in any case, are a yes. */
static bool ask(void)
{
    char line[16] = "";

    fputs("Do it? [y/N] ", stderr);
    if (!fgets(line, sizeof line, stdin))
        return false;
    struct span said = span_trim(span_cut(span_str(line), 0, strcspn(line, "\r\n")));
    return span_eq_nocase(said, SPAN("y")) || span_eq_nocase(said, SPAN("yes"));
}

/* Programs that keep what they run in a cache, which they empty: the path of ours would stop
 * working one day. Returns what installs it to stay; NULL: it is not in such a cache. */
static const char *lasting_install(void)
{
    static const struct {
        const char *cache, *install;
    } runners[] = {
        {"/_npx/", "npm install -g rialto-bridge"},
        {"/dlx", "pnpm add -g rialto-bridge"},
        {"/bunx-", "bun add -g rialto-bridge"},
        {"/archive-v0/", "uv tool install rialto-bridge"},
    };
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < COUNT_OF(runners); i++)
        if (strstr(self, runners[i].cache))
            return runners[i].install;
    return NULL;
}

static int carry_out(struct host_setup *s)
{
    struct buf out = {0};
    bool failed = host_setup_carry_out(s) != 0;

    if (failed || s->args->json)
        return failed ? CMD_FAILED : CMD_FINE;
    for (size_t i = 0; i < s->n; i++)
        if (host_setup_changes(&s->files[i]))
            buf_printf(&out, "%s: done; %s\n", s->files[i].host->title, s->files[i].host->then);
    buf_str(&out, "`rialto setup --undo` takes it back.\n");
    cmd_print(&out);
    return CMD_FINE;
}

static int run_plan(struct host_setup *s, bool yes, bool dry)
{
    bool changes = host_setup_changes(&s->config), wrong = false;
    struct buf out = {0};

    for (size_t i = 0; i < s->n; i++) {
        changes |= host_setup_changes(&s->files[i]);
        wrong |= s->files[i].wrong.text[0] != '\0';
    }
    if (s->args->json)
        put_json(&out, s);
    else if (s->n)
        put_grid(&out, s);
    else
        buf_str(&out, "none of these hosts is here\n");
    cmd_print(&out);
    int code = wrong ? CMD_FAILED : CMD_FINE;
    if (!changes || dry)
        return code;
    const char *install = lasting_install();
    if (install) {
        cmd_error(
            s->args->command,
            "this program is in a cache that is emptied now and then: hosts need one that stays");
        cmd_hint("`%s`, then `rialto setup` again", install);
        return CMD_FAILED;
    }
    if (!yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO))) {
        cmd_hint("nothing was done: there is no terminal to ask at, and --yes was not given");
        return code;
    }
    if (!yes && !ask()) {
        cmd_hint("nothing was done");
        return code;
    }
    return carry_out(s) ? CMD_FAILED : code;
}

/* Are all these words hosts? */
static bool are_hosts(const struct args *a)
{
    for (int i = 0; i < a->rest_n; i++) {
        struct nearest near = nearest_to(span_str(a->rest[i]));
        if (host_program_find(a->rest[i]))
            continue;
        for (size_t k = 0; k < host_programs_n; k++)
            nearest_offer(&near, span_str(host_programs[k].name));
        cmd_error(a->command, "there is no host '%s'", a->rest[i]);
        if (near.best.n)
            cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
        else
            cmd_hint("'rialto help setup' lists them");
        return false;
    }
    return true;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool yes = false, dry = false, undo = false;
    int id;

    while ((id = args_next(&a)) > 0) {
        yes |= id == OPT_YES;
        dry |= id == OPT_DRY_RUN;
        undo |= id == OPT_UNDO;
    }
    if (id < 0)
        return a.exit_code;
    if (dry && undo) {
        cmd_error(self, "--dry-run and --undo exclude each other");
        return CMD_USAGE;
    }
    if (!are_hosts(&a))
        return CMD_USAGE;
    if (undo)
        return host_setup_undo(&a, a.rest, a.rest_n);
    struct host_setup *s = MEM_NEW(struct host_setup);
    s->args = &a;
    int code = host_setup_plan(s, a.rest, a.rest_n);
    if (!code)
        code = run_plan(s, yes, dry);
    host_setup_fini(s);
    mem_free(s);
    return code;
}

static const struct cmd_option options[] = {
    {"yes", OPT_YES, NULL, "do it without asking"},
    {"dry-run", OPT_DRY_RUN, NULL, "show it, and do nothing"},
    {"undo", OPT_UNDO, NULL, "put back what setup changed"},
    ARGS_OPTION_JSON,
    {NULL}};

const struct command command_setup = {
    .name = "setup",
    .summary = "Move the servers of host programs into Rialto, and Rialto into them",
    .usage = "[HOST...]",
    .about =
        "Hosts: claude-desktop, claude-code (with its projects), cursor, vscode, windsurf, zed,\n"
        "codex, gemini, opencode, goose, continue, copilot, cline, lmstudio, jetbrains.\n"
        "It shows what is there and what would be done, and asks, at a terminal only. The servers\n"
        "of the hosts go into your own rialto.yaml, and Rialto takes their place. Everything\n"
        "else in the hosts' files stays as it is; --undo restores all of it.",
    .options = options,
    .run = run,
};
