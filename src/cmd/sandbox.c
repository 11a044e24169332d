/* The command `rialto sandbox`: shows what a server may do and what this kernel enforces, or starts
 * the server without a sandbox and proposes one. Called through the table of commands
 * (cmd/table.c). */
#include "hub/graph/sandbox.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/learn.h"
#include "cmd/query.h"
#include "config/units.h"
#include "hub/graph/server.h"
#include "io/program.h"
#include "wire/json_out.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPT_LEARN = ARGS_OWN, LEARN_MS = 10 * 1000, TRACE_MOST = 64 << 20 };

/* What is shown: the rules of one server, on this machine. */
struct cage_shown {
    const struct config_server *server;
    const struct cage_rules *rules; /* NULL: no sandbox */
    struct cage_list paths;
    struct cage_kernel kernel;
    struct buf lacks;
    struct err err; /* why the server would not be started; no text if it would */
};

/* --- what it may do --- */

static const struct {
    const char *title, *key;
    unsigned may;
} kinds[] = {
    {"reads and runs", "read_and_run", CAGE_READ | CAGE_RUN},
    {"reads", "read", CAGE_READ},
    {"writes", "write", CAGE_READ | CAGE_WRITE},
    {"writes and runs", "write_and_run", CAGE_READ | CAGE_WRITE | CAGE_RUN},
};

/* Is the path in a folder that is shown with the same rights? */
static bool is_covered(const struct cage_list *list, size_t i)
{
    for (size_t k = 0; k < list->n; k++) {
        bool same = strcmp(list->items[k].path, list->items[i].path) == 0;
        if (list->items[k].may == list->items[i].may && (same ? k < i : k != i) &&
            cage_path_in(span_str(list->items[i].path), span_str(list->items[k].path)))
            return true;
    }
    return false;
}

static void put_network(struct buf *out, const struct cage_rules *r)
{
    static const char *const words[] = {[CAGE_OPEN] = "all, and Unix sockets",
                                        [CAGE_NO_UNIX] = "all",
                                        [CAGE_PORTS] = "TCP to ports",
                                        [CAGE_NO_SOCKET] = "none"};

    buf_str(out, words[r->network]);
    for (size_t i = 0; i < r->n_ports; i++)
        buf_printf(out, "%s%u", i ? ", " : " ", r->ports[i]);
}

static void put_limits(struct buf *out, const struct cage_shown *s)
{
    const struct cage_rules *r = s->rules;

    buf_printf(out, "  limits           %llu open files a process, no core dumps",
               (unsigned long long)r->files);
    if (r->memory) {
        buf_str(out, ", memory ");
        units_put_size(out, r->memory);
        buf_str(out, s->kernel.group_memory ? " in all" : " a process (no control group here)");
    }
    if (r->processes)
        buf_printf(out, ", %llu processes", (unsigned long long)r->processes);
    if (r->cpu) {
        buf_str(out, ", CPU time ");
        units_put_duration(out, r->cpu);
        buf_str(out, " a process");
    }
    buf_char(out, '\n');
}

static void put_kernel(struct buf *out, const struct cage_shown *s)
{
    buf_str(out, "this kernel: ");
    if (s->kernel.landlock)
        buf_printf(out, "Landlock ABI %d, ", s->kernel.landlock);
    else
        buf_str(out, "no Landlock, ");
    buf_str(out, s->kernel.filter ? "seccomp\n" : "no seccomp\n");
    if (s->lacks.n)
        buf_printf(out, "it cannot enforce: " SPAN_FMT "\n%s\n", SPAN_ARG(buf_view(&s->lacks)),
                   s->rules->warns ? "the server is started without (sandbox.missing: warn)"
                                   : "so the server is not started (sandbox.missing: refuse)");
    if (s->rules->network == CAGE_OPEN && s->kernel.landlock < 9)
        buf_str(out, "note: socket files (docker, ssh-agent) can be reached at this level\n");
    if (s->err.text[0])
        buf_printf(out, "not started: %s\n", s->err.text);
}

static void put_text(struct buf *out, const struct cage_shown *s)
{
    buf_printf(out, "%s: sandbox %s\n", s->server->alias, sandbox_word(s->server->sandbox.level));
    if (!s->rules) {
        buf_printf(out,
                   "  nothing is refused; 'rialto sandbox %s --learn' proposes what it needs\n",
                   s->server->alias);
        return;
    }
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t i = 0, n = 0; i < s->paths.n; i++)
            if (s->paths.items[i].may == kinds[k].may && !is_covered(&s->paths, i))
                buf_printf(out, "  %-16s %s\n", n++ ? "" : kinds[k].title, s->paths.items[i].path);
    buf_str(out, "  network          ");
    put_network(out, s->rules);
    buf_char(out, '\n');
    put_limits(out, s);
    put_kernel(out, s);
}

static void put_json(struct buf *out, const struct cage_shown *s)
{
    buf_char(out, '{');
    json_out_str(out, "server", s->server->alias);
    json_out_str(out, "level", sandbox_word(s->server->sandbox.level));
    for (size_t k = 0; k < COUNT_OF(kinds) && s->rules; k++) {
        json_out_open(out, kinds[k].key, '[');
        for (size_t i = 0; i < s->paths.n; i++)
            if (s->paths.items[i].may == kinds[k].may && !is_covered(&s->paths, i))
                json_out_str(out, NULL, s->paths.items[i].path);
        buf_char(out, ']');
    }
    if (s->rules) {
        BUF_SCOPED network = {0};
        put_network(&network, s->rules);
        json_out_text(out, "network", buf_view(&network));
        json_out_number(out, "memory", s->rules->memory);
        json_out_number(out, "processes", s->rules->processes);
        json_out_number(out, "cpu_ms", s->rules->cpu);
        json_out_number(out, "files", s->rules->files);
        json_out_text_or_null(out, "refused", span_str(s->err.text[0] ? s->err.text : NULL));
    }
    json_out_open(out, "kernel", '{');
    json_out_number(out, "landlock", (uint64_t)s->kernel.landlock);
    json_out_bool(out, "seccomp", s->kernel.filter);
    json_out_bool(out, "user_namespace", s->kernel.own_count);
    json_out_bool(out, "control_group_memory", s->kernel.group_memory);
    json_out_bool(out, "control_group_pids", s->kernel.group_pids);
    json_out_text_or_null(out, "lacks", s->lacks.n ? buf_view(&s->lacks) : SPAN_EMPTY);
    buf_str(out, "}}\n");
}

static void look(struct cage_shown *s, const struct server_plan *plan)
{
    const struct stdio_upstream_options *program = server_program(plan);
    static const struct cage_rules none = {.level = "off"};
    struct child_spec spec = {.argv = program->argv, .env = program->env, .cwd = program->cwd};
    struct cage_list files = {0};

    s->rules = program->cage;
    s->kernel = cage_kernel(s->rules ? s->rules : &none, NULL);
    if (!s->rules)
        return;
    BUF_SCOPED own = {0};
    buf_printf(&own, "%s/", s->rules->own);
    file_make_folders(buf_cstr(&own));
    cage_put_lacks(&s->lacks, s->rules, &s->kernel);
    if (!spec.cwd)
        spec.cwd = s->rules->own;
    program_files(&spec, &files);
    if (cage_list_make(&s->paths, s->rules, spec.cwd, &files, &s->err))
        s->paths = (struct cage_list){0};
    cage_list_fini(&files);
}

static int show(const struct args *a, const struct config *c, const struct config_server *server)
{
    struct secrets *secrets = secrets_new(c);
    struct server_plan *plan = server_plan_new(c, server, secrets);
    struct cage_shown s = {.server = server};
    struct buf out = {0};

    secrets_free(secrets);
    if (!plan)
        return CMD_FAILED;
    look(&s, plan);
    if (a->json)
        put_json(&out, &s);
    else
        put_text(&out, &s);
    cmd_print(&out);
    cage_list_fini(&s.paths);
    buf_fini(&s.lacks);
    server_plan_drop(plan);
    return CMD_FINE;
}

/* --- learning --- */

/* Changes the entry so that its program runs under strace, without a sandbox. */
static void trace(struct config *c, struct config_server *s, const char *file)
{
    size_t n = 0, more = 0;

    while (learn_strace[more])
        more++;
    const char **args = ARENA_ARRAY(&c->arena, const char *, more + s->args.n + 3);
    for (size_t i = 1; i < more; i++)
        args[n++] = learn_strace[i];
    args[n++] = file;
    args[n++] = "--";
    args[n++] = s->command;
    for (size_t i = 0; i < s->args.n; i++)
        args[n++] = s->args.items[i];
    s->command = learn_strace[0];
    s->args = (struct config_strings){args, n};
    s->sandbox = (struct config_sandbox){0};
    for (size_t i = 0; i < c->servers.n; i++)
        c->servers.items[i].enabled = &c->servers.items[i] == s;
    s->start = START_EAGER;
}

static void on_settled(struct query_run *a)
{
    bool *waited = a->arg;
    const struct provider *p = bridge_next(a->bridge, NULL);

    if (*waited || !p || p->state != PROVIDER_READY) {
        query_finish(a, query_report_failures(NULL, a) ? CMD_FAILED : CMD_FINE);
        return;
    }
    *waited = true;
    query_again(a, LEARN_MS);
}

/* Reads everything that strace wrote, a file for each process, and removes the files. */
static void read_traces(struct learn *l, const char *folder)
{
    DIR *all = opendir(folder);
    const struct dirent *e;

    while (all && (e = readdir(all))) {
        BUF_SCOPED path = {0}, text = {0};
        if (e->d_name[0] == '.')
            continue;
        buf_printf(&path, "%s/%s", folder, e->d_name);
        (void)file_read(&text, buf_cstr(&path), TRACE_MOST);
        for (struct span rest = buf_view(&text); rest.n;) {
            size_t end = span_find(rest, '\n');
            learn_line(l, span_cut(rest, 0, end));
            rest = span_from(rest, end + 1);
        }
        unlink(buf_cstr(&path));
    }
    if (all)
        closedir(all);
    rmdir(folder);
}

static void propose(const struct config_server *s, const struct learn *l)
{
    struct buf out = {0};

    buf_printf(&out, "servers:\n  %s:\n    sandbox:\n", s->alias);
    learn_put(&out, l, 6);
    cmd_print(&out);
    if (l->unix_sockets)
        cmd_hint("it connects to Unix sockets, which only `light` and `off` leave open");
}

static int learn(const struct args *a, struct config *c, struct config_server *s)
{
    struct config_sandbox empty = {.level = SANDBOX_MAP};
    struct sandbox_places places = {
        .server = s->alias, .home = getenv("HOME"), .own = s->cwd ? s->cwd : ""};
    char here[4096], folder[] = "/tmp/rialto-learn-XXXXXX";
    BUF_SCOPED file = {0};
    bool waited = false;

    if (!s->cwd && getcwd(here, sizeof here))
        places.own = here;
    if (!mkdtemp(folder)) {
        cmd_error(a->command, "cannot make a folder in /tmp");
        return CMD_FAILED;
    }
    struct learn l = {.cwd = places.own,
                      .rules = sandbox_rules(&c->arena, &empty, NULL, NULL, &places)};
    program_files(
        &(struct child_spec){.argv = (const char *const[]){s->command, NULL}, .cwd = s->cwd},
        &l.files);
    buf_printf(&file, "%s/trace", folder);
    trace(c, s, buf_cstr(&file));
    if (!a->quiet)
        cmd_hint("the server runs without a sandbox, for %d s or until Ctrl-C", LEARN_MS / 1000);
    int code = query_run(c, &(struct query_how){.verbose = a->verbose, .quiet = a->quiet},
                         on_settled, &waited);
    read_traces(&l, folder);
    if (waited)
        propose(s, &l);
    else
        cmd_hint("'rialto doctor %s' looks closer; strace must be installed for this", s->alias);
    learn_fini(&l);
    return waited ? CMD_FINE : code ? code : CMD_FAILED;
}

/* --- the command --- */

static int on_server(const struct args *a, struct config *c, bool learns)
{
    struct config_server *s = config_server(c, a->rest[0]);

    if (s && s->command)
        return learns ? learn(a, c, s) : show(a, c, s);
    if (s) {
        cmd_error(a->command, "'%s' runs elsewhere: a sandbox is for programs started here",
                  s->alias);
        return CMD_USAGE;
    }
    return args_no_server(a->command, c, a->rest[0]);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    bool learns = false;
    int id;

    while ((id = args_next(&a)) > 0)
        learns = true;
    if (id < 0)
        return a.exit_code;
    if (a.rest_n != 1) {
        cmd_error(self, "expected the name of one server");
        return CMD_USAGE;
    }
    struct config *c = args_load_config(&a);
    int code = c ? on_server(&a, c, learns) : CMD_USAGE;
    config_free(c);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG, {"learn", OPT_LEARN, NULL, "start it without a sandbox and propose one"},
    ARGS_OPTION_JSON,   ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,  {NULL}};

const struct command command_sandbox = {
    .name = "sandbox",
    .summary = "Show what a server may do, or find out what it needs",
    .usage = "SERVER",
    .about = "Shows which files the program of a server may read, run and write, which network it\n"
             "has, and what of that this kernel enforces (servers.*.sandbox). With --learn the\n"
             "server is started without a sandbox, under strace, for 10 s or until Ctrl-C; then\n"
             "the entry is printed that would let it do what it did, and nothing else. What it\n"
             "does only when a tool is called is not among that.",
    .options = options,
    .run = run,
};
