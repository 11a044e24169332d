/* Finds the files of host programs, reads their servers, and makes the new texts of these files and
 * of the user's configuration. Called by setup.c. */
#include "base/ascii.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/host_setup.h"
#include "config/import.h"
#include "config/load.h"
#include "config/reader.h"
#include "config/schema.h"
#include "wire/host.h"
#include "wire/url.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char own_name[] = "rialto";

bool host_setup_changes(const struct host_setup_file *f)
{
    return !f->wrong.text[0] && !span_eq(buf_view(&f->before), buf_view(&f->after));
}

static void file_fini(struct host_setup_file *f)
{
    buf_fini(&f->before);
    buf_fini(&f->after);
    buf_fini(&f->backup);
    mem_free(f->path);
    free(f->real);
}

void host_setup_fini(struct host_setup *s)
{
    file_fini(&s->config);
    for (size_t i = 0; i < s->n; i++)
        file_fini(&s->files[i]);
    buf_fini(&s->notes);
    config_free(s->user);
    arena_fini(&s->arena);
}

/* --- entries --- */

/* Append the entry as JSON without PATH in its env, which we add and which tells nothing. */
static void put_without_path(struct buf *out, const struct value *entry)
{
    struct arena scratch = {0};
    size_t budget = VALUE_MAX_NODES;
    struct value *copy = value_copy(&scratch, entry, &budget);
    struct value *env = copy ? value_get(copy, "env") : NULL;
    struct value *path = env ? value_get(env, "PATH") : NULL;

    if (path)
        value_remove(env, path);
    if (copy)
        value_put_json(out, copy, false);
    arena_fini(&scratch);
}

static bool is_same_text(const struct value *a, const struct value *b, const char *key)
{
    const struct value *one = value_get(a, key), *other = value_get(b, key);

    return one && other ? span_eq(one->text, other->text) : one == other;
}

/* Are these the same server for the user's configuration? Env and headers are often all that tells
 * one account from another, and filters all that keeps an agent from a tool, so everything counts.
 */
static bool is_same(const struct host_setup *s, const struct value *a, const struct value *b)
{
    struct problems problems = {0};
    BUF_SCOPED text = {0};

    if (!is_same_text(a, b, "command") || !is_same_text(a, b, "url"))
        return false;
    buf_printf(&text, "{\"%s\":{\"a\":", edit_servers(buf_view(&s->config.before)).keys[0]);
    put_without_path(&text, a);
    buf_str(&text, ",\"b\":");
    put_without_path(&text, b);
    buf_str(&text, "}}");
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    bool same = c && c->servers.n == 2 &&
                schema_equal("servers.*", &c->servers.items[0], &c->servers.items[1]);
    problems_fini(&problems);
    config_free(c);
    return same;
}

/* The port of "127.0.0.1:8765"; 0 for a Unix socket. */
static uint64_t port_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;

    return colon && ascii_number(span_str(colon + 1), &port) ? port : 0;
}

/* Does the address lead to the daemon of the user's configuration? */
static bool is_own_address(const struct host_setup *s, struct span address)
{
    struct url_parts url;

    if (!url_read(&url, address) || !host_is_loopback(url.host) ||
        !(span_starts(url.path, SPAN("/mcp")) || span_is(url.path, "/sse")))
        return false;
    for (size_t i = 0; i < s->user->listen.n; i++)
        if (port_of(s->user->listen.items[i].address) == (uint64_t)url.port)
            return true;
    return false;
}

/* Append the path of this program, whatever it is called. */
static void put_own_path(struct buf *out)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    buf_span(out, n > 0 ? span_of(self, (size_t)n) : span_str(own_name));
}

/* Is this the program that runs now? */
static bool is_own_path(struct span word)
{
    BUF_SCOPED self = {0};
    char *real = word.n ? realpath(word.p, NULL) : NULL;

    put_own_path(&self);
    bool own = real && span_eq(span_str(real), buf_view(&self));
    free(real);
    return own;
}

/* Is this a name of our program, or of the package that npx or uvx is to run? */
static bool is_own_name(struct span word)
{
    for (size_t slash; (slash = span_find(word, '/')) < word.n;)
        word = span_from(word, slash + 1);
    word = span_cut(word, 0, span_find(word, '@')); /* the version of a package */
    return span_is(word, own_name) || span_is(word, "rialto-bridge") ||
           span_starts(word, SPAN("rialto-linux-")); /* as it is downloaded */
}

/* Does the entry start `rialto stdio`, also by another program, or lead to the daemon's address? */
static bool is_own(const struct host_setup *s, const struct value *entry)
{
    const struct value *url = value_get(entry, "url"), *args = value_get(entry, "args");
    const struct value *command = value_get(entry, "command");
    struct span before = command ? command->text : SPAN_EMPTY;

    if (url && is_own_address(s, url->text))
        return true;
    for (const struct value *arg = args ? args->first : NULL; arg; arg = arg->next) {
        if (span_is(arg->text, "stdio") && (is_own_name(before) || is_own_path(before)))
            return true;
        before = arg->text;
    }
    return false;
}

/* Desktop programs, and the daemon that they start, do not have the PATH of a shell: `command`
 * becomes a full path. npx, uvx and the like search PATH for more programs, so the entry gets it in
 * `env`. */
static void resolve(struct host_setup *s, struct value *entry)
{
    static const char *const lookers[] = {"npx", "uvx", "node", "bunx", "pnpm", "uv"};
    struct value *command = value_get(entry, "command"), *env = value_get(entry, "env");
    bool looks = false;

    if (!command || command->type != VALUE_STRING || strpbrk(command->text.p, "/$"))
        return;
    for (size_t i = 0; i < COUNT_OF(lookers); i++)
        looks |= span_is(command->text, lookers[i]);
    char *path = host_program_command(command->text.p);
    if (!path) {
        buf_printf(&s->notes, "there is no program '%s' on PATH\n", command->text.p);
        return;
    }
    command->text = arena_span(&s->arena, span_str(path));
    mem_free(path);
    if (!looks || (env && value_get(env, "PATH")) || !getenv("PATH"))
        return;
    if (!env) {
        env = value_new(&s->arena, VALUE_MAP, entry->at);
        env->key = SPAN("env");
        value_append(entry, env);
    }
    struct value *v = value_text(&s->arena, VALUE_STRING, span_str(getenv("PATH")));
    v->key = SPAN("PATH");
    value_append(env, v);
}

/* Is the entry valid by itself? */
static bool is_valid(struct host_setup *s, const struct host_program *h, struct value *entry)
{
    BUF_SCOPED text = {0};
    struct problems problems = {0};

    buf_str(&text, "{\"servers\":{\"x\":");
    value_put_json(&text, entry, false);
    buf_str(&text, "}}");
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    for (size_t i = 0; !c && i < problems.n; i++)
        buf_printf(&s->notes, "%s: '" SPAN_FMT "' stays there: %s\n", h->name, SPAN_ARG(entry->key),
                   problems.items[i].text);
    problems_fini(&problems);
    config_free(c);
    return c != NULL;
}

/* --- names --- */

static const struct value *find_alias(const struct host_setup *s, struct span alias)
{
    for (const struct value *v = s->servers->first; v; v = v->next)
        if (span_eq_nocase(v->key, alias))
            return v;
    return NULL;
}

/* A free name for the entry in the user's configuration: its own, or with `suffix` (the name of the
 * host or project) and a number added. */
static struct span choose_alias(struct host_setup *s, const struct value *entry, const char *suffix)
{
    BUF_SCOPED alias = {0};

    buf_span(&alias, entry->key);
    for (int i = 1; find_alias(s, buf_view(&alias)); i++) {
        alias.n = entry->key.n;
        buf_printf(&alias, "-%s", suffix);
        for (size_t k = entry->key.n; k < alias.n; k++)
            if (!ascii_is_word(alias.p[k], "_-."))
                alias.p[k] = '-';
        if (i > 1)
            buf_printf(&alias, "-%d", i);
    }
    return arena_span(&s->arena, buf_view(&alias));
}

/* Adds the entry to the user's servers, unless the same server is there. Returns its name there. */
static struct span adopt(struct host_setup *s, struct value *entry, const char *suffix)
{
    for (const struct value *v = s->servers->first; v; v = v->next)
        if (is_same(s, v, entry))
            return v->key;
    entry->key = choose_alias(s, entry, suffix);
    value_append(s->servers, entry);
    return entry->key;
}

/* --- a host's file --- */

static struct value *read_tree(struct host_setup *s, enum edit_format format, struct span text,
                               struct err *err)
{
    struct problems problems = {0};
    BUF_SCOPED plain = {0};
    struct value *root = NULL;

    if (span_starts(text, SPAN("\xef\xbb\xbf")))
        text = span_from(text, 3);
    if (format == EDIT_TOML) {
        root = toml_read(&s->arena, text, &problems);
    } else if (format == EDIT_YAML) {
        root = yaml_read(&s->arena, text, &problems);
    } else {
        bool fine = json_doc_relax(&plain, text);
        (void)fine; /* json_doc_read reports what is wrong */
        root = json_doc_read(&s->arena, buf_view(&plain), &problems);
    }
    if (!root || problems.errors)
        err_set(err, ERR_SYNTAX, "line %u: %s", problems.n ? problems.items[0].at.line : 0,
                problems.n ? problems.items[0].text : "cannot be read");
    problems_fini(&problems);
    return err->text[0] ? NULL : root;
}

/* Decides about one entry of the host: it moves (into `taken`), or stays, or is our own entry. True
 * when it is our own. */
static bool take_entry(struct host_setup *s, struct host_setup_file *f,
                       const struct edit_place *place, const struct value *theirs,
                       const char *suffix)
{
    const struct value *named = place->list ? value_get(theirs, "name") : NULL;
    struct span name = named ? named->text : theirs->key;
    struct problems problems = {0};
    size_t budget = VALUE_MAX_NODES;
    BUF_SCOPED json = {0};

    if (!name.n || f->servers == HOST_SETUP_ENTRIES)
        return false;
    struct value *copy = value_copy(&s->arena, theirs, &budget);
    if (copy)
        copy->key = name;
    struct value *entry = copy ? import_entry(&s->arena, f->host, copy, &problems) : NULL;
    if (entry && is_own(s, entry)) {
        problems_fini(&problems);
        return true;
    }
    for (size_t i = 0; i < problems.n; i++)
        buf_printf(&s->notes, "%s: %s: %s\n", f->host->name, problems.items[i].key,
                   problems.items[i].text);
    problems_fini(&problems);
    if (!entry || (!value_get(entry, "command") && !value_get(entry, "url")))
        return false;
    f->servers++;
    resolve(s, entry);
    if (!is_valid(s, f->host, entry))
        return false;
    bool project = place->keys[1] != NULL;
    if (project && !value_get(entry, "scope")) {
        struct value *scope = value_text(&s->arena, VALUE_STRING, SPAN("project"));
        scope->key = SPAN("scope");
        value_append(entry, scope);
    }
    value_put_json(&json, theirs, false);
    struct host_setup_entry *e = ARENA_NEW(&s->arena, struct host_setup_entry);
    *e = (struct host_setup_entry){.place = *place,
                                   .name = name,
                                   .entry = arena_span(&s->arena, buf_view(&json)),
                                   .alias = adopt(s, entry, suffix),
                                   .next = f->taken};
    f->taken = e;
    return false;
}

/* Takes all entries of one map or list. True when our own entry is among them. */
static bool take_place(struct host_setup *s, struct host_setup_file *f, const struct value *root,
                       const struct edit_place *place, const char *suffix)
{
    const struct value *all = root;
    bool own = false;

    for (size_t i = 0; all && place->keys[i]; i++)
        all = value_get(all, place->keys[i]);
    for (const struct value *v = all ? all->first : NULL; v; v = v->next)
        if (v->type == VALUE_MAP && take_entry(s, f, place, v, suffix))
            own = true;
    return own;
}

/* Takes the servers of projects, which are in Claude Code's file. */
static void take_projects(struct host_setup *s, struct host_setup_file *f, const struct value *root)
{
    const struct value *projects = f->host->projects ? value_get(root, "projects") : NULL;

    for (const struct value *p = projects ? projects->first : NULL; p; p = p->next) {
        const char *folder = arena_span(&s->arena, p->key).p, *last = strrchr(folder, '/');
        struct edit_place place = {.keys = {"projects", folder, "mcpServers"}, .keeps_empty = true};
        take_place(s, f, root, &place, last && last[1] ? last + 1 : f->host->name);
    }
}

static void put_own_entry(struct buf *out, const struct host_program *h)
{
    BUF_SCOPED self = {0}, quoted = {0};

    put_own_path(&self);
    json_quote(&quoted, buf_view(&self));
    for (const char *p = h->entry; *p; p++) {
        if (p[0] == '"' && p[1] == '@') {
            buf_span(out, buf_view(&quoted));
            p += 2;
        } else {
            buf_char(out, *p);
        }
    }
}

static bool is_blank(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr(" \t\r\n", text.p[i]))
            return false;
    return true;
}

/* Makes the new text of the host's file: our entry instead of the servers that move. */
static int change_text(struct host_setup_file *f, bool own, struct err *err)
{
    BUF_SCOPED entry = {0};
    const struct host_program *h = f->host;
    int code = 0;

    buf_span(&f->after, buf_view(&f->before));
    for (const struct host_setup_entry *e = f->taken; e && !code; e = e->next) {
        struct buf next = {0};
        code = edit_take(&next, h->format, &e->place, buf_view(&f->after), e->name, err);
        buf_fini(&f->after);
        f->after = next;
    }
    if (own || code)
        return code;
    if (is_blank(buf_view(&f->after)) && h->format == EDIT_JSON) {
        f->after.n = 0;
        buf_str(&f->after, "{}\n");
    }
    struct buf next = {0};
    put_own_entry(&entry, h);
    code = edit_put(&next, h->format, &h->place, buf_view(&f->after), span_str(own_name),
                    buf_view(&entry), err);
    buf_fini(&f->after);
    f->after = next;
    f->put = own_name;
    return code;
}

static int read_host_file(struct host_setup_file *f, struct err *err)
{
    struct stat st;

    f->real = realpath(f->path, NULL);
    f->made = !f->real;
    if (!f->real)
        f->real = strdup(f->path);
    else if (stat(f->real, &st) || !S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "it is not a file");
    int code = f->made ? 0 : file_read(&f->before, f->real, CONFIG_MAX_BYTES);
    return code ? err_set(err, code, "cannot be read: %s", err_name(code)) : 0;
}

static void plan_file(struct host_setup *s, struct host_setup_file *f)
{
    struct value *adopted = s->servers->last;
    struct err err = {0};

    if (read_host_file(f, &err)) {
        f->wrong = err;
        return;
    }
    struct value *root = NULL;
    if (!is_blank(buf_view(&f->before))) {
        root = read_tree(s, f->host->format, buf_view(&f->before), &err);
        if (!root) {
            f->wrong = err;
            return;
        }
    } else {
        root = value_new(&s->arena, VALUE_MAP, (struct place){0});
    }
    bool own = take_place(s, f, root, &f->host->place, f->host->name);
    take_projects(s, f, root);
    if (!change_text(f, own, &err))
        return;
    /* The file cannot be edited: it is left alone, and its servers do not move. */
    f->wrong = err;
    f->taken = NULL;
    while (s->servers->last != adopted)
        value_remove(s->servers, s->servers->last);
}

/* --- all hosts --- */

static bool is_wanted(const struct host_program *h, char **names, int n)
{
    bool wanted = !n;

    for (int i = 0; i < n; i++)
        wanted |= strcmp(names[i], h->name) == 0;
    return wanted;
}

/* Plans every existing file of the host; if there is none but the host seems to be installed, the
 * first of its paths. */
static void plan_host(struct host_setup *s, const struct host_program *h)
{
    char *path, *fresh = NULL;
    bool installed, any = false;

    for (size_t i = 0; (path = host_program_path(h, i, &installed)); i++) {
        if (access(path, F_OK) == 0 && s->n < HOST_SETUP_FILES) {
            struct host_setup_file *f = &s->files[s->n++];
            *f = (struct host_setup_file){.host = h, .path = path};
            plan_file(s, f);
            any = true;
        } else if (installed && !fresh) {
            fresh = path;
        } else {
            mem_free(path);
        }
    }
    if (fresh && !any && s->n < HOST_SETUP_FILES) {
        struct host_setup_file *f = &s->files[s->n++];
        *f = (struct host_setup_file){.host = h, .path = fresh};
        plan_file(s, f);
        fresh = NULL;
    }
    mem_free(fresh);
}

/* Reads the user's own configuration and the servers in it. */
static int read_config(struct host_setup *s)
{
    const struct command *self = s->args->command;
    struct err err = {0};

    for (size_t i = 0; (s->config.path = config_place(i)); i++) {
        if (s->config.path[0] == '/' && strncmp(s->config.path, "/etc/", 5) != 0)
            break;
        mem_free(s->config.path);
    }
    if (!s->config.path) {
        cmd_error(self, "there is no home folder for a configuration");
        return CMD_FAILED;
    }
    int code = read_host_file(&s->config, &err);
    struct span text = buf_view(&s->config.before);
    struct value *root =
        code || is_blank(text) ? NULL : read_tree(s, edit_format_of(text), text, &err);
    if (err.text[0]) {
        cmd_error(self, "%s: %s", s->config.path, err.text);
        return CMD_FAILED;
    }
    struct edit_place place = edit_servers(text);
    struct value *servers = root ? value_get(root, place.keys[0]) : NULL;
    s->servers = servers && servers->type == VALUE_MAP
                     ? servers
                     : value_new(&s->arena, VALUE_MAP, (struct place){0});
    s->before = s->servers->n;
    struct problems problems = {0}; /* 'rialto check' shows them */
    s->user = root ? config_load(s->config.path, &problems) : NULL;
    problems_fini(&problems);
    if (!s->user)
        s->user = config_default();
    return 0;
}

/* Makes the new text of the user's configuration, with the servers that move there. */
static int change_config(struct host_setup *s)
{
    struct host_setup_file *f = &s->config;
    const struct value *v = s->servers->first;
    struct err err = {0};

    buf_span(&f->after, buf_view(&f->before));
    for (size_t i = 0; i < s->before; i++)
        v = v->next;
    for (; v; v = v->next) {
        struct span text = buf_view(&f->after);
        struct edit_place place = edit_servers(text);
        BUF_SCOPED json = {0};
        struct buf next = {0};
        value_put_json(&json, v, false);
        int code =
            edit_put(&next, edit_format_of(text), &place, text, v->key, buf_view(&json), &err);
        buf_fini(&f->after);
        f->after = next;
        if (code) {
            cmd_error(s->args->command, "%s: %s", f->path, err.text);
            cmd_hint("nothing was changed; %s", err.hint[0] ? err.hint : "edit the file by hand");
            return CMD_FAILED;
        }
    }
    return 0;
}

int host_setup_plan(struct host_setup *s, char **names, int n)
{
    int code = read_config(s);

    for (size_t i = 0; !code && i < host_programs_n; i++)
        if (is_wanted(&host_programs[i], names, n))
            plan_host(s, &host_programs[i]);
    return code ? code : change_config(s);
}
