/* The command `rialto check`: prints the problems of a configuration as text or JSON. Called
 * through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/doctor/heard.h"
#include "config/load.h"
#include "config/variables.h"
#include "hub/auth/gate.h"
#include "hub/graph/server.h"
#include "hub/tls_files.h"
#include "wire/json_out.h"

#include <stdlib.h>
#include <unistd.h>

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static size_t count_disabled(const struct config *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->servers.n; i++)
        n += !c->servers.items[i].enabled;
    return n;
}

static void put_verdict(struct buf *out, const char *file, const struct config *c,
                        const struct problems *ps)
{
    buf_printf(out, "%s: ", file ? file : "built-in default");
    if (c) {
        buf_printf(out, "fine: %zu server%s", c->servers.n, plural(c->servers.n));
        if (count_disabled(c))
            buf_printf(out, " (%zu switched off)", count_disabled(c));
    } else {
        buf_printf(out, "%zu error%s", ps->errors, plural(ps->errors));
    }
    if (ps->warnings)
        buf_printf(out, ", %zu warning%s", ps->warnings, plural(ps->warnings));
    buf_char(out, '\n');
}

/* The steps that the author of the configuration wants done first. */
static void put_setup(struct buf *out, const struct config *c)
{
    struct span rest = span_str(c->setup_instructions);

    buf_str(out, "setup:\n");
    while (rest.n) {
        size_t end = span_find(rest, '\n');
        buf_str(out, "  ");
        for (size_t i = 0; i < end; i++)
            buf_char(out, (unsigned char)rest.p[i] < 0x20 ? ' ' : rest.p[i]);
        buf_char(out, '\n');
        rest = span_from(rest, end + 1);
    }
}

static void put_text(struct buf *out, const struct problems *ps, bool quiet)
{
    for (size_t i = 0; i < ps->n; i++) {
        if (quiet && ps->items[i].level != PROBLEM_ERROR)
            continue;
        problem_put(out, &ps->items[i]);
        buf_char(out, '\n');
    }
    if (ps->errors + ps->warnings > ps->n)
        buf_printf(out, "and %zu more\n", ps->errors + ps->warnings - ps->n);
}

static void put_json(struct buf *out, const char *file, const struct config *c,
                     const struct problems *ps)
{
    buf_char(out, '{');
    json_out_text_or_null(out, "file", span_str(file));
    json_out_bool(out, "ok", c != NULL);
    json_out_number(out, "errors", ps->errors);
    json_out_number(out, "warnings", ps->warnings);
    if (c) {
        json_out_number(out, "servers", c->servers.n);
        json_out_number(out, "disabled", count_disabled(c));
    }
    if (c && c->setup_instructions)
        json_out_str(out, "setup_instructions", c->setup_instructions);
    json_out_open(out, "problems", '[');
    for (size_t i = 0; i < ps->n; i++)
        problem_put_json(out, &ps->items[i]);
    buf_str(out, "]}\n");
}

/* --- what servers need besides the file --- */

/* Is there such a program, by its path or in PATH? */
static bool is_program(const char *command)
{
    struct span rest = span_str(getenv("PATH"));
    BUF_SCOPED file = {0};

    if (strchr(command, '/'))
        return access(command, X_OK) == 0;
    while (rest.n) {
        struct span folder = span_cut(rest, 0, span_find(rest, ':'));
        file.n = 0;
        buf_printf(&file, SPAN_FMT "/%s", SPAN_ARG(folder), command);
        if (access(buf_cstr(&file), X_OK) == 0)
            return true;
        rest = span_from(rest, folder.n + 1);
    }
    return false;
}

/* Whatever a daemon would leave the server out for: it is planned as there. */
static void check_plan(const struct config *c, const struct config_server *s,
                       struct secrets *secrets, const struct heard *heard, const char *key,
                       struct problems *problems)
{
    BUF_SCOPED missing = {0};
    const char *said;
    struct server_plan *plan = server_plan_for_callers(c, s, secrets, &missing);

    /* The project is known only when a host comes. */
    if (missing.n && !span_is(buf_view(&missing), VARIABLES_PROJECT))
        problems_add(problems, PROBLEM_WARNING, (struct place){0}, key,
                     "no value for %s here (not in the secrets, not in the environment); a host "
                     "that runs 'rialto stdio' may bring it",
                     buf_cstr(&missing));
    else if (!plan && (said = heard_error(heard, s->alias)))
        problems_add(problems, PROBLEM_WARNING, (struct place){0}, key, "%s", said);
    for (size_t i = 0; (said = heard_complaint(heard, s->alias, i)); i++)
        problems_add(problems, PROBLEM_WARNING, (struct place){0}, key, "%s", said);
    server_plan_drop(plan);
}

/* Warnings, not errors: the file may be for another machine, or another user. */
static void check_surroundings(const struct config *c, struct problems *problems)
{
    struct config served = *c; /* as a daemon has it, which serves no single project */
    struct secrets *secrets = secrets_new(c);
    struct heard *heard = heard_new();

    served.project = NULL;
    log_set_muted(true);
    log_set_listener(heard_line, heard);
    for (size_t i = 0; i < c->servers.n; i++) {
        const struct config_server *s = &c->servers.items[i];
        BUF_SCOPED key = {0};
        if (!s->enabled)
            continue;
        buf_printf(&key, "servers.%s", s->alias);
        if (s->command && !strchr(s->command, '$') && !is_program(s->command))
            problems_add(problems, PROBLEM_WARNING, (struct place){0}, buf_cstr(&key),
                         "there is no program '%s' here", s->command);
        check_plan(&served, s, secrets, heard, buf_cstr(&key), problems);
    }
    log_set_listener(NULL, NULL);
    log_set_muted(false);
    heard_free(heard);
    secrets_free(secrets);
}

/* The problems are this command's data, so they go to the standard output. */
static void show(const struct args *a, const char *file, const struct config *c,
                 const struct problems *ps)
{
    struct buf out = {0};

    if (a->json) {
        put_json(&out, file, c, ps);
    } else {
        put_text(&out, ps, a->quiet);
        if (!a->quiet)
            put_verdict(&out, file, c, ps);
        if (!a->quiet && c && c->setup_instructions)
            put_setup(&out, c);
    }
    cmd_print(&out);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct problems problems = {0};

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 1))
        return CMD_USAGE;
    if (a.rest_n)
        a.config = a.rest[0];
    char *file = config_find(a.config);
    struct config *c = args_read_config(&a, &problems);
    if (c) {
        gate_check(c, &problems);
        tls_files_check(c, &problems);
        check_surroundings(c, &problems);
    }
    if (problems.errors) {
        config_free(c);
        c = NULL;
    }
    show(&a, file, c, &problems);
    int code = c ? CMD_FINE : CMD_USAGE;
    if (!file && !a.quiet) {
        BUF_SCOPED places = {0};
        config_put_places(&places);
        cmd_hint("no configuration file found; looked for %s", buf_cstr(&places));
    }
    config_free(c);
    mem_free(file);
    problems_fini(&problems);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG, ARGS_OPTION_QUIET, ARGS_OPTION_JSON, {NULL}};

const struct command command_check = {
    .name = "check",
    .summary = "Check a configuration and list everything that is wrong",
    .usage = "[FILE]",
    .about = "Exits with 0 when it can be used, with 2 when it has errors. Warnings are fine.",
    .options = options,
    .run = run,
};
