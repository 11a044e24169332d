/* A configuration turned back into a value tree, with *** for secrets, and the comparison of two by
 * the table of keys. Called by config.c, plan.c, cmd/config.c, hub/graph/memory.c and
 * hub/graph/narrowings.c. */
#include "base/mem.h"
#include "config/reader.h"
#include "config/schema.h"
#include "config/units.h"

#include <stdio.h>

enum { PATH_SIZE = 64 };

static const void *field(const struct schema_row *row, const void *base)
{
    return (const char *)base + row->offset;
}

/* Reads a field of a struct whose type is not known here. */
static const char *get_text(const void *at)
{
    const char *text;
    memcpy(&text, at, sizeof text);
    return text;
}

static uint64_t get_amount(const void *at)
{
    uint64_t amount;
    memcpy(&amount, at, sizeof amount);
    return amount;
}

static unsigned get_word(const void *at)
{
    unsigned word;
    memcpy(&word, at, sizeof word);
    return word;
}

struct dumped_list {
    const char *items;
    size_t n;
};

static struct dumped_list get_list(const void *at)
{
    struct dumped_list list;
    memcpy(&list, at, sizeof list);
    return list;
}

/* --- as a tree --- */

static struct value *dump_map(struct arena *a, const char *parent, const void *base);

/* Where ${NAME} was filled in while reading, a "${" that is left is literal: it becomes "$${". */
static struct span escaped(struct arena *a, const struct schema_row *row, struct span text)
{
    BUF_SCOPED out = {0};

    if (schema_is_late(row) || row->literal || !text.n || !memmem(text.p, text.n, "${", 2))
        return text;
    for (size_t i = 0; i < text.n; i++) {
        if (span_starts(span_from(text, i), SPAN("${")))
            buf_char(&out, '$');
        buf_char(&out, text.p[i]);
    }
    return arena_span(a, buf_view(&out));
}

static struct value *dump_text(struct arena *a, const struct schema_row *row, const char *text)
{
    return value_text(a, VALUE_STRING, row->secret ? SPAN("***") : escaped(a, row, span_str(text)));
}

static struct value *dump_strings(struct arena *a, const struct schema_row *row, const void *at)
{
    struct dumped_list list = get_list(at);
    struct value *v = value_new(a, VALUE_LIST, (struct place){0});

    for (size_t i = 0; i < list.n; i++)
        value_append(v, dump_text(a, row, get_text(list.items + i * sizeof(char *))));
    /* ["*"] is written as the word that stands for it, because "*" itself is no valid port. */
    if (row->zero && row->shorthand && list.n == 1 && strcmp(get_text(list.items), "*") == 0)
        return value_text(a, VALUE_STRING, span_str(row->shorthand));
    return list.n ? v : NULL;
}

static void add_member(struct value *map, struct span key, struct value *member)
{
    member->key = key;
    value_append(map, member);
}

static struct value *dump_pairs(struct arena *a, const struct schema_row *row, const void *at)
{
    const struct config_pairs *pairs = at;
    struct value *v = value_new(a, VALUE_MAP, (struct place){0});

    for (size_t i = 0; i < pairs->n; i++)
        add_member(v, span_str(pairs->items[i].name), dump_text(a, row, pairs->items[i].value));
    return pairs->n ? v : NULL;
}

static struct value *dump_amount(struct arena *a, const struct schema_row *row, uint64_t amount)
{
    BUF_SCOPED text = {0};

    schema_put_amount(&text, row, amount);
    bool number = row->type == SCHEMA_NUMBER || !amount;
    return value_text(a, number ? VALUE_NUMBER : VALUE_STRING, buf_view(&text));
}

/* true and false can be words, too (describe_server). */
static struct value *dump_word(struct arena *a, const char *word)
{
    bool truth = strcmp(word, "true") == 0 || strcmp(word, "false") == 0;

    return value_text(a, truth ? VALUE_BOOL : VALUE_STRING, span_str(word));
}

static struct value *dump_words(struct arena *a, const struct schema_row *row, unsigned bits)
{
    struct value *v = value_new(a, VALUE_LIST, (struct place){0});

    for (unsigned i = 0; row->words[i].word; i++)
        if (bits & (1u << i))
            value_append(v, value_text(a, VALUE_STRING, span_str(row->words[i].word)));
    return v;
}

static struct value *dump_json(struct arena *a, const struct schema_row *row, const char *text)
{
    struct problems none = {0};
    struct value *v = text ? json_doc_read(a, span_str(text), &none) : NULL;

    problems_fini(&none);
    for (struct value *item = v ? v->first : NULL; item; item = item->next)
        if (item->type == VALUE_STRING)
            item->text = escaped(a, row, item->text);
    return v;
}

static struct value *dump_entries(struct arena *a, const struct schema_row *row, const void *at)
{
    struct dumped_list list = get_list(at);
    bool named = row->type == SCHEMA_ENTRIES;
    struct value *v = value_new(a, named ? VALUE_MAP : VALUE_LIST, (struct place){0});
    char path[PATH_SIZE];

    snprintf(path, sizeof path, "%s.*", row->path);
    for (size_t i = 0; i < list.n; i++) {
        const char *entry = list.items + i * row->entry_size;
        struct value *map = dump_map(a, path, entry);
        /* An entry with only its shorthand key is written as the shorthand. */
        struct value *alone = row->shorthand && map->n == 1 ? value_get(map, row->shorthand) : NULL;
        if (named)
            map->key = span_str(get_text(entry));
        value_append(v, alone ? alone : map);
    }
    return list.items ? v : NULL; /* an empty one may mean nobody (auth.tokens) */
}

static struct value *dump_section(struct arena *a, const struct schema_row *row, const void *base)
{
    const char *word = row->words ? row->words[get_word(field(row, base))].word : NULL;

    if (word)
        return value_text(a, VALUE_STRING, span_str(word));
    struct value *map = dump_map(a, row->path, base);
    return map->n || row->words ? map : NULL;
}

/* NULL when the key is not set. */
static struct value *dump_row(struct arena *a, const struct schema_row *row, const void *base)
{
    const void *at = field(row, base);

    switch (row->type) {
    case SCHEMA_STRING:
        return get_text(at) ? dump_text(a, row, get_text(at)) : NULL;
    case SCHEMA_STRINGS:
        return dump_strings(a, row, at);
    case SCHEMA_PAIRS:
        return dump_pairs(a, row, at);
    case SCHEMA_BOOL:
        return value_text(a, VALUE_BOOL, *(const bool *)at ? SPAN("true") : SPAN("false"));
    case SCHEMA_NUMBER:
    case SCHEMA_SIZE:
    case SCHEMA_DURATION:
        return dump_amount(a, row, get_amount(at));
    case SCHEMA_WORD:
        return dump_word(a, row->words[get_word(at)].word);
    case SCHEMA_WORDS:
        return dump_words(a, row, get_word(at));
    case SCHEMA_JSON:
    case SCHEMA_SCALARS:
        return dump_json(a, row, get_text(at));
    case SCHEMA_SECTION:
        return dump_section(a, row, base);
    case SCHEMA_ENTRIES:
    case SCHEMA_LIST:
        return dump_entries(a, row, at);
    }
    return NULL;
}

static struct value *dump_map(struct arena *a, const char *parent, const void *base)
{
    struct value *map = value_new(a, VALUE_MAP, (struct place){0});

    for (size_t i = 0; i < schema_rows_n; i++) {
        const struct schema_row *row = &schema_rows[i];
        const char *name = schema_child(row, parent);
        struct value *v = name ? dump_row(a, row, base) : NULL;
        if (v)
            add_member(map, span_str(name), v);
    }
    return map;
}

struct value *schema_dump(struct arena *a, const struct config *c)
{
    return dump_map(a, "", c);
}

struct value *schema_dump_entry(struct arena *a, const char *parent, const void *entry)
{
    return dump_map(a, parent, entry);
}

/* --- comparison --- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Lists of strings and of pairs are arrays of texts, with `each` texts per item. */
static bool same_texts(const void *a, const void *b, size_t each)
{
    struct dumped_list x = get_list(a), y = get_list(b);

    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n * each; i++)
        if (!same_text(get_text(x.items + i * sizeof(char *)),
                       get_text(y.items + i * sizeof(char *))))
            return false;
    return true;
}

static bool same_entries(const struct schema_row *row, const void *a, const void *b)
{
    struct dumped_list x = get_list(a), y = get_list(b);
    char path[PATH_SIZE];

    if (x.n != y.n)
        return false;
    snprintf(path, sizeof path, "%s.*", row->path);
    for (size_t i = 0; i < x.n; i++) {
        const char *p = x.items + i * row->entry_size, *q = y.items + i * row->entry_size;
        if (row->type == SCHEMA_ENTRIES && !same_text(get_text(p), get_text(q)))
            return false;
        if (!schema_equal(path, p, q))
            return false;
    }
    return true;
}

bool schema_equal_row(const struct schema_row *row, const void *a, const void *b)
{
    const void *x = field(row, a), *y = field(row, b);

    switch (row->type) {
    case SCHEMA_STRING:
    case SCHEMA_JSON:
    case SCHEMA_SCALARS:
        return same_text(get_text(x), get_text(y));
    case SCHEMA_STRINGS:
        return same_texts(x, y, 1);
    case SCHEMA_PAIRS:
        return same_texts(x, y, 2);
    case SCHEMA_BOOL:
        return *(const bool *)x == *(const bool *)y;
    case SCHEMA_NUMBER:
    case SCHEMA_SIZE:
    case SCHEMA_DURATION:
        return get_amount(x) == get_amount(y);
    case SCHEMA_WORD:
    case SCHEMA_WORDS:
        return get_word(x) == get_word(y);
    case SCHEMA_SECTION:
        return (!row->words || get_word(x) == get_word(y)) && schema_equal(row->path, a, b);
    case SCHEMA_ENTRIES:
    case SCHEMA_LIST:
        return same_entries(row, x, y);
    }
    return false;
}

bool schema_equal(const char *parent, const void *a, const void *b)
{
    for (size_t i = 0; i < schema_rows_n; i++)
        if (schema_child(&schema_rows[i], parent) && !schema_equal_row(&schema_rows[i], a, b))
            return false;
    return true;
}
