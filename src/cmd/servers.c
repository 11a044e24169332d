/* The commands that edit the servers of a configuration file: add, add-json, remove, rename,
 * enable, disable. Called through the table of commands (cmd/table.c). */
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/server_options.h"
#include "config/check.h"
#include "config/load.h"
#include "config/nearest.h"
#include "config/reader.h"
#include "config/server_edit.h"

#include <errno.h>

enum { OPT_SCOPE = 's', LOCK_MS = 10 * 1000 };

/* One edit of one file. */
struct change {
    const struct args *args;
    struct server_edit edit;
    char *path;
};

/* --- the file --- */

/* As `claude mcp add` has it: local and user are the user's file, project the working folder's. */
static char *file_of(const struct args *a, const char *scope)
{
    char *path = NULL;

    if (scope && strcmp(scope, "project") == 0)
        return mem_str("./rialto.yaml");
    if (!scope)
        path = config_find(a->config);
    return path ? path : config_user_file();
}

/* --- messages --- */

/* Prints the new entry, if there is one, as lines that the user can paste into the file. */
static void show_lines(const struct change *c)
{
    struct problems problems = {0};
    struct arena arena = {0};
    BUF_SCOPED out = {0};
    struct value *entry = c->edit.entry.n ? json_doc_read(&arena, c->edit.entry, &problems) : NULL;

    if (entry) {
        struct value *root = value_new(&arena, VALUE_MAP, (struct place){0});
        struct value *servers = value_new(&arena, VALUE_MAP, (struct place){0});
        entry->key = span_str(c->edit.name);
        servers->key = SPAN("servers");
        value_append(servers, entry);
        value_append(root, servers);
        if (config_format_of(c->path, SPAN_EMPTY) == CONFIG_JSON)
            value_put_json(&out, root, true);
        else
            value_put_yaml(&out, root);
        if (out.p[out.n - 1] != '\n')
            buf_char(&out, '\n');
        cmd_print_exact(&out);
    }
    problems_fini(&problems);
    arena_fini(&arena);
}

/* Suggests the server in the file whose name is most like the one that was not found. */
static void hint_at_names(const struct change *c)
{
    struct problems problems = {0};
    struct config *config = config_load(c->path, &problems);
    struct nearest near = nearest_to(span_str(c->edit.name));

    for (size_t i = 0; config && i < config->servers.n; i++)
        nearest_offer(&near, span_str(config->servers.items[i].alias));
    if (near.best.n)
        cmd_hint("did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
    problems_fini(&problems);
    config_free(config);
}

static int make_change(struct change *c, const char *scope, const char *done)
{
    const struct args *a = c->args;
    struct err err = {0};
    struct buf out = {0};

    c->path = file_of(a, scope);
    if (!c->path) {
        cmd_error(a->command, "there is no home folder for a configuration; give one with -c FILE");
        return CMD_FAILED;
    }
    struct server_edit_done made;
    int code = server_edit_file(c->path, &c->edit, LOCK_MS, &made, &err);
    if (!code)
        server_edit_end(&made);
    if (code) {
        cmd_error(a->command, "%s", err.text);
        if (code == -ENOENT)
            hint_at_names(c);
        else if (err.hint[0])
            cmd_hint("%s: %s", c->path, err.hint);
        if (code == ERR_CONFIG || code == ERR_SYNTAX)
            show_lines(c);
    } else if (!a->quiet) {
        if (made.made)
            buf_printf(&out, "made %s, readable for you alone\n", c->path);
        buf_printf(&out, "%s '%s' in %s\n", done, c->edit.name, c->path);
        cmd_print(&out);
    }
    mem_free(c->path);
    return code ? CMD_FAILED : CMD_FINE;
}

/* --- the commands --- */

static const char *wrong_scope(const char *scope)
{
    static const char *const scopes[] = {"user", "local", "project"};

    for (size_t i = 0; scope && i < COUNT_OF(scopes); i++)
        if (strcmp(scope, scopes[i]) == 0)
            return NULL;
    return scope;
}

/* Reads the options, and the name. 0, or the command's exit code + 1. */
static int begin(struct args *a, struct server_options *o, const char **scope, int most)
{
    int id;

    while ((id = args_next(a)) > 0) {
        if (id == OPT_SCOPE)
            *scope = a->value;
        else if (server_options_read(o, a, id))
            return CMD_USAGE + 1;
    }
    if (id < 0)
        return a->exit_code + 1;
    const char *wrong = wrong_scope(*scope);
    const char *name = a->rest_n ? check_alias(span_str(a->rest[0])) : NULL;
    if (wrong)
        cmd_error(a->command, "there is no scope '%s': user, local or project", wrong);
    else if (*scope && a->config)
        cmd_error(a->command, "--scope and --config both name a file; give one of them");
    else if (a->config && strcmp(a->config, "-") == 0)
        cmd_error(a->command, "the standard input cannot be edited; name a file");
    else if (!a->rest_n)
        cmd_error(a->command, "which server? Give its name");
    else if (name)
        cmd_error(a->command, "'%s' cannot be a name: %s", a->rest[0], name);
    else
        return most && args_expect(a, most) ? CMD_USAGE + 1 : 0;
    cmd_hint("usage: rialto %s [OPTIONS] %s", a->command->name, a->command->usage);
    return CMD_USAGE + 1;
}

static int run_add(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct server_options options = {0};
    BUF_SCOPED entry = {0};
    const char *scope = NULL;
    int code = begin(&a, &options, &scope, 0);

    if (!code && server_options_words(&options, &a, a.rest + 1, a.rest_n - 1))
        code = CMD_USAGE + 1;
    if (!code) {
        server_options_put(&entry, &options);
        struct change c = {.args = &a, .edit = {.name = a.rest[0], .entry = buf_view(&entry)}};
        code = make_change(&c, scope, "added") + 1;
    }
    server_options_fini(&options);
    return code - 1;
}

/* An entry as other programs write it becomes one of ours: "type" is not a key of ours. An entry
 * with guards would run without them: they become rules, which an entry cannot hold. */
static bool put_json_entry(struct buf *out, const struct args *a, struct span json)
{
    BUF_SCOPED text = {0}, yaml = {0};
    struct problems problems = {0};
    struct arena arena = {0};
    enum json_type type;

    if (json_skim(json, NULL, NULL, &type, NULL) || type != JSON_OBJECT) {
        cmd_error(a->command, "the entry is not a JSON object");
        return false;
    }
    buf_str(&text, "{\"mcpServers\": {");
    json_quote(&text, span_str(a->rest[0]));
    buf_printf(&text, ": " SPAN_FMT "}}", SPAN_ARG(json));
    bool fine =
        config_convert(buf_view(&text), CONFIG_JSON, NULL, "the command line", &yaml, &problems);
    struct value *root = fine ? yaml_read(&arena, buf_view(&yaml), &problems) : NULL;
    const struct value *servers = root ? value_get(root, "servers") : NULL;
    struct value *entry = servers ? value_get(servers, a->rest[0]) : NULL;
    bool bound = root && value_get(root, "rules");
    problems_set_file(&problems, "the entry");
    args_show_problems(&problems);
    if (bound) {
        cmd_error(a->command, "'%s' has bounds that become 'rules' beside the servers of a file",
                  a->rest[0]);
        cmd_hint("put the entry into a file, as {\"mcpServers\": {\"%s\": ...}}; 'rialto import' "
                 "turns it into a configuration with these rules",
                 a->rest[0]);
    } else if (entry) {
        value_put_json(out, entry, false);
    }
    problems_fini(&problems);
    arena_fini(&arena);
    return entry && !bound;
}

static int run_add_json(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct server_options none = {0};
    BUF_SCOPED entry = {0};
    const char *scope = NULL;
    int code = begin(&a, &none, &scope, 2);

    if (code)
        return code - 1;
    if (a.rest_n < 2) {
        cmd_error(self, "which entry? Give it as JSON, such as '{\"command\": \"npx\"}'");
        return CMD_USAGE;
    }
    if (!put_json_entry(&entry, &a, span_str(a.rest[1])))
        return CMD_USAGE;
    struct change c = {.args = &a, .edit = {.name = a.rest[0], .entry = buf_view(&entry)}};
    return make_change(&c, scope, "added");
}

static int run_on_name(const struct command *self, int argc, char **argv)
{
    static const struct {
        const char *command, *done;
        int words;
        enum server_edit_act act;
    } rows[] = {{"remove", "removed", 1, SERVER_EDIT_REMOVE},
                {"rename", "renamed", 2, SERVER_EDIT_RENAME},
                {"enable", "enabled", 1, SERVER_EDIT_ENABLE},
                {"disable", "disabled", 1, SERVER_EDIT_DISABLE}};
    struct args a = args_begin(self, argc, argv);
    struct server_options none = {0};
    const char *scope = NULL;
    size_t i = 0;

    while (strcmp(rows[i].command, self->name) != 0)
        i++;
    int code = begin(&a, &none, &scope, rows[i].words);
    if (code)
        return code - 1;
    const char *wrong = a.rest_n == 2 ? check_alias(span_str(a.rest[1])) : NULL;
    if (a.rest_n < rows[i].words || wrong) {
        cmd_error(self, "%s", wrong ? wrong : "what is it to be called?");
        return CMD_USAGE;
    }
    struct change c = {
        .args = &a, .edit = {.act = rows[i].act, .name = a.rest[0], .fresh = a.rest[a.rest_n - 1]}};
    return make_change(&c, scope, rows[i].done);
}

#define SCOPE_OPTION                                                                               \
    {                                                                                              \
        "scope", OPT_SCOPE, "WORD", "user or local: your own file; project: ./rialto.yaml"         \
    }

static const struct cmd_option add_options[] = {
    ARGS_OPTION_CONFIG, SCOPE_OPTION, SERVER_OPTIONS_OPTIONS, ARGS_OPTION_QUIET, {NULL}};
static const struct cmd_option name_options[] = {
    ARGS_OPTION_CONFIG, SCOPE_OPTION, ARGS_OPTION_QUIET, {NULL}};

const struct command command_add = {
    .name = "add",
    .summary = "Add a server to the configuration",
    .usage = "NAME (URL | -- COMMAND [ARGS...])",
    .about = "  rialto add files -- npx -y @modelcontextprotocol/server-filesystem /data\n"
             "  rialto add search https://tools.example.com/mcp -H 'Authorization: Bearer ...'\n"
             "Everything else in the file stays as it is, comments too, and a running daemon\n"
             "follows at once. Without a file, your own is made. The options are those of\n"
             "`claude mcp add`.",
    .options = add_options,
    .run = run_add,
};

const struct command command_add_json = {
    .name = "add-json",
    .summary = "Add a server whose entry is given as JSON",
    .usage = "NAME JSON",
    .about = "The entry may be one of ours, or one that is written for another program:\n"
             "  rialto add-json files '{\"type\": \"stdio\", \"command\": \"npx\"}'",
    .options = name_options,
    .run = run_add_json,
};

const struct command command_remove = {
    .name = "remove",
    .summary = "Remove a server from the configuration",
    .usage = "NAME",
    .about = "After `rialto add` the file is then, byte for byte, what it was before.",
    .options = name_options,
    .run = run_on_name,
};

const struct command command_rename = {
    .name = "rename",
    .summary = "Give a server another name",
    .usage = "NAME NEW-NAME",
    .options = name_options,
    .run = run_on_name,
};

const struct command command_enable = {
    .name = "enable",
    .summary = "Use a server again that was disabled",
    .usage = "NAME",
    .options = name_options,
    .run = run_on_name,
};

const struct command command_disable = {
    .name = "disable",
    .summary = "Keep a server in the configuration, but do not use it",
    .usage = "NAME",
    .about = "`rialto stop` stops a server of the running daemon without changing a file.",
    .options = name_options,
    .run = run_on_name,
};
