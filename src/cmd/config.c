/* The command `rialto config`: prints the configuration in effect and explains keys.
 * Called through the table of commands (cmd/table.c). */
#include "base/log.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "cmd/token.h"
#include "config/load.h"
#include "config/schema.h"

enum { OPTION_EXPLAIN = ARGS_OWN, OPTION_NEW_TOKEN };

static int explain(const struct args *a, const char *key)
{
    struct buf out = {0};
    struct span near = SPAN_EMPTY;

    if (schema_explain(&out, key, a->json, &near)) {
        cmd_print(&out);
        return CMD_FINE;
    }
    cmd_error(a->command, "there is no key '%s'", key);
    if (near.n)
        cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near));
    else
        cmd_hint("'rialto config --explain' lists all keys");
    return CMD_USAGE;
}

static int show_effective(const struct args *a)
{
    struct config *c = args_load_config(a);
    struct arena scratch = {0};
    BUF_SCOPED out = {0};

    if (!c)
        return CMD_USAGE;
    struct value *tree = schema_dump(&scratch, c);
    if (a->json) {
        value_put_json(&out, tree, true);
        buf_char(&out, '\n');
    } else {
        buf_printf(&out, "# %s, with defaults and environment\n",
                   c->file ? c->file : "no configuration file");
        value_put_yaml(&out, tree);
    }
    /* Tokens may also be where the schema does not expect secrets, such as in arguments. */
    struct buf redacted = {0};
    log_redact(&redacted, buf_view(&out));
    cmd_print(&redacted);
    arena_fini(&scratch);
    config_free(c);
    return CMD_FINE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    const char *owner = NULL;
    int id, mode = 0;

    while ((id = args_next(&a)) > 0) {
        mode = id;
        owner = a.value;
    }
    if (id < 0)
        return a.exit_code;
    if (args_expect(&a, mode == OPTION_EXPLAIN ? 1 : 0))
        return CMD_USAGE;
    if (mode == OPTION_EXPLAIN)
        return explain(&a, a.rest_n ? a.rest[0] : NULL);
    if (mode == OPTION_NEW_TOKEN)
        return token_add(&a, &(struct token_options){.name = owner});
    return show_effective(&a);
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"explain", OPTION_EXPLAIN, NULL, "tell what KEY, or every key, means and takes"},
    {"new-token", OPTION_NEW_TOKEN, "NAME", "the same as 'rialto token add NAME'"},
    ARGS_OPTION_JSON,
    {NULL},
};

const struct command command_config = {
    .name = "config",
    .summary = "Show the configuration in effect, explain its keys",
    .usage = "[KEY]",
    .about = "Without options it prints what holds after the file, the environment and the\n"
             "defaults, with the values of env and headers hidden. KEY goes with --explain:\n"
             "'servers.*.timeout', 'servers.files.timeout', 'timeout' and 'servers' all work.",
    .options = options,
    .run = run,
};
