/* Options and words that describe one server, made into an entry, or into a whole configuration
 * with this server alone. Called by servers.c, serve.c, stdio.c and inspect.c. */
#include "cmd/server_options.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/check.h"
#include "config/load.h"
#include "wire/json_out.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Transports: the word of `claude mcp add`, and that of our configuration. */
static const char *const ways[][2] = {
    {"stdio", "stdio"},
    {"http", "streamable-http"},
    {"streamable-http", "streamable-http"},
    {"sse", "sse"},
    {"ws", "ws"},
};

void server_options_fini(struct server_options *o)
{
    buf_fini(&o->env);
    buf_fini(&o->headers);
    buf_fini(&o->allow);
    buf_fini(&o->deny);
}

/* "K=V" or "K: V" becomes a member. */
static int put_pair(struct buf *out, const struct args *a, char separator, const char *why)
{
    struct span text = span_str(a->value), name = span_cut(text, 0, span_find(text, separator));

    if (!name.n || name.n == text.n) {
        cmd_error(a->command, "'%s' should be %s", separator == '=' ? a->value : "--header", why);
        return CMD_USAGE;
    }
    if (out->n)
        buf_str(out, ", ");
    json_quote(out, span_trim(name));
    buf_str(out, ": ");
    json_quote(out, separator == '=' ? span_from(text, name.n + 1)
                                     : span_trim(span_from(text, name.n + 1)));
    return 0;
}

static void put_item(struct buf *out, const char *text)
{
    if (out->n)
        buf_str(out, ", ");
    json_quote(out, span_str(text));
}

int server_options_read(struct server_options *o, const struct args *a, int id)
{
    switch (id) {
    case SERVER_OPTIONS_ENV:
        return put_pair(&o->env, a, '=', "NAME=VALUE");
    case SERVER_OPTIONS_HEADER:
        return put_pair(&o->headers, a, ':', "'NAME: VALUE'");
    case SERVER_OPTIONS_ALLOW:
        put_item(&o->allow, a->value);
        return 0;
    case SERVER_OPTIONS_DENY:
        put_item(&o->deny, a->value);
        return 0;
    case SERVER_OPTIONS_TRANSPORT:
        for (size_t i = 0; i < COUNT_OF(ways); i++)
            if (strcmp(a->value, ways[i][0]) == 0)
                o->transport = ways[i][1];
        if (o->transport)
            return 0;
        cmd_error(a->command, "there is no transport '%s': stdio, http, sse or ws", a->value);
        return CMD_USAGE;
    default:
        return 0;
    }
}

static bool is_url(const char *text)
{
    static const char *const schemes[] = {"http://", "https://", "ws://", "wss://"};

    for (size_t i = 0; i < COUNT_OF(schemes); i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

bool server_options_has_command(const struct args *a)
{
    return a->rest > a->argv && strcmp(a->rest[-1], "--") == 0;
}

int server_options_words(struct server_options *o, const struct args *a, char **words, int n)
{
    bool pipes = o->transport && strcmp(o->transport, "stdio") == 0;

    if (!n) {
        cmd_error(a->command, "which server? Give its address, or -- and its command");
        return CMD_USAGE;
    }
    if (is_url(words[0]) && !pipes) {
        o->url = words[0];
        if (n == 1)
            return 0;
        cmd_error(a->command, "unexpected argument '%s' behind an address", words[1]);
        return CMD_USAGE;
    }
    o->command = words;
    o->command_n = n;
    return 0;
}

void server_options_put(struct buf *out, const struct server_options *o)
{
    const struct {
        const char *name;
        const struct buf *of;
        const char *brackets;
    } rows[] = {{"env", &o->env, "{}"},
                {"headers", &o->headers, "{}"},
                {"allow", &o->allow, "[]"},
                {"deny", &o->deny, "[]"}};

    buf_str(out, o->url ? "{\"url\": " : "{\"command\": ");
    json_quote(out, span_str(o->url ? o->url : o->command[0]));
    for (int i = 1; !o->url && i < o->command_n; i++) {
        buf_str(out, i == 1 ? ", \"args\": [" : ", ");
        json_quote(out, span_str(o->command[i]));
    }
    if (!o->url && o->command_n > 1)
        buf_char(out, ']');
    if (o->transport) {
        buf_str(out, ", \"transport\": ");
        json_quote(out, span_str(o->transport));
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].of->n)
            buf_printf(out, ", \"%s\": %c" SPAN_FMT "%c", rows[i].name, rows[i].brackets[0],
                       SPAN_ARG(buf_view(rows[i].of)), rows[i].brackets[1]);
    buf_char(out, '}');
}

/* --- a configuration without a file --- */

/* Is there a program of this name, as a shell would find it? */
static bool is_there(const char *command)
{
    struct span path = span_str(getenv("PATH"));
    BUF_SCOPED file = {0};

    if (strchr(command, '/'))
        return access(command, X_OK) == 0;
    while (path.n) {
        struct span folder = span_cut(path, 0, span_find(path, ':'));
        file.n = 0;
        buf_printf(&file, SPAN_FMT "/%s", SPAN_ARG(folder), command);
        if (access(buf_cstr(&file), X_OK) == 0)
            return true;
        path = span_from(path, folder.n + 1);
    }
    return false;
}

/* Escapes "${": the shell has expanded variables already, so this is plain text. */
static void put_literal(struct buf *out, struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '$' && i + 1 < text.n && text.p[i + 1] == '{')
            buf_char(out, '$');
        buf_char(out, text.p[i]);
    }
}

struct config *server_options_config(const struct server_options *o, const struct args *a,
                                     int *code)
{
    struct problems problems = {0};
    BUF_SCOPED entry = {0}, text = {0};

    *code = CMD_USAGE;
    if (!o->url && !is_there(o->command[0])) {
        cmd_error(a->command, "there is no program '%s'", o->command[0]);
        *code = CMD_FAILED;
        return NULL;
    }
    server_options_put(&entry, o);
    buf_str(&text, "{\"names\": \"bare\", \"remember\": false, \"control\": \"off\", "
                   "\"servers\": {\"server\": ");
    put_literal(&text, buf_view(&entry));
    buf_str(&text, "}}");
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    problems_set_file(&problems, "the command line");
    if (c) {
        config_environment(c, &problems);
        log_set_level(a->quiet ? LOG_ERROR : a->verbose ? LOG_DEBUG : c->log.level);
        c->fixed = true;
    }
    if (!c || problems.errors) {
        args_show_problems(&problems);
        config_free(c);
        c = NULL;
    }
    problems_fini(&problems);
    return c;
}
