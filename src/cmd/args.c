/* Reads a command line by getopt and the command's table of options, and loads the configuration
 * that the options name. Called by the commands. */
#include "cmd/args.h"

#include "base/log.h"
#include "base/mem.h"
#include "cmd/help.h"
#include "cmd/project.h"
#include "config/load.h"
#include "config/nearest.h"
#include "hub/auth/token_file.h"

#include <getopt.h>
#include <stdio.h>

enum { OPTIONS_MAX = 32 };

static const struct cmd_option help_option = {"help", 'h', NULL, "show this help"};

struct args args_begin(const struct command *command, int argc, char **argv)
{
    optind = 0; /* makes getopt forget an earlier command line */
    opterr = 0;
    return (struct args){.command = command, .argc = argc, .argv = argv};
}

static int stop(struct args *a, int exit_code)
{
    a->exit_code = exit_code;
    return -1;
}

static bool has_option(const struct command *command, int id)
{
    for (const struct cmd_option *o = command->options; o->name; o++)
        if (o->id == id)
            return true;
    return id == help_option.id;
}

/* getopt leaves in `optopt` the letter that no option has, or the option that takes no argument;
 * 0 for a word that it does not know. */
static int wrong_option(struct args *a, bool lacks_argument)
{
    const char *given = a->argv[optind - 1];
    bool has_argument = !lacks_argument && has_option(a->command, optopt);
    /* When more letters follow a letter, `given` is still the word before them. */
    bool is_long =
        given[0] == '-' && given[1] == '-' && (lacks_argument || has_argument || !optopt);
    const char *problem = lacks_argument ? "an argument must follow"
                          : has_argument ? "no argument can follow this option:"
                          : is_long      ? "cannot understand the option"
                                         : "unknown option";

    if (is_long)
        cmd_error(a->command, "%s '%s'", problem, given);
    else
        cmd_error(a->command, "%s '-%c'", problem, optopt);

    struct nearest near = nearest_to(is_long ? span_from(span_str(given), 2) : SPAN_EMPTY);
    for (const struct cmd_option *o = a->command->options; o->name; o++)
        nearest_offer(&near, span_str(o->name));
    if (near.best.n && !lacks_argument && !has_argument)
        cmd_hint("did you mean '--" SPAN_FMT "'?", SPAN_ARG(near.best));
    else
        cmd_hint("'rialto help %s' lists the options", a->command->name);
    return stop(a, CMD_USAGE);
}

/* An optional argument is written as "[=WORD]". */
static int argument_of(const struct cmd_option *o)
{
    if (!o->arg)
        return no_argument;
    return o->arg[0] == '[' ? optional_argument : required_argument;
}

/* Converts the command's table to getopt's long and short options. */
static void build_options(const struct command *command, struct option *longs, struct buf *shorts)
{
    size_t n = 0;

    buf_char(shorts, ':'); /* getopt then returns ':' for a missing argument, not '?' */
    for (const struct cmd_option *o = command->options;; o++) {
        const struct cmd_option *row = o->name ? o : &help_option;
        longs[n++] = (struct option){row->name, argument_of(row), NULL, row->id};
        if (row->id < 256)
            buf_printf(shorts, "%c%s", row->id, row->arg ? ":" : "");
        if (!o->name || n == OPTIONS_MAX)
            break;
    }
    longs[n] = (struct option){0};
}

int args_next(struct args *a)
{
    struct option longs[OPTIONS_MAX + 1];

    for (;;) {
        BUF_SCOPED shorts = {0};
        build_options(a->command, longs, &shorts);
        int id = getopt_long(a->argc, a->argv, buf_cstr(&shorts), longs, NULL);
        switch (id) {
        case -1:
            a->rest = a->argv + optind;
            a->rest_n = a->argc - optind;
            return 0;
        case 'c':
            a->config = optarg;
            break;
        case 'v':
            a->verbose = true;
            break;
        case 'q':
            a->quiet = true;
            break;
        case ARGS_JSON:
            a->json = true;
            break;
        case 'h':
            help_show(a->command);
            return stop(a, CMD_FINE);
        case '?':
        case ':':
            return wrong_option(a, id == ':');
        default:
            a->value = optarg;
            return id;
        }
    }
}

int args_expect(const struct args *a, int most)
{
    if (a->rest_n <= most)
        return 0;
    cmd_error(a->command, "unexpected argument '%s'", a->rest[most]);
    cmd_hint("usage: rialto %s [OPTIONS] %s", a->command->name, a->command->usage);
    return CMD_USAGE;
}

/* --- configuration --- */

static void set_log(const struct args *a, const struct config *c)
{
    log_set_json(c->log.format == LOG_FORMAT_JSON);
    log_set_level(a->quiet ? LOG_ERROR : a->verbose ? LOG_DEBUG : c->log.level);
}

struct config *args_read_config(const struct args *a, struct problems *problems)
{
    char *path = a->outside ? config_find_outside(a->config) : config_find(a->config);
    struct config *c = token_file_load(path, problems);

    mem_free(path);
    if (!c)
        return NULL;
    config_environment(c, problems);
    if (problems->errors) {
        config_free(c);
        return NULL;
    }
    set_log(a, c);
    if (!a->serves) {
        BUF_SCOPED folder = {0};
        project_put(&folder, ".");
        c->project = folder.n ? arena_span(&c->arena, buf_view(&folder)).p : NULL;
    }
    return c;
}

void args_show_problems(const struct problems *problems)
{
    BUF_SCOPED lines = {0};

    for (size_t i = 0; i < problems->n; i++) {
        BUF_SCOPED line = {0};
        problem_put(&line, &problems->items[i]);
        cmd_put_plain(&lines, buf_view(&line)); /* a problem may quote the file's bytes */
        buf_char(&lines, '\n');
    }
    if (problems->errors + problems->warnings > problems->n)
        buf_printf(&lines, "and %zu more\n", problems->errors + problems->warnings - problems->n);
    fwrite(buf_cstr(&lines), 1, lines.n, stderr);
}

struct config *args_load_config(const struct args *a)
{
    struct problems problems = {0};
    struct config *c = args_read_config(a, &problems);

    if (!c)
        cmd_error(a->command, "the configuration cannot be used:");
    if (!c || !a->quiet)
        args_show_problems(&problems);
    if (!c)
        cmd_hint("'rialto config --explain KEY' tells what a key takes");
    problems_fini(&problems);
    return c;
}

int args_no_server(const struct command *who, const struct config *c, const char *name)
{
    struct nearest near = nearest_to(span_str(name));

    for (size_t i = 0; i < c->servers.n; i++)
        nearest_offer(&near, span_str(c->servers.items[i].alias));
    cmd_error(who, "there is no server '%s'", name);
    if (near.best.n)
        cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
    else
        cmd_hint("the configuration's servers are listed by `rialto config`");
    return CMD_USAGE;
}
