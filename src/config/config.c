/* A configuration: finding its file, reading and checking it, settings from the environment and the
 * command line on top, finding a server in it, and freeing it. Called by cmd/ at the start, by
 * hub/graph/follow.c for a reload, and wherever a server is looked up. */
#include "config/load.h"

#include "base/file.h"
#include "base/mem.h"
#include "config/check.h"
#include "config/convert.h"
#include "config/credentials.h"
#include "config/import.h"
#include "config/reader.h"
#include "config/schema.h"
#include "config/secret.h"
#include "wire/json.h"

#include <stdlib.h>
#include <unistd.h>

/* --- finding --- */

static const char *const local_files[] = {"./rialto.yaml", "./rialto.json", "./mcp.json"};
static const char system_file[] = "/etc/rialto/rialto.yaml";

const char *config_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* False when there is no home to look in. */
static bool put_user_file(struct buf *out)
{
    const char *base = config_env("XDG_CONFIG_HOME");
    const char *home = config_env("HOME");

    /* The specification wants relative paths here to be ignored. */
    if (base && base[0] == '/')
        buf_printf(out, "%s/rialto/rialto.yaml", base);
    else if (home)
        buf_printf(out, "%s/.config/rialto/rialto.yaml", home);
    return out->n > 0;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

char *config_place(size_t n)
{
    BUF_SCOPED user = {0};

    if (n < COUNT_OF(local_files))
        return mem_str(local_files[n]);
    n -= COUNT_OF(local_files);
    if (put_user_file(&user) && n-- == 0)
        return buf_take(&user);
    return n == 0 ? mem_str(system_file) : NULL;
}

/* config_find without the first `n` places. */
static char *find_from(const char *given, size_t n)
{
    if (!given)
        given = config_env("RIALTO_CONFIG");
    if (given)
        return mem_str(given);
    for (size_t i = n;; i++) {
        char *place = config_place(i);
        if (!place || exists(place))
            return place;
        mem_free(place);
    }
}

char *config_find(const char *given)
{
    return find_from(given, 0);
}

char *config_find_outside(const char *given)
{
    return find_from(given, COUNT_OF(local_files));
}

char *config_user_file(void)
{
    struct buf path = {0};

    return put_user_file(&path) ? buf_take(&path) : NULL;
}

void config_put_places(struct buf *out)
{
    char *place;

    buf_str(out, "$RIALTO_CONFIG");
    for (size_t i = 0; (place = config_place(i)); i++) {
        buf_printf(out, ", %s", place);
        mem_free(place);
    }
}

/* --- reading --- */

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && span_eq_nocase(span_of(path + n - m, m), span_of(end, m));
}

static struct span skip_bom(struct span text)
{
    return span_starts(text, SPAN("\xef\xbb\xbf")) ? span_from(text, 3) : text;
}

enum config_format config_format_of(const char *path, struct span text)
{
    text = skip_bom(text);
    if (ends_with(path, ".json") || ends_with(path, ".jsonc"))
        return CONFIG_JSON;
    if (ends_with(path, ".toml"))
        return CONFIG_TOML;
    if (ends_with(path, ".yaml") || ends_with(path, ".yml"))
        return CONFIG_YAML;
    size_t at = 0;
    while (at < text.n && (text.p[at] == ' ' || (text.p[at] >= '\t' && text.p[at] <= '\r')))
        at++;
    return at < text.n && text.p[at] == '{' ? CONFIG_JSON : CONFIG_YAML;
}

bool config_read_text(const char *path, struct buf *text, struct problems *problems)
{
    /* "-" is the standard input, which cannot be opened by its name in /dev when it is a socket. */
    int rc = strcmp(path, "-") == 0 ? file_read_fd(text, STDIN_FILENO, CONFIG_MAX_BYTES)
                                    : file_read(text, path, CONFIG_MAX_BYTES);

    problems_set_file(problems, path);
    if (rc == ERR_SIZE)
        problems_add(problems, PROBLEM_ERROR, (struct place){0}, "",
                     "too large for a configuration, more than %d MiB", CONFIG_MAX_BYTES >> 20);
    else if (rc)
        problems_add(problems, PROBLEM_ERROR, (struct place){0}, "", "cannot read it: %s",
                     err_name(rc));
    return !rc;
}

/* JSON may have comments and trailing commas. */
static struct value *read_json(struct arena *a, struct span text, struct problems *problems)
{
    BUF_SCOPED relaxed = {0};

    bool fine = json_doc_relax(&relaxed, text);
    (void)fine; /* json_doc_read reports what is wrong, with its place */
    return json_doc_read(a, buf_view(&relaxed), problems);
}

/* The document as a tree in our own keys; NULL when it cannot be read in this format. */
static struct value *read_document(struct arena *a, struct span text, enum config_format format,
                                   struct schema_read *reading, struct config *c,
                                   const struct import_hints *given)
{
    static struct value *(*const readers[])(struct arena *, struct span, struct problems *) = {
        [CONFIG_YAML] = yaml_read, [CONFIG_JSON] = read_json, [CONFIG_TOML] = toml_read};
    enum import_dialect dialect = IMPORT_OURS;
    struct import_hints hints = *given;

    hints.json = format == CONFIG_JSON;
    struct value *root = readers[format](a, skip_bom(text), reading->problems);
    if (root)
        dialect = import_document(a, root, &hints, reading->problems);
    reading->lenient = dialect != IMPORT_OURS;
    c->omits_headers = dialect == IMPORT_MCP_SERVERS;
    return root;
}

static struct value *member_of(struct arena *a, struct value *map, const char *key,
                               enum value_type type)
{
    struct value *v = value_get(map, key);

    if (v && v->type != VALUE_NULL)
        return v;
    if (v)
        value_remove(map, v);
    v = value_new(a, type, map->at);
    v->key = span_str(key);
    v->key_at = map->at;
    value_append(map, v);
    return v;
}

/* The list of tokens in tokens.yaml of the state folder, whose problems are reported under its own
 * name; NULL: it cannot be used, or there is no such file. */
static struct value *read_tokens(struct arena *a, struct span text, struct problems *problems)
{
    const char *file = problems->file;
    size_t errors = problems->errors;
    struct value *list = NULL;

    if (!text.p)
        return NULL;
    problems_set_file(problems, "tokens.yaml");
    struct value *root = yaml_read(a, text, problems);
    const struct value *auth = root ? value_get(root, "auth") : NULL;
    if (auth)
        list = value_get(auth, "tokens");
    if (list && list->type == VALUE_LIST) {
        struct config *alone = MEM_NEW(struct config);
        struct schema_read reading = {
            .arena = &alone->arena, .problems = problems, .unfilled = true};
        schema_read(&reading, root, alone);
        buf_fini(&reading.unset);
        config_free(alone);
    } else if (problems->errors == errors) {
        /* Nobody would be asked for a token, although somebody wanted that. */
        problems_add(problems, PROBLEM_ERROR, (struct place){0}, "auth.tokens",
                     "the file has no such list of tokens; remove it if there are to be none");
    }
    problems_set_file(problems, file);
    return problems->errors == errors ? list : NULL;
}

/* Puts the tokens of another document behind those of `root`. */
static void add_tokens(struct arena *a, struct value *root, struct span more,
                       struct problems *problems)
{
    struct value *list = read_tokens(a, more, problems);

    if (!list)
        return;
    if (root->type == VALUE_NULL)
        root->type = VALUE_MAP; /* an empty file */
    struct value *tokens =
        member_of(a, member_of(a, root, "auth", VALUE_MAP), "tokens", VALUE_LIST);
    for (struct value *t = list->first, *next; t && tokens->type == VALUE_LIST; t = next) {
        next = t->next;
        t->next = NULL;
        value_append(tokens, t);
    }
}

static void fill(void *arg, const char *text, struct buf *out, struct buf *missing)
{
    secrets_fill(arg, text, out, missing);
}

/* Reads the section `secrets` first: it says where ${NAME} in the other sections is looked up. */
static void read_secrets(struct arena *a, const struct value *root, struct config *c,
                         struct schema_read *reading)
{
    const struct value *secrets = value_get(root, "secrets");
    size_t budget = VALUE_MAX_NODES;
    struct problems none = {0};
    struct schema_read quiet = *reading;
    struct value *copy = secrets ? value_copy(a, secrets, &budget) : NULL;

    if (!copy)
        return;
    struct value *alone = value_new(a, VALUE_MAP, root->at);
    value_append(alone, copy);
    quiet.problems = &none;
    schema_read(&quiet, alone, c);
    problems_fini(&none);
}

static struct config *parse(struct span text, enum config_format format, struct span tokens,
                            struct problems *problems)
{
    struct arena scratch = {0};
    struct config *c = MEM_NEW(struct config);
    struct secrets *secrets = secrets_new(c);
    struct schema_read reading = {
        .arena = &c->arena, .problems = problems, .fill = fill, .fill_arg = secrets};
    size_t errors = problems->errors, first = problems->n;

    struct value *root =
        read_document(&scratch, text, format, &reading, c, &(struct import_hints){0});
    secrets_set_plain(secrets);
    if (root) {
        add_tokens(&scratch, root, tokens, problems);
        read_secrets(&scratch, root, c, &reading);
        schema_read(&reading, root, c);
        credentials_in_config(c); /* before any message can quote a secret */
        check_config(&reading, root, c);
    }
    problems_sort(problems, first);
    secrets_free(secrets);
    buf_fini(&reading.unset);
    arena_fini(&scratch);
    if (problems->errors == errors)
        return c;
    config_free(c);
    return NULL;
}

struct config *config_parse(struct span text, enum config_format format, struct problems *problems)
{
    return parse(text, format, SPAN_EMPTY, problems);
}

struct config *config_load_with(const char *path, struct span tokens, struct problems *problems)
{
    BUF_SCOPED text = {0};
    struct config *c = NULL;

    if (!path)
        return parse(SPAN("{}"), CONFIG_YAML, tokens, problems);
    if (config_read_text(path, &text, problems))
        c = parse(buf_view(&text), config_format_of(path, buf_view(&text)), tokens, problems);
    if (c)
        c->file = arena_span(&c->arena, span_str(path)).p;
    return c;
}

struct config *config_load(const char *path, struct problems *problems)
{
    return config_load_with(path, SPAN_EMPTY, problems);
}

bool config_convert(struct span text, enum config_format format, const struct host_program *host,
                    const char *source, struct buf *out, struct problems *problems)
{
    struct arena scratch = {0};
    struct config *c = MEM_NEW(struct config);
    struct schema_read reading = {.arena = &c->arena, .problems = problems, .unfilled = true};

    struct value *root = read_document(&scratch, text, format, &reading, c,
                                       &(struct import_hints){.host = host, .thorough = true});
    if (root) {
        schema_read(&reading, root, c);
        credentials_in_config(c); /* before any message can quote a secret */
        check_config(&reading, root, c);
    }
    problems_sort(problems, 0);
    bool fine = root && !problems->errors;
    if (fine)
        convert_put(out, root, source, problems);
    arena_fini(&scratch);
    config_free(c);
    return fine;
}

struct config *config_default(void)
{
    struct problems none = {0};
    struct config *c = config_parse(SPAN("{}"), CONFIG_YAML, &none);
    problems_fini(&none);
    return c;
}

/* --- on top of the file --- */

void config_set(struct config *c, const char *key, const char *text, struct problems *problems)
{
    struct schema_read reading = {.arena = &c->arena, .problems = problems};
    schema_set(&reading, c, key, span_str(text));
}

void config_environment(struct config *c, struct problems *problems)
{
    for (size_t i = 0; i < schema_rows_n; i++) {
        const struct schema_row *row = &schema_rows[i];
        const char *text = row->env ? config_env(row->env) : NULL;
        if (!text)
            continue;
        problems_set_file(problems, row->env);
        config_set(c, row->path, text, problems);
    }
    problems_set_file(problems, c->file);
}

/* --- what was read --- */

void config_free(struct config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    mem_free(c);
}

struct config_server *config_server(const struct config *c, const char *alias)
{
    for (size_t i = 0; i < c->servers.n; i++)
        if (strcmp(c->servers.items[i].alias, alias) == 0)
            return &c->servers.items[i];
    return NULL;
}

bool config_server_equal(const struct config_server *a, const struct config_server *b)
{
    return strcmp(a->alias, b->alias) == 0 && schema_equal("servers.*", a, b) &&
           (!a->sandbox.level || a->sandbox.warns == b->sandbox.warns);
}
