/* Reading a value tree by the table of keys: defaults, sections, entries, lists, unknown keys, and
 * single values by their type (text, list, pairs, boolean, number, size, duration, word, JSON).
 * Called by config.c; convert.c, plan.c, schema_doc.c and schema_dump.c look up rows here. */
#include "config/schema.h"

#include "base/mem.h"
#include "config/nearest.h"
#include "config/units.h"
#include "wire/json.h"

#include <stdio.h>

enum { SHOWN_MAX = 320, SHOWN_PARENT_MAX = 240, SHOWN_KEY_MAX = 64, PATH_SIZE = 64 };

/* A map that is being read. */
struct scope {
    const char *path;      /* in the table: "servers.*" */
    char shown[SHOWN_MAX]; /* for people: "servers.files" */
    void *base;            /* the struct that the values go to */
};

static void read_map(struct schema_read *r, const struct value *map, const struct scope *scope);

/* --- single values; VALUE_NULL, which means "not given", is not among them --- */

struct any_list {
    void *items;
    size_t n;
};

static void *field(const struct schema_row *row, void *base)
{
    return (char *)base + row->offset;
}

/* Lists of any type are stored as {items, n} at their offset. */
static void put_list(const struct schema_row *row, void *base, void *items, size_t n)
{
    struct any_list list = {items, n};
    memcpy(field(row, base), &list, sizeof list);
}

static void wrong(struct schema_read *r, const struct value *v, const char *shown, const char *text)
{
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "%s", text);
}

static void wrong_type(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       const char *shown)
{
    BUF_SCOPED type = {0};

    schema_put_type(&type, row);
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected %s, not %s", buf_cstr(&type),
                 value_type_name(v->type));
}

static bool count_fits(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       const char *shown)
{
    if (!row->max || v->n <= row->max)
        return true;
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown,
                 "%zu are too many, at most %zu are allowed", v->n, (size_t)row->max);
    return false;
}

static bool text_is_fine(struct schema_read *r, schema_check_fn *check, struct span text,
                         struct place at, const char *shown)
{
    const char *why = NULL;

    if (memchr(text.p, '\0', text.n))
        why = "it cannot contain a NUL character";
    else if (check && !(r->open && strstr(text.p, "${")))
        why = check(text);
    if (why)
        problems_add(r->problems, PROBLEM_ERROR, at, shown, "%s", why);
    return !why;
}

static void read_string(struct schema_read *r, const struct schema_row *row, const struct value *v,
                        const char *shown, void *base)
{
    if (v->type != VALUE_STRING) {
        if (v->type == VALUE_NUMBER || v->type == VALUE_BOOL)
            wrong(r, v, shown, "expected text; put quotes around it");
        else
            wrong_type(r, row, v, shown);
        return;
    }
    if (!text_is_fine(r, row->check, v->text, v->at, shown))
        return;
    const char *text = arena_span(r->arena, v->text).p;
    memcpy(field(row, base), &text, sizeof text);
}

/* In lists and maps of text, 8080 and true are taken as text. */
static bool is_texty(const struct value *v)
{
    return v->type == VALUE_STRING || v->type == VALUE_NUMBER || v->type == VALUE_BOOL;
}

static bool is_word_for_all(const struct schema_row *row, const struct value *v)
{
    return row->shorthand && v->type == VALUE_STRING && span_is(v->text, row->shorthand);
}

static void read_strings(struct schema_read *r, const struct schema_row *row, const struct value *v,
                         const char *shown, void *base)
{
    static const char *everything[] = {"*"};
    size_t n = 0;

    if (row->zero && v->type == VALUE_STRING && span_is(v->text, row->zero)) {
        put_list(row, base, NULL, 0);
        return;
    }
    if (is_word_for_all(row, v)) {
        put_list(row, base, everything, 1);
        return;
    }
    if (v->type != VALUE_LIST) {
        wrong_type(r, row, v, shown);
        return;
    }
    if (!count_fits(r, row, v, shown))
        return;
    if (v->n < row->min) {
        wrong(r, v, shown, "the list is empty; leave the key out, or name something");
        return;
    }
    const char **items = ARENA_ARRAY(r->arena, const char *, v->n);
    for (const struct value *item = v->first; item; item = item->next) {
        if (!is_texty(item))
            problems_add(r->problems, PROBLEM_ERROR, item->at, shown, "expected text here, not %s",
                         value_type_name(item->type));
        else if (text_is_fine(r, row->check, item->text, item->at, shown))
            items[n++] = is_word_for_all(row, item) ? "*" : arena_span(r->arena, item->text).p;
    }
    put_list(row, base, items, n);
}

static void read_pairs(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       const char *shown, void *base)
{
    size_t n = 0;

    if (v->type != VALUE_MAP) {
        wrong_type(r, row, v, shown);
        return;
    }
    if (!count_fits(r, row, v, shown))
        return;
    struct config_pair *items = ARENA_ARRAY(r->arena, struct config_pair, v->n);
    for (const struct value *item = v->first; item; item = item->next) {
        if (!text_is_fine(r, row->check_name, item->key, item->key_at, shown))
            continue;
        if (!is_texty(item))
            problems_add(r->problems, PROBLEM_ERROR, item->at, shown,
                         "expected text for '%.64s', not %s; nothing at all is written \"\"",
                         item->key.p, value_type_name(item->type));
        else if (text_is_fine(r, row->check, item->text, item->at, shown))
            items[n++] = (struct config_pair){arena_span(r->arena, item->key).p,
                                              arena_span(r->arena, item->text).p};
    }
    put_list(row, base, items, n);
}

static void read_bool(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    if (v->type == VALUE_BOOL)
        memcpy(field(row, base), &v->truth, sizeof v->truth);
    else
        wrong(r, v, shown, "expected true or false");
}

void schema_put_amount(struct buf *out, const struct schema_row *row, uint64_t amount)
{
    if (row->type == SCHEMA_SIZE)
        units_put_size(out, amount);
    else if (row->type == SCHEMA_DURATION)
        units_put_duration(out, amount);
    else
        buf_u64(out, amount);
}

static bool amount_in_bounds(struct schema_read *r, const struct schema_row *row, uint64_t amount,
                             const struct value *v, const char *shown)
{
    bool low = amount ? amount < row->min : !row->zero;
    bool high = row->max && amount > row->max;

    if (!low && !high)
        return true;
    BUF_SCOPED bound = {0};
    schema_put_amount(&bound, row, low ? row->min : row->max);
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "too %s, it must be at %s %s",
                 low ? "small" : "large", low ? "least" : "most", buf_cstr(&bound));
    return false;
}

static const char *read_count(struct span text, uint64_t *out)
{
    int64_t number;

    if (!value_is_number(text) || !json_int(text, &number) || number < 0)
        return "expected a whole number";
    *out = (uint64_t)number;
    return NULL;
}

static void read_amount(struct schema_read *r, const struct schema_row *row, const struct value *v,
                        const char *shown, void *base)
{
    uint64_t amount = 0;
    const char *why = NULL;

    if (row->type == SCHEMA_NUMBER ? v->type != VALUE_NUMBER
                                   : v->type != VALUE_NUMBER && v->type != VALUE_STRING) {
        wrong_type(r, row, v, shown);
        return;
    }
    if (row->type == SCHEMA_SIZE)
        why = units_read_size(v->text, &amount);
    else if (row->type == SCHEMA_DURATION)
        why = units_read_duration(v->text, &amount);
    else
        why = read_count(v->text, &amount);
    if (why)
        wrong(r, v, shown, why);
    else if (amount_in_bounds(r, row, amount, v, shown))
        memcpy(field(row, base), &amount, sizeof amount);
}

/* The place of the word in the row's list, or -1 with a problem added. */
static int find_word(struct schema_read *r, const struct schema_row *row, const struct value *v,
                     const char *shown)
{
    struct nearest near = nearest_to(v->text);
    struct span text = v->type == VALUE_STRING ? v->text : SPAN_EMPTY;

    if (v->type == VALUE_BOOL)
        text = v->truth ? SPAN("true") : SPAN("false");
    for (int i = 0; row->words[i].word; i++) {
        if (span_is(text, row->words[i].word))
            return i;
        nearest_offer(&near, span_str(row->words[i].word));
    }
    BUF_SCOPED why = {0};
    if (v->text.n)
        buf_printf(&why, "'" SPAN_FMT "' is not known here; ",
                   SPAN_ARG(span_cut(v->text, 0, SHOWN_KEY_MAX)));
    buf_str(&why, "expected ");
    schema_put_type(&why, row);
    if (near.best.n)
        buf_printf(&why, "; did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "%s", buf_cstr(&why));
    return -1;
}

static void read_word(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    int word = find_word(r, row, v, shown);
    if (word >= 0)
        memcpy(field(row, base), &word, sizeof word);
}

static void read_words(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       const char *shown, void *base)
{
    unsigned bits = 0;

    if (v->type != VALUE_LIST) {
        wrong_type(r, row, v, shown);
        return;
    }
    for (const struct value *item = v->first; item; item = item->next) {
        int word = find_word(r, row, item, shown);
        if (word >= 0)
            bits |= 1u << word;
    }
    memcpy(field(row, base), &bits, sizeof bits);
}

static void keep_json(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      void *base)
{
    BUF_SCOPED json = {0};
    value_put_json(&json, v, false);
    const char *text = arena_span(r->arena, buf_view(&json)).p;
    memcpy(field(row, base), &text, sizeof text);
}

static void read_json(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    if (v->type != VALUE_MAP) {
        wrong_type(r, row, v, shown);
        return;
    }
    keep_json(r, row, v, base);
}

static void read_scalars(struct schema_read *r, const struct schema_row *row, const struct value *v,
                         const char *shown, void *base)
{
    bool fits = v->type == VALUE_LIST && v->n;

    for (const struct value *item = fits ? v->first : NULL; item; item = item->next)
        fits &= is_texty(item) && text_is_fine(r, NULL, item->text, item->at, shown);
    if (!fits) {
        wrong_type(r, row, v, shown);
        return;
    }
    keep_json(r, row, v, base);
}

/* `shown` is the key's path for people; `base` the struct that row->offset counts from. */
static void read_leaf(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    static void (*const readers[])(struct schema_read *, const struct schema_row *,
                                   const struct value *, const char *, void *) = {
        [SCHEMA_STRING] = read_string,   [SCHEMA_STRINGS] = read_strings,
        [SCHEMA_PAIRS] = read_pairs,     [SCHEMA_BOOL] = read_bool,
        [SCHEMA_NUMBER] = read_amount,   [SCHEMA_SIZE] = read_amount,
        [SCHEMA_DURATION] = read_amount, [SCHEMA_WORD] = read_word,
        [SCHEMA_WORDS] = read_words,     [SCHEMA_JSON] = read_json,
        [SCHEMA_SCALARS] = read_scalars, [SCHEMA_SECTION] = read_word,
    };
    struct arena scratch = {0};
    const struct value *filled = schema_fill(r, row, v, shown, &scratch);

    if (filled)
        readers[row->type](r, row, filled, shown, base);
    arena_fini(&scratch);
}

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

/* Sets the defaults of all rows at `parent`. */
static void set_presets(struct schema_read *r, const char *parent, void *base)
{
    struct arena scratch = {0};

    for (size_t i = 0; i < schema_rows_n; i++) {
        const struct schema_row *row = &schema_rows[i];
        if (!schema_child(row, parent))
            continue;
        if (row->type == SCHEMA_SECTION)
            set_presets(r, row->path, base);
        if (row->preset)
            read_row(r, row, schema_text_value(&scratch, row, span_str(row->preset)), row->path,
                     base);
    }
    arena_fini(&scratch);
}

/* --- maps and lists of structs --- */

static bool is_empty_map(const struct value *v)
{
    return v->type == VALUE_NULL || (v->type == VALUE_MAP && !v->n);
}

/* Reads a map into a fresh entry; false when the entry is to be left out. */
static bool read_fields(struct schema_read *r, const struct schema_row *row, const struct value *v,
                        struct scope *scope)
{
    set_presets(r, scope->path, scope->base);
    if (row->shorthand && v->type == VALUE_STRING) {
        const struct schema_row *key = find_child(scope->path, span_str(row->shorthand));
        read_leaf(r, key, v, scope->shown, scope->base);
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

static bool read_entry(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       struct scope *scope)
{
    const struct value *outer = r->entry;

    if (!outer)
        r->entry = v;
    bool fine = read_fields(r, row, v, scope);
    r->entry = outer;
    return fine;
}

static void show_key(struct scope *scope, const char *parent, struct span key)
{
    if (key.n > SHOWN_KEY_MAX)
        key.n = SHOWN_KEY_MAX;
    snprintf(scope->shown, sizeof scope->shown, "%.*s%s" SPAN_FMT, SHOWN_PARENT_MAX, parent,
             *parent ? "." : "", SPAN_ARG(key));
}

/* The path in the table for the keys of the row's entries. */
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
        wrong_type(r, row, v, shown);
        return;
    }
    if (!count_fits(r, row, v, shown))
        return;
    entry_path(row, path, sizeof path);
    char *items = arena_alloc(r->arena, row->entry_size * v->n);
    for (const struct value *child = v->first; child; child = child->next) {
        struct scope scope = {.path = path, .base = items + n * row->entry_size};
        struct span name = value_key(child);
        const char *why = memchr(name.p, '\0', name.n) ? "a name cannot contain a NUL character"
                          : row->check                 ? row->check(name)
                                                       : NULL;

        show_key(&scope, shown, child->key);
        if (why) {
            problems_add(r->problems, PROBLEM_ERROR, child->key_at, scope.shown, "%s", why);
            continue;
        }
        memset(scope.base, 0, row->entry_size); /* may hold an entry that was left out */
        const char *kept = arena_span(r->arena, name).p;
        memcpy(scope.base, &kept, sizeof kept);
        if (read_entry(r, row, child, &scope))
            n++;
    }
    put_list(row, base, items, n);
}

static void read_list(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    bool list = v->type == VALUE_LIST;
    char path[PATH_SIZE];
    size_t n = 0, at = 0;

    if (!count_fits(r, row, v, shown))
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
    put_list(row, base, items, n);
}

static void read_section(struct schema_read *r, const struct schema_row *row, const struct value *v,
                         const char *shown, void *base)
{
    struct scope scope = {.path = row->path, .base = base};

    if ((row->words || row->shorthand) && v->type != VALUE_MAP) {
        read_leaf(r, row->words ? row : find_child(row->path, span_str(row->shorthand)), v, shown,
                  base);
        return;
    }
    if (v->type != VALUE_MAP) {
        wrong_type(r, row, v, shown);
        return;
    }
    if (row->words) {
        int map = 0;
        while (row->words[map].word)
            map++;
        memcpy(field(row, base), &map, sizeof map);
    }
    snprintf(scope.shown, sizeof scope.shown, "%.*s", SHOWN_PARENT_MAX, shown);
    read_map(r, v, &scope);
}

/* --- one map --- */

static void read_row(struct schema_read *r, const struct schema_row *row, const struct value *v,
                     const char *shown, void *base)
{
    if (v->type == VALUE_NULL) {
        if (row->needs_value)
            wrong(r, v, shown, "there is no value; leave the key out, or name something");
        return; /* a key without a value counts as not given */
    }
    if (row->type == SCHEMA_SECTION)
        read_section(r, row, v, shown, base);
    else if (row->type == SCHEMA_ENTRIES)
        read_entries(r, row, v, shown, base);
    else if (row->type == SCHEMA_LIST)
        read_list(r, row, v, shown, base);
    else
        read_leaf(r, row, v, shown, base);
}

/* Is `word` one of the words in `list`, which are separated by blanks? */
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

        /* As in other YAML files, "x-" marks keys for the author's own use, such as anchors. */
        if (!*scope->path && span_starts(v->key, SPAN("x-")))
            continue;
        show_key(&key, scope->shown, v->key);
        if (!row) {
            unknown_key(r, v, scope, key.shown);
            continue;
        }
        /* The reader reports duplicate keys; two keys of one meaning come from an import. */
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

    read_row(r, row, schema_text_value(&scratch, row, text), path, c);
    arena_fini(&scratch);
}
