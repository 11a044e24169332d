/* Reading a value tree by the table of keys: defaults, sections, entries, lists, unknown keys.
 * Called by load.c; convert.c, plan.c, schema_doc.c and schema_dump.c look up rows here. */
#include "config/schema.h"

#include "base/mem.h"
#include "config/nearest.h"
#include "config/schema_leaf.h"

#include <stdio.h>

enum { SHOWN_MAX = 320, SHOWN_PARENT_MAX = 240, SHOWN_KEY_MAX = 64, PATH_SIZE = 64 };

/* A map that is being read. */
struct scope {
    const char *path;      /* in the table: "servers.*" */
    char shown[SHOWN_MAX]; /* for people: "servers.files" */
    void *base;            /* the struct it goes to */
};

static void read_map(struct schema_read *r, const struct value *map, const struct scope *scope);

/* --- the table --- */

const struct schema_row *schema_find(const char *path)
{
    for (size_t i = 0; i < schema_rows_n; i++)
        if (strcmp(schema_rows[i].path, path) == 0)
            return &schema_rows[i];
    return NULL;
}

const char *schema_child(const struct schema_row *row, const char *parent)
{
    size_t n = strlen(parent);
    const char *name = row->path;

    if (n) {
        if (strncmp(row->path, parent, n) != 0 || row->path[n] != '.')
            return NULL;
        name += n + 1;
    }
    return strchr(name, '.') ? NULL : name;
}

static bool is_above(const struct schema_row *row, const struct schema_row *other)
{
    size_t n = strlen(row->path);
    return strncmp(row->path, other->path, n) == 0 && other->path[n] == '.';
}

const char *schema_missing(const struct schema_row *row)
{
    if (row->missing)
        return row->missing;
    for (size_t i = 0; i < schema_rows_n; i++)
        if (schema_rows[i].missing && is_above(&schema_rows[i], row))
            return schema_rows[i].missing;
    return NULL;
}

static const struct schema_row *find_child(const char *parent, struct span key)
{
    for (size_t i = 0; i < schema_rows_n; i++) {
        const char *name = schema_child(&schema_rows[i], parent);
        if (name && span_is(key, name))
            return &schema_rows[i];
    }
    return NULL;
}

/* --- defaults --- */

static void read_row(struct schema_read *r, const struct schema_row *row, const struct value *v,
                     const char *shown, void *base);

/* What the rows at `parent` are when nobody sets them. */
static void set_presets(struct schema_read *r, const char *parent, void *base)
{
    struct arena scratch = {0};
    struct schema_read quiet = *r;

    quiet.preview = true;
    for (size_t i = 0; i < schema_rows_n; i++) {
        const struct schema_row *row = &schema_rows[i];
        if (!schema_child(row, parent))
            continue;
        if (row->type == SCHEMA_SECTION)
            set_presets(r, row->path, base);
        else if (row->preset)
            read_row(&quiet, row, schema_leaf_text_value(&scratch, row, span_str(row->preset)),
                     row->path, base);
    }
    arena_fini(&scratch);
}

/* --- maps and lists of structs --- */

static bool is_empty_map(const struct value *v)
{
    return v->type == VALUE_NULL || (v->type == VALUE_MAP && !v->n);
}

/* Reads a map into a fresh entry; false when the entry is to be left out. */
static bool read_entry(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       struct scope *scope)
{
    set_presets(r, scope->path, scope->base);
    if (row->shorthand && v->type == VALUE_STRING) {
        const struct schema_row *key = find_child(scope->path, span_str(row->shorthand));
        schema_leaf_read(r, key, v, scope->shown, scope->base);
    } else if (row->shorthand && v->type == VALUE_NUMBER) {
        const struct schema_row *key = find_child(scope->path, span_str(row->shorthand));
        const char *why = key->check(v->text);
        problems_add(r->problems, PROBLEM_ERROR, v->at, scope->shown, "%s",
                     why ? why : "expected text; put quotes around it");
        return false;
    } else if (v->type == VALUE_MAP || is_empty_map(v)) {
        read_map(r, v, scope);
    } else {
        problems_add(r->problems, PROBLEM_ERROR, v->at, scope->shown, "expected %s, not %s",
                     row->shorthand ? "text or a map of keys" : "a map of keys",
                     value_type_name(v->type));
        return false;
    }
    return !row->check_entry || row->check_entry(r, v, scope->shown, scope->base);
}

static void show_key(struct scope *scope, const char *parent, struct span key)
{
    if (key.n > SHOWN_KEY_MAX)
        key.n = SHOWN_KEY_MAX;
    snprintf(scope->shown, sizeof scope->shown, "%.*s%s" SPAN_FMT, SHOWN_PARENT_MAX, parent,
             *parent ? "." : "", SPAN_ARG(key));
}

/* The path that the keys of its entries have in the table. */
static void entry_path(const struct schema_row *row, char *out, size_t size)
{
    snprintf(out, size, "%s.*", row->path);
}

static void read_entries(struct schema_read *r, const struct schema_row *row, const struct value *v,
                         const char *shown, void *base)
{
    char path[PATH_SIZE];
    size_t n = 0;

    if (v->type != VALUE_MAP) {
        schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    if (!schema_leaf_count_fits(r, row, v, shown))
        return;
    entry_path(row, path, sizeof path);
    char *items = arena_alloc(r->arena, row->entry_size * v->n);
    for (const struct value *child = v->first; child; child = child->next) {
        struct scope scope = {.path = path, .base = items + n * row->entry_size};
        struct span name = value_key(child);
        const char *why = memchr(name.p, '\0', name.n) ? "a NUL character cannot stand in a name"
                          : row->check                 ? row->check(name)
                                                       : NULL;

        show_key(&scope, shown, child->key);
        if (why) {
            problems_add(r->problems, PROBLEM_ERROR, child->key_at, scope.shown, "%s", why);
            continue;
        }
        memset(scope.base, 0, row->entry_size); /* one that was left out may have been here */
        const char *kept = arena_span(r->arena, name).p;
        memcpy(scope.base, &kept, sizeof kept);
        if (read_entry(r, row, child, &scope))
            n++;
    }
    schema_leaf_put_list(row, base, items, n);
}

static void read_list(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    bool list = v->type == VALUE_LIST;
    char path[PATH_SIZE];
    size_t n = 0, at = 0;

    if (!schema_leaf_count_fits(r, row, v, shown))
        return;
    entry_path(row, path, sizeof path);
    char *items = arena_alloc(r->arena, row->entry_size * (list ? v->n : 1));
    for (const struct value *child = list ? v->first : v; child;
         child = list ? child->next : NULL) {
        struct scope scope = {.path = path, .base = items + n * row->entry_size};

        if (list)
            snprintf(scope.shown, sizeof scope.shown, "%.*s[%zu]", SHOWN_PARENT_MAX, shown, at++);
        else
            snprintf(scope.shown, sizeof scope.shown, "%.*s", SHOWN_PARENT_MAX, shown);
        memset(scope.base, 0, row->entry_size);
        if (read_entry(r, row, child, &scope))
            n++;
    }
    schema_leaf_put_list(row, base, items, n);
}

static void read_section(struct schema_read *r, const struct schema_row *row, const struct value *v,
                         const char *shown, void *base)
{
    struct scope scope = {.path = row->path, .base = base};

    if (v->type != VALUE_MAP) {
        schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    snprintf(scope.shown, sizeof scope.shown, "%.*s", SHOWN_PARENT_MAX, shown);
    read_map(r, v, &scope);
}

/* --- one map --- */

static void read_row(struct schema_read *r, const struct schema_row *row, const struct value *v,
                     const char *shown, void *base)
{
    if (v->type == VALUE_NULL)
        return; /* a key with nothing behind it is a key not given */
    if (row->missing && !r->preview) {
        problems_add(r->problems, PROBLEM_ERROR, v->key_at, shown,
                     "support for %s is not available in this version", row->missing);
        return;
    }
    if (row->type == SCHEMA_SECTION)
        read_section(r, row, v, shown, base);
    else if (row->type == SCHEMA_ENTRIES)
        read_entries(r, row, v, shown, base);
    else if (row->type == SCHEMA_LIST)
        read_list(r, row, v, shown, base);
    else
        schema_leaf_read(r, row, v, shown, base);
}

/* Is `word` one of the words in `list`, which are parted by blanks? */
static bool word_in(struct span word, const char *list)
{
    struct span rest = span_str(list);

    while (rest.n) {
        size_t blank = span_find(rest, ' ');
        if (span_eq_nocase(span_cut(rest, 0, blank), word))
            return true;
        rest = span_from(rest, blank + 1);
    }
    return false;
}

static struct span suggest_key(const char *parent, struct span key)
{
    struct nearest near = nearest_to(key);

    for (size_t i = 0; i < schema_rows_n; i++) {
        const char *name = schema_child(&schema_rows[i], parent);
        if (!name || *name == '*')
            continue;
        if (schema_rows[i].also && word_in(key, schema_rows[i].also))
            return span_str(name);
        nearest_offer(&near, span_str(name));
    }
    return near.best;
}

static void unknown_key(struct schema_read *r, const struct value *v, const struct scope *scope,
                        const char *shown)
{
    if (r->lenient) {
        problems_add(r->problems, PROBLEM_WARNING, v->key_at, shown, "unknown key, ignored");
        return;
    }
    if (r->problems->n == PROBLEMS_MAX) {
        problems_add(r->problems, PROBLEM_ERROR, v->key_at, shown, "unknown key");
        return;
    }
    struct span near = suggest_key(scope->path, v->key);
    if (near.n)
        problems_add(r->problems, PROBLEM_ERROR, v->key_at, shown,
                     "unknown key; did you mean '" SPAN_FMT "'?", SPAN_ARG(near));
    else
        problems_add(r->problems, PROBLEM_ERROR, v->key_at, shown,
                     "unknown key; 'rialto config --explain%s%s' lists those that are known",
                     *scope->path ? " " : "", scope->path);
}

static void read_map(struct schema_read *r, const struct value *map, const struct scope *scope)
{
    bool seen[SCHEMA_ROWS_MAX] = {false};

    for (const struct value *v = map->first; v; v = v->next) {
        const struct schema_row *row = find_child(scope->path, value_key(v));
        struct scope key;

        /* As in other YAML files, "x-" marks what is the author's own: anchors to merge from. */
        if (!*scope->path && span_starts(v->key, SPAN("x-")))
            continue;
        show_key(&key, scope->shown, v->key);
        if (!row) {
            unknown_key(r, v, scope, key.shown);
            continue;
        }
        /* Only an importer makes two keys mean the same: the reader has refused others. */
        if (seen[row - schema_rows] && v->as.n)
            problems_add(r->problems, PROBLEM_ERROR, v->key_at, key.shown,
                         "this says the same as '" SPAN_FMT "'; keep one", SPAN_ARG(v->as));
        seen[row - schema_rows] = true;
        read_row(r, row, v, key.shown, scope->base);
    }
}

void schema_read(struct schema_read *r, const struct value *root, struct config *c)
{
    struct scope top = {.path = "", .base = c};

    set_presets(r, "", c);
    if (root->type == VALUE_MAP)
        read_map(r, root, &top);
    else if (root->type != VALUE_NULL)
        problems_add(r->problems, PROBLEM_ERROR, root->at, "",
                     "expected a map of keys such as 'servers', not %s",
                     value_type_name(root->type));
}

void schema_set(struct schema_read *r, struct config *c, const char *path, struct span text)
{
    const struct schema_row *row = schema_find(path);
    struct arena scratch = {0};

    read_row(r, row, schema_leaf_text_value(&scratch, row, text), path, c);
    arena_fini(&scratch);
}
