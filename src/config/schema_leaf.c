/* Reading one value by its type: text, list, pairs, boolean, number, size, duration, word, JSON.
 * Called by schema.c. */
#include "config/schema_leaf.h"

#include "base/mem.h"
#include "config/nearest.h"
#include "config/units.h"
#include "wire/json.h"

struct any_list {
    void *items;
    size_t n;
};

static void *field(const struct schema_row *row, void *base)
{
    return (char *)base + row->offset;
}

void schema_leaf_put_list(const struct schema_row *row, void *base, void *items, size_t n)
{
    struct any_list list = {items, n};
    memcpy(field(row, base), &list, sizeof list);
}

static void wrong(struct schema_read *r, const struct value *v, const char *shown, const char *text)
{
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "%s", text);
}

void schema_leaf_wrong_type(struct schema_read *r, const struct schema_row *row,
                            const struct value *v, const char *shown)
{
    BUF_SCOPED type = {0};

    schema_put_type(&type, row);
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected %s, not %s", buf_cstr(&type),
                 value_type_name(v->type));
}

bool schema_leaf_count_fits(struct schema_read *r, const struct schema_row *row,
                            const struct value *v, const char *shown)
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
        why = "a NUL character cannot stand in it";
    else if (check)
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
            schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    if (!text_is_fine(r, row->check, v->text, v->at, shown))
        return;
    const char *text = arena_span(r->arena, v->text).p;
    memcpy(field(row, base), &text, sizeof text);
}

/* In lists and maps of text, 8080 and true mean the text that stands there. */
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

    if (is_word_for_all(row, v)) {
        schema_leaf_put_list(row, base, everything, 1);
        return;
    }
    if (v->type != VALUE_LIST) {
        schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    if (!schema_leaf_count_fits(r, row, v, shown))
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
    schema_leaf_put_list(row, base, items, n);
}

static void read_pairs(struct schema_read *r, const struct schema_row *row, const struct value *v,
                       const char *shown, void *base)
{
    size_t n = 0;

    if (v->type != VALUE_MAP) {
        schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    if (!schema_leaf_count_fits(r, row, v, shown))
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
    schema_leaf_put_list(row, base, items, n);
}

static void read_bool(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    if (v->type == VALUE_BOOL)
        memcpy(field(row, base), &v->truth, sizeof v->truth);
    else
        wrong(r, v, shown, "expected true or false");
}

static void put_amount(struct buf *out, const struct schema_row *row, uint64_t amount)
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
    put_amount(&bound, row, low ? row->min : row->max);
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
        schema_leaf_wrong_type(r, row, v, shown);
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

    for (int i = 0; row->words[i].word; i++) {
        if (v->type == VALUE_STRING && span_is(v->text, row->words[i].word)) {
            const char *missing = r->preview ? NULL : row->words[i].missing;
            if (!missing)
                return i;
            problems_add(r->problems, PROBLEM_ERROR, v->at, shown,
                         "'%s': support for %s is not available in this version",
                         row->words[i].word, missing);
            return -1;
        }
        nearest_offer(&near, span_str(row->words[i].word));
    }
    BUF_SCOPED type = {0};
    schema_put_type(&type, row);
    if (near.best.n)
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown,
                     "expected %s; did you mean '" SPAN_FMT "'?", buf_cstr(&type),
                     SPAN_ARG(near.best));
    else
        problems_add(r->problems, PROBLEM_ERROR, v->at, shown, "expected %s", buf_cstr(&type));
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
        schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    for (const struct value *item = v->first; item; item = item->next) {
        int word = find_word(r, row, item, shown);
        if (word >= 0)
            bits |= 1u << word;
    }
    memcpy(field(row, base), &bits, sizeof bits);
}

static void read_json(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    if (v->type != VALUE_MAP) {
        schema_leaf_wrong_type(r, row, v, shown);
        return;
    }
    BUF_SCOPED json = {0};
    value_put_json(&json, v, false);
    const char *text = arena_span(r->arena, buf_view(&json)).p;
    memcpy(field(row, base), &text, sizeof text);
}

void schema_leaf_read(struct schema_read *r, const struct schema_row *row, const struct value *v,
                      const char *shown, void *base)
{
    static void (*const readers[])(struct schema_read *, const struct schema_row *,
                                   const struct value *, const char *, void *) = {
        [SCHEMA_STRING] = read_string,   [SCHEMA_STRINGS] = read_strings,
        [SCHEMA_PAIRS] = read_pairs,     [SCHEMA_BOOL] = read_bool,
        [SCHEMA_NUMBER] = read_amount,   [SCHEMA_SIZE] = read_amount,
        [SCHEMA_DURATION] = read_amount, [SCHEMA_WORD] = read_word,
        [SCHEMA_WORDS] = read_words,     [SCHEMA_JSON] = read_json,
    };
    readers[row->type](r, row, v, shown, base);
}

static struct value *text_list(struct arena *a, struct span text)
{
    struct value *list = value_new(a, VALUE_LIST, (struct place){0});

    while (text.n) {
        size_t comma = span_find(text, ',');
        value_append(list, value_text(a, VALUE_STRING, span_trim(span_cut(text, 0, comma))));
        text = span_from(text, comma + 1);
    }
    return list;
}

struct value *schema_leaf_text_value(struct arena *a, const struct schema_row *row,
                                     struct span text)
{
    if (row->type == SCHEMA_STRINGS || row->type == SCHEMA_WORDS || row->type == SCHEMA_LIST)
        return text_list(a, text);
    if (row->type == SCHEMA_BOOL && (span_is(text, "true") || span_is(text, "false")))
        return value_text(a, VALUE_BOOL, text);
    if (row->type == SCHEMA_NUMBER && value_is_number(text))
        return value_text(a, VALUE_NUMBER, text);
    return value_text(a, VALUE_STRING, text);
}
