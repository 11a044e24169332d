/* The command `rialto token`: makes, lists and revokes the bearer tokens of agents, by editing the
 * configuration, which the daemon follows. Called through the table of commands (cmd/table.c), and
 * by cmd/config.c for its option --new-token. */
#include "cmd/token.h"

#include "admin/control.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"
#include "cmd/commands.h"
#include "cmd/daemon.h"
#include "cmd/grid.h"
#include "config/check.h"
#include "config/edit.h"
#include "config/units.h"
#include "hub/auth/gate.h"
#include "hub/auth/token_file.h"
#include "wire/json_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OPT_VIEW = ARGS_OWN, OPT_ROLE, OPT_EXPIRES, OPT_LIMIT };
enum { DAY_MS = 24 * 3600 * 1000, LOCK_MS = 10 * 1000 };

/* --- the files with tokens --- */

static int read_text(struct buf *text, const char *path)
{
    int code = file_read(text, path, CONFIG_MAX_BYTES);

    return code == -ENOENT ? 0 : code;
}

/* Would a file with this text be valid, and have the token (or, unless `there`, not have it)? */
static bool is_taken(const char *path, struct span text, const char *name, bool there,
                     struct err *err)
{
    struct problems problems = {0};
    struct config *c = config_parse(text, config_format_of(path, text), &problems);
    bool found = false;

    for (size_t i = 0; c && i < c->tokens.n; i++)
        found |= strcmp(c->tokens.items[i].name, name) == 0;
    for (size_t i = 0; !c && i < problems.n; i++)
        if (problems.items[i].level == PROBLEM_ERROR)
            err_set(err, ERR_CONFIG, "%s: %s", problems.items[i].key, problems.items[i].text);
    if (c && found != there)
        err_set(err, ERR_CONFIG, "%s is of a format that has no place for tokens", path);
    bool fine = c && found == there;
    problems_fini(&problems);
    config_free(c);
    return fine;
}

/* Puts the token in, or takes it out if `entry` is empty. `whole`: the file is a configuration,
 * which is checked, and not the list of tokens in the state folder. */
static int edit_locked(const char *path, bool whole, const char *name, struct span entry,
                       struct err *err)
{
    BUF_SCOPED before = {0}, after = {0};
    int code = read_text(&before, path);

    if (code)
        return err_set(err, code, "cannot read %s: %s", path, err_name(code));
    enum edit_format format = edit_format_of(buf_view(&before));
    code =
        entry.n
            ? edit_put(&after, format, &edit_tokens, buf_view(&before), span_str(name), entry, err)
            : edit_take(&after, format, &edit_tokens, buf_view(&before), span_str(name), err);
    if (!code && whole && !is_taken(path, buf_view(&after), name, entry.n > 0, err))
        code = ERR_CONFIG;
    if (code)
        return code;
    if (whole)
        return edit_replace_file(path, buf_view(&after), err);
    code = file_replace(path, buf_view(&after));
    return code ? err_set(err, code, "cannot write %s: %s", path, err_name(code)) : 0;
}

static int edit_file(const char *path, bool whole, const char *name, struct span entry,
                     struct err *err)
{
    int lock = edit_lock(path, LOCK_MS, err);
    int code = lock < 0 ? lock : edit_locked(path, whole, name, entry, err);

    if (lock >= 0)
        close(lock);
    return code;
}

/* A running daemon notices by itself that the file has changed; this makes it look at once. */
static void tell_daemon(const struct args *a, const struct config *c)
{
    char *socket = control_find(c->control, c->file);
    struct daemon *d = socket ? daemon_open(a, c->control, c->file) : NULL;
    BUF_SCOPED answer = {0};
    int status;

    if (d) {
        int ignored = daemon_fetch(d, "/api/reload", SPAN("{}"), &status, &answer);
        (void)ignored;
        daemon_free(d);
    }
    mem_free(socket);
}

/* Are agents also let in without a token of the configuration? */
static bool signs_in(const struct config *c)
{
    return c->jwt.n || c->introspection.url || c->issuer;
}

static bool has_token(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->tokens.n; i++)
        if (strcmp(c->tokens.items[i].name, name) == 0)
            return true;
    return false;
}

/* --- add --- */

/* A time of RFC 3339, or a duration from now: 12h, 30d. */
static bool read_expiry(const char *text, struct buf *out)
{
    struct timespec now;
    struct span given = span_str(text);
    uint64_t ms;
    int64_t at;

    out->n = 0; /* of an option that is repeated, the last one counts */
    if (!units_read_time(given, &at)) {
        buf_span(out, given);
        return true;
    }
    bool days = given.n > 1 && given.n < 7 && given.p[given.n - 1] == 'd';
    for (size_t i = 0; days && i + 1 < given.n; i++)
        days = ascii_is_digit(given.p[i]);
    if (days)
        ms = strtoull(text, NULL, 10) * DAY_MS;
    else if (units_read_duration(given, &ms))
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    units_put_time(out, ((int64_t)now.tv_sec + (int64_t)(ms / 1000)) * 1000);
    return true;
}

/* "in_flight=3" becomes a member. A wrong value is found when the configuration is checked. */
static bool put_limit(struct buf *limits, const char *text)
{
    static const char *const keys[] = {"calls_per_minute", "in_flight", "processes", "bytes"};
    struct span given = span_str(text), key = span_cut(given, 0, span_find(given, '='));
    struct span value = span_from(given, key.n + 1);
    bool number = value.n > 0;

    for (size_t i = 0; i < value.n; i++)
        number &= ascii_is_digit(value.p[i]);
    for (size_t i = 0; i < COUNT_OF(keys) && value.n; i++) {
        if (!span_is(key, keys[i]))
            continue;
        if (number)
            json_out_raw(limits, keys[i], value);
        else
            json_out_text(limits, keys[i], value);
        return true;
    }
    return false;
}

static bool is_role(const char *text)
{
    const struct schema_row *row = schema_find("auth.tokens.*.role");

    for (const struct schema_word *w = row->words; w->word; w++)
        if (strcmp(w->word, text) == 0)
            return true;
    return false;
}

static bool has_view(const struct config *c, const char *view)
{
    for (size_t i = 0; i < c->views.n; i++)
        if (strcmp(c->views.items[i].name, view) == 0)
            return true;
    return false;
}

/* False, after a message: no such token can be made. */
static bool check_view(const struct args *a, const struct config *c, const struct token_options *o)
{
    const char *wrong = check_name(span_str(o->name));

    if (wrong)
        cmd_error(a->command, "this cannot be a name: %s", wrong);
    else if (has_token(c, o->name))
        cmd_error(a->command, "there is a token '%s' already; revoke it first", o->name);
    else if (o->view && !has_view(c, o->view))
        cmd_error(a->command, "'views' of the configuration has no '%s'", o->view);
    else if (o->role && !is_role(o->role))
        cmd_error(a->command, "there is no role '%s': agent, viewer or operator", o->role);
    else
        return true;
    return false;
}

static void put_entry(struct buf *out, const struct token_options *o, const char *hash)
{
    buf_char(out, '{');
    json_out_str(out, "name", o->name);
    json_out_str(out, "hash", hash);
    if (o->view)
        json_out_str(out, "view", o->view);
    if (o->role)
        json_out_str(out, "role", o->role);
    if (o->expires.n)
        json_out_text(out, "expires", buf_view(&o->expires));
    if (o->limits.n) {
        json_out_open(out, "limits", '{');
        buf_span(out, buf_view(&o->limits));
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

/* Would a configuration with nothing but this token, and its view, be valid? What is wrong with the
 * token must not be taken for a reason to write it elsewhere. */
static bool check_entry(const struct args *a, const struct token_options *o, struct span entry)
{
    struct problems problems = {0};
    BUF_SCOPED text = {0};

    buf_char(&text, '{');
    json_out_open(&text, "auth", '{');
    json_out_open(&text, "tokens", '[');
    buf_span(&text, entry);
    buf_str(&text, "]}");
    json_out_open(&text, "views", '{');
    if (o->view)
        json_out_raw(&text, o->view, SPAN("{}"));
    buf_str(&text, "}}");
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    if (!c) {
        cmd_error(a->command, "no such token can be made:");
        args_show_problems(&problems);
    }
    problems_fini(&problems);
    config_free(c);
    return c != NULL;
}

/* Writes the token into the configuration or, if that fails, into the list in the state folder.
 * `*file` gets the path, which the caller frees. */
static int store(const struct config *c, const struct token_options *o, struct span entry,
                 char **file, struct err *err)
{
    int code = ERR_CONFIG;

    *file = NULL;
    if (c->file && strcmp(c->file, "-") != 0) {
        *file = mem_str(c->file);
        code = edit_file(*file, true, o->name, entry, err);
        if (!code)
            return 0;
        cmd_hint("the configuration is not written: %s", err->text);
        mem_free(*file);
    }
    *file = token_file_path();
    if (!*file)
        return err_set(err, -ENOENT, "there is no home folder to keep the token in");
    return edit_file(*file, false, o->name, entry, err);
}

static void put_made(struct buf *out, const struct args *a, const struct token_options *o,
                     const char *token, const char *hash, const char *file)
{
    if (a->json) {
        buf_char(out, '{');
        json_out_str(out, "name", o->name);
        json_out_str(out, "token", token);
        json_out_str(out, "hash", hash);
        json_out_str(out, "file", file);
        buf_str(out, "}\n");
        return;
    }
    buf_printf(out,
               "For the client, which sends it as 'Authorization: Bearer TOKEN' (it is not shown "
               "again):\n\n  %s\n\nIts hash was added to %s.\n",
               token, file);
}

int token_add(const struct args *a, const struct token_options *o)
{
    char halves[2][ID_TOKEN_SIZE], token[2 * ID_TOKEN_SIZE + 8], hash[GATE_HASH_SIZE];
    struct config *c = args_load_config(a);
    BUF_SCOPED entry = {0};
    struct buf out = {0};
    struct err err = {0};
    char *file = NULL;

    if (!c)
        return CMD_USAGE;
    if (!check_view(a, c, o)) {
        config_free(c);
        return CMD_USAGE;
    }
    id_token(halves[0]);
    id_token(halves[1]);
    snprintf(token, sizeof token, "rialto_%s%s", halves[0], halves[1]);
    gate_hash(span_str(token), hash);
    put_entry(&entry, o, hash);
    if (!check_entry(a, o, buf_view(&entry))) {
        config_free(c);
        return CMD_USAGE;
    }
    int code = store(c, o, buf_view(&entry), &file, &err);
    if (code) {
        cmd_error(a->command, "%s", err.text);
    } else {
        put_made(&out, a, o, token, hash, file);
        cmd_print(&out);
        if (!c->asks_tokens)
            cmd_hint("this is the first token: from now on nobody is let in over the network "
                     "without one (until now everybody on this machine was)");
        tell_daemon(a, c);
    }
    mem_free(file);
    config_free(c);
    return code ? CMD_FAILED : CMD_FINE;
}

/* --- list --- */

static const char *role_name(enum config_role role)
{
    return schema_find("auth.tokens.*.role")->words[role].word;
}

/* Append each limit that is set, as a member of JSON or as text. */
static void put_limits(struct buf *out, const struct principal_limits *l, bool json)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"calls_per_minute", l->calls_per_minute},
                {"in_flight", l->in_flight},
                {"processes", l->processes},
                {"bytes", l->bytes}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].value && json)
            json_out_number(out, rows[i].name, rows[i].value);
        else if (rows[i].value)
            buf_printf(out, "%s%s %llu", out->n ? ", " : "", rows[i].name,
                       (unsigned long long)rows[i].value);
    }
}

static void put_grid(struct buf *out, const struct config *c)
{
    static const char *const titles[] = {"NAME", "ROLE", "VIEW", "EXPIRES", "LIMITS"};
    struct grid grid = {.columns = COUNT_OF(titles)};

    for (size_t i = 0; i < COUNT_OF(titles); i++)
        grid_add(&grid, span_str(titles[i]));
    for (size_t i = 0; i < c->tokens.n; i++) {
        const struct config_token *t = &c->tokens.items[i];
        BUF_SCOPED limits = {0};
        put_limits(&limits, &t->limits, false);
        grid_add(&grid, span_str(t->name));
        grid_add(&grid, span_str(role_name(t->role)));
        grid_add(&grid, t->view ? span_str(t->view) : SPAN("everything"));
        grid_add(&grid, t->expires ? span_str(t->expires) : SPAN("never"));
        grid_add(&grid, limits.n ? buf_view(&limits) : SPAN("-"));
    }
    grid_put(out, &grid);
}

static void put_list(struct buf *out, const struct config *c)
{
    buf_char(out, '[');
    for (size_t i = 0; i < c->tokens.n; i++) {
        const struct config_token *t = &c->tokens.items[i];
        json_out_open(out, NULL, '{');
        json_out_str(out, "name", t->name);
        json_out_str(out, "role", role_name(t->role));
        json_out_text_or_null(out, "view", span_str(t->view));
        json_out_text_or_null(out, "expires", span_str(t->expires));
        json_out_open(out, "limits", '{');
        put_limits(out, &t->limits, true);
        buf_str(out, "}}");
    }
    buf_str(out, "]\n");
}

static int list(const struct args *a)
{
    struct config *c = args_load_config(a);
    struct buf out = {0};

    if (!c)
        return CMD_USAGE;
    if (a->json)
        put_list(&out, c);
    else if (c->tokens.n)
        put_grid(&out, c);
    else
        buf_str(&out, signs_in(c)      ? "No token: agents sign in (auth).\n"
                      : c->asks_tokens ? "No token: nobody is let in over the network.\n"
                                       : "No token: everybody on this machine is let in.\n");
    cmd_print(&out);
    config_free(c);
    return CMD_FINE;
}

/* --- revoke --- */

/* Takes the token out of the list in the state folder or, if that does not have it, out of the
 * configuration. `*file` gets the path, which the caller frees. */
static int take_out(const struct config *c, const char *name, char **file, struct err *err)
{
    int code = err_set(err, -ENOENT, "there is no file with the token '%s'", name);

    *file = token_file_exists() ? token_file_path() : NULL;
    if (*file)
        code = edit_file(*file, false, name, SPAN_EMPTY, err);
    if (code != -ENOENT || !c->file || strcmp(c->file, "-") == 0)
        return code;
    mem_free(*file);
    *file = mem_str(c->file);
    return edit_file(*file, true, name, SPAN_EMPTY, err);
}

static int revoke_token(const struct args *a, const char *name)
{
    struct config *c = args_load_config(a);
    struct buf out = {0};
    struct err err = {0};
    char *file = NULL;

    if (!c)
        return CMD_USAGE;
    int code = has_token(c, name) ? take_out(c, name, &file, &err)
                                  : err_set(&err, -ENOENT, "there is no token '%s'", name);
    if (code) {
        cmd_error(a->command, "%s", err.text);
        if (file)
            cmd_hint("take the token out of %s by hand", file);
        else
            cmd_hint("'rialto token list' shows them");
    } else {
        buf_printf(&out, "The token '%s' is revoked.\n", name);
        cmd_print(&out);
        if (c->tokens.n == 1 && !signs_in(c))
            cmd_hint("it was the last one: nobody is let in over the network now. 'rialto token "
                     "add NAME' makes another");
        tell_daemon(a, c);
    }
    mem_free(file);
    config_free(c);
    return code ? CMD_FAILED : CMD_FINE;
}

/* --- the command line --- */

static bool read_option(const struct args *a, int id, struct token_options *o)
{
    bool fine = true;

    if (id == OPT_VIEW)
        o->view = a->value;
    else if (id == OPT_ROLE)
        o->role = a->value;
    else if (id == OPT_EXPIRES)
        fine = read_expiry(a->value, &o->expires);
    else
        fine = put_limit(&o->limits, a->value);
    if (!fine && id == OPT_EXPIRES)
        cmd_error(a->command, "'%s' is not a time: give 2026-12-31T23:59:59Z, 12h or 30d",
                  a->value);
    else if (!fine)
        cmd_error(
            a->command,
            "'%s' is not a limit: give calls_per_minute=N, in_flight=N, processes=N or bytes=N",
            a->value);
    return fine;
}

static int act(const struct args *a, struct token_options *o)
{
    const char *verb = a->rest_n ? a->rest[0] : "list";

    if (strcmp(verb, "list") == 0 && a->rest_n < 2)
        return list(a);
    bool adds = strcmp(verb, "add") == 0;
    if ((adds || strcmp(verb, "revoke") == 0) && a->rest_n == 2) {
        o->name = a->rest[1];
        return adds ? token_add(a, o) : revoke_token(a, o->name);
    }
    cmd_error(a->command, a->rest_n > 1 ? "unexpected argument" : "which token? Give its name");
    cmd_hint("usage: rialto token [add|revoke NAME | list]");
    return CMD_USAGE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct token_options o = {0};
    bool fine = true;
    int id;

    while ((id = args_next(&a)) > 0)
        fine = read_option(&a, id, &o) && fine;
    int code = id < 0 ? a.exit_code : !fine ? CMD_USAGE : act(&a, &o);
    buf_fini(&o.expires);
    buf_fini(&o.limits);
    return code;
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"view", OPT_VIEW, "NAME", "add: show only what this view leaves"},
    {"role", OPT_ROLE, "ROLE", "add: agent, viewer (looks, calls nothing) or operator"},
    {"expires", OPT_EXPIRES, "WHEN", "add: valid until this time, or for so long: 12h, 30d"},
    {"limit", OPT_LIMIT, "KEY=N",
     "add: calls_per_minute, in_flight, processes or bytes; may be repeated"},
    ARGS_OPTION_JSON,
    {NULL},
};

const struct command command_token = {
    .name = "token",
    .summary = "Make, list and revoke the bearer tokens of agents",
    .usage = "[add|revoke NAME | list]",
    .about = "A new token is printed once; only its hash is stored, in auth.tokens of the\n"
             "configuration, or in tokens.yaml of the state folder where that cannot be written.\n"
             "A daemon that runs takes changes at once: revoking a token ends its streams,\n"
             "WebSockets and open calls. The first token ends access without one.",
    .options = options,
    .run = run,
};
