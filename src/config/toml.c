/* A TOML text as a value tree: keys, tables, strings of all four kinds, arrays, inline tables.
 * Dates and numbers that JSON cannot write are texts. Called by config.c, edit.c, server_edit.c and
 * cmd/host_setup_plan.c. */
#include "base/ascii.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "config/reader.h"

struct toml_doc {
    struct arena *arena;
    struct problems *problems;
    const char *p, *end;
    const char *line_start;
    unsigned line;
    size_t nodes, depth;
    struct map closed; /* pointers to maps that no header and no dotted key may add to */
    bool failed;
};

static struct place place_now(const struct toml_doc *doc)
{
    return (struct place){doc->line, (unsigned)(doc->p - doc->line_start) + 1};
}

static void *fail(struct toml_doc *doc, const char *text)
{
    if (!doc->failed)
        problems_add(doc->problems, PROBLEM_ERROR, place_now(doc), "", "not valid TOML: %s", text);
    doc->failed = true;
    return NULL;
}

static bool more(const struct toml_doc *doc)
{
    return doc->p < doc->end;
}

static bool starts(const struct toml_doc *doc, const char *text)
{
    return span_starts(span_of(doc->p, (size_t)(doc->end - doc->p)), span_str(text));
}

static void step(struct toml_doc *doc)
{
    if (*doc->p == '\n') {
        doc->line++;
        doc->line_start = doc->p + 1;
    }
    doc->p++;
}

static void skip_blanks(struct toml_doc *doc)
{
    while (more(doc) && (*doc->p == ' ' || *doc->p == '\t'))
        doc->p++;
}

static void skip_comment(struct toml_doc *doc)
{
    if (more(doc) && *doc->p == '#')
        while (more(doc) && *doc->p != '\n')
            doc->p++;
}

/* Blanks, comments and line ends. */
static void skip_lines(struct toml_doc *doc)
{
    for (;;) {
        skip_blanks(doc);
        skip_comment(doc);
        if (!more(doc) || (*doc->p != '\n' && !starts(doc, "\r\n")))
            return;
        step(doc);
    }
}

static struct value *new_value(struct toml_doc *doc, enum value_type type)
{
    if (++doc->nodes > VALUE_MAX_NODES)
        return fail(doc, "too many values");
    return value_new(doc->arena, type, place_now(doc));
}

/* --- strings --- */

static bool put_escape(struct toml_doc *doc, struct buf *out)
{
    static const char from[] = "btnfr\"\\e", to[] = "\b\t\n\f\r\"\\\033";
    char c = more(doc) ? *doc->p++ : '\0';
    const char *simple = c ? strchr(from, c) : NULL;
    size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : c == 'x' ? 2 : 0;
    uint32_t code = 0;

    if (simple) {
        buf_char(out, to[simple - from]);
        return true;
    }
    for (size_t i = 0; i < digits; i++) {
        int digit = more(doc) ? ascii_hex(*doc->p++) : -1;
        if (digit < 0)
            digits = 0;
        code = code << 4 | (uint32_t)(digit & 15);
    }
    if (!digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return fail(doc, "this escape is not known") != NULL;
    char bytes[4];
    buf_bytes(out, bytes, utf8_put(bytes, code));
    return true;
}

/* Behind a backslash at the end of a line: the line ends and blanks up to the next text. */
static bool skip_folded(struct toml_doc *doc)
{
    const char *at = doc->p;

    while (at < doc->end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    if (at == doc->end || *at != '\n')
        return false;
    while (more(doc) && strchr(" \t\r\n", *doc->p))
        step(doc);
    return true;
}

/* The text behind the opening quotes, up to the closing ones. */
static bool read_quoted(struct toml_doc *doc, struct buf *out, const char *quotes)
{
    bool raw = quotes[0] == '\'', lines = quotes[1] != '\0';

    while (more(doc)) {
        if (starts(doc, quotes)) {
            doc->p += strlen(quotes);
            /* Up to two more quotes before the closing ones are text. */
            for (int i = 0; lines && i < 2 && more(doc) && *doc->p == quotes[0]; i++) {
                buf_char(out, quotes[0]);
                doc->p++;
            }
            return true;
        }
        unsigned char c = (unsigned char)*doc->p;
        if (c == '\n' && !lines)
            break;
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            return fail(doc, "this character must be escaped") != NULL;
        step(doc);
        if (c != '\\' || raw)
            buf_char(out, (char)c);
        else if (!(lines && skip_folded(doc)) && !put_escape(doc, out))
            return false;
    }
    return fail(doc, "the quotes are not closed") != NULL;
}

/* False when there is no string here, or a wrong one. */
static bool read_string(struct toml_doc *doc, struct buf *out, bool lines)
{
    static const char *const kinds[] = {"\"\"\"", "'''", "\"", "'"};

    for (size_t i = lines ? 0 : 2; i < COUNT_OF(kinds); i++) {
        if (!starts(doc, kinds[i]))
            continue;
        doc->p += strlen(kinds[i]);
        if (i < 2 && starts(doc, "\r\n"))
            doc->p++;
        if (i < 2 && more(doc) && *doc->p == '\n')
            step(doc); /* a line end right behind the quotes is not text */
        return read_quoted(doc, out, kinds[i]);
    }
    return false;
}

/* --- keys --- */

static bool read_key(struct toml_doc *doc, struct span *key)
{
    BUF_SCOPED text = {0};
    const char *from = doc->p;

    if (more(doc) && (*from == '"' || *from == '\'')) {
        if (!read_string(doc, &text, false))
            return false;
    } else {
        while (more(doc) && ascii_is_word(*doc->p, "_-"))
            doc->p++;
        if (doc->p == from)
            return fail(doc, "a key is expected here") != NULL;
        buf_bytes(&text, from, (size_t)(doc->p - from));
    }
    *key = arena_span(doc->arena, buf_view(&text));
    return true;
}

static struct value *get(const struct value *map, struct span key)
{
    for (struct value *v = map->first; v; v = v->next)
        if (span_eq(v->key, key))
            return v;
    return NULL;
}

static bool is_closed(const struct toml_doc *doc, const struct value *v)
{
    return map_get(&doc->closed, span_of((const char *)&v, sizeof v)) != NULL;
}

static void close_map(struct toml_doc *doc, struct value *v)
{
    map_put(&doc->closed, span_of((const char *)&v, sizeof v), v);
}

static void add(struct value *map, struct span key, struct place at, struct value *v)
{
    v->key = key;
    v->key_at = at;
    value_append(map, v);
}

/* The map that `key` leads to from `map`: one that is there, the last of a list of tables, or a new
 * one. */
static struct value *enter(struct toml_doc *doc, struct value *map, struct span key)
{
    struct value *v = get(map, key);

    if (!v) {
        if (!(v = new_value(doc, VALUE_MAP)))
            return NULL;
        add(map, key, place_now(doc), v);
    }
    if (v->type == VALUE_LIST && v->truth)
        v = v->last;
    if (v->type != VALUE_MAP || is_closed(doc, v))
        return fail(doc, "this key has a value already");
    return v;
}

/* a.b.c: enters a and b, and gives c as *key. */
static struct value *read_path(struct toml_doc *doc, struct value *map, struct span *key)
{
    for (size_t depth = 0; map; depth++) {
        if (depth == VALUE_MAX_DEPTH - 2)
            return fail(doc, "nested too deeply");
        skip_blanks(doc);
        if (!read_key(doc, key))
            return NULL;
        skip_blanks(doc);
        if (!more(doc) || *doc->p != '.')
            return map;
        doc->p++;
        map = enter(doc, map, *key);
    }
    return NULL;
}

/* --- values --- */

static struct value *read_value(struct toml_doc *doc);

static bool read_pair(struct toml_doc *doc, struct value *map)
{
    struct place at = place_now(doc);
    struct span key;

    map = read_path(doc, map, &key);
    if (!map)
        return false;
    if (!more(doc) || *doc->p != '=')
        return fail(doc, "'=' is expected here") != NULL;
    doc->p++;
    skip_blanks(doc);
    if (get(map, key))
        return fail(doc, "this key occurs twice") != NULL;
    struct value *v = read_value(doc);
    if (!v)
        return false;
    add(map, key, at, v);
    return true;
}

static struct value *read_array(struct toml_doc *doc)
{
    struct value *list = new_value(doc, VALUE_LIST);

    for (doc->p++; list;) {
        skip_lines(doc);
        if (more(doc) && *doc->p == ']')
            break;
        struct value *v = read_value(doc);
        if (!v)
            return NULL;
        value_append(list, v);
        skip_lines(doc);
        if (more(doc) && *doc->p == ',')
            doc->p++;
        else if (!more(doc) || *doc->p != ']')
            return fail(doc, "',' or ']' is expected here");
    }
    doc->p++;
    return list;
}

static struct value *read_inline(struct toml_doc *doc)
{
    struct value *map = new_value(doc, VALUE_MAP);

    doc->p++;
    skip_lines(doc);
    if (map && more(doc) && *doc->p == '}') {
        doc->p++;
    } else {
        do {
            skip_lines(doc);
            if (!map || !read_pair(doc, map))
                return NULL;
            skip_lines(doc);
            if (!more(doc) || (*doc->p != ',' && *doc->p != '}'))
                return fail(doc, "',' or '}' is expected here");
        } while (*doc->p++ == ',');
    }
    close_map(doc, map);
    return map;
}

/* true, 1_000, 0xff, 1979-05-27 07:32:00 */
static struct value *read_word(struct toml_doc *doc)
{
    const char *from = doc->p;
    BUF_SCOPED digits = {0};

    while (more(doc) && ascii_is_word(*doc->p, "_-+.:"))
        doc->p++;
    if (doc->p - from == 10 && from[4] == '-' && starts(doc, " ") && doc->end - doc->p > 3 &&
        ascii_is_digit(doc->p[1]))
        for (doc->p++; more(doc) && ascii_is_word(*doc->p, "_-+.:");)
            doc->p++;
    struct span text = span_of(from, (size_t)(doc->p - from));
    if (!text.n)
        return fail(doc, "a value is expected here");
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '_' && (i || text.p[i] != '+'))
            buf_char(&digits, text.p[i]);
    bool truth = span_is(text, "true"), number = value_is_number(buf_view(&digits));
    bool word = truth || span_is(text, "false");
    if (!word && !number && !ascii_is_digit(text.p[0]) && !strchr("+-", text.p[0]) &&
        !span_is(text, "inf") && !span_is(text, "nan"))
        return fail(doc, "this is not a value; texts need quotes");
    struct value *v = new_value(doc, word ? VALUE_BOOL : number ? VALUE_NUMBER : VALUE_STRING);
    if (v) {
        v->truth = truth;
        v->text = arena_span(doc->arena, number ? buf_view(&digits) : text);
    }
    return v;
}

/* Recursion is bounded by `depth`. */
static struct value *read_value(struct toml_doc *doc)
{
    BUF_SCOPED text = {0};
    struct value *v = NULL;
    char c = more(doc) ? *doc->p : '\0';

    if (doc->depth == VALUE_MAX_DEPTH - 2)
        return fail(doc, "nested too deeply");
    doc->depth++;
    if (c == '"' || c == '\'') {
        v = new_value(doc, VALUE_STRING);
        if (v && read_string(doc, &text, true))
            v->text = arena_span(doc->arena, buf_view(&text));
    } else {
        v = c == '[' ? read_array(doc) : c == '{' ? read_inline(doc) : read_word(doc);
    }
    doc->depth--;
    return doc->failed ? NULL : v;
}

/* --- the document --- */

/* [a.b] or [[a.b]]: gives the table that the pairs below it go to. */
static struct value *read_header(struct toml_doc *doc, struct value *root)
{
    struct place at = place_now(doc);
    bool many = starts(doc, "[[");
    struct span key;

    doc->p += many ? 2 : 1;
    struct value *map = read_path(doc, root, &key);
    if (!map || !starts(doc, many ? "]]" : "]"))
        return fail(doc, "']' is expected here");
    doc->p += many ? 2 : 1;
    struct value *v = get(map, key), *list = v;
    if (many) {
        if (list && (list->type != VALUE_LIST || !list->truth))
            return fail(doc, "this key has a value already");
        if (!list && (list = new_value(doc, VALUE_LIST))) {
            list->truth = true;
            add(map, key, at, list);
        }
        v = list ? new_value(doc, VALUE_MAP) : NULL;
        if (v)
            value_append(list, v);
    } else if (v && (v->type != VALUE_MAP || v->truth || is_closed(doc, v))) {
        return fail(doc, "this table occurs twice");
    } else if (!v && (v = new_value(doc, VALUE_MAP))) {
        add(map, key, at, v);
    }
    if (v) {
        v->truth = true;
        v->at = at;
    }
    return v;
}

static bool read_line(struct toml_doc *doc, struct value *root, struct value **table)
{
    if (*doc->p == '[')
        *table = read_header(doc, root);
    else if (!read_pair(doc, *table))
        return false;
    skip_blanks(doc);
    skip_comment(doc);
    if (!doc->failed && more(doc) && *doc->p != '\n' && !starts(doc, "\r\n"))
        fail(doc, "the line should end here");
    return !doc->failed;
}

struct value *toml_read(struct arena *a, struct span text, struct problems *problems)
{
    struct toml_doc doc = {.arena = a,
                           .problems = problems,
                           .p = text.p,
                           .end = text.p + text.n,
                           .line_start = text.p,
                           .line = 1};

    if (starts(&doc, "\xef\xbb\xbf"))
        doc.p += 3;
    if (!utf8_valid(text)) {
        problems_add(problems, PROBLEM_ERROR, (struct place){1, 1}, "",
                     "not valid TOML: not UTF-8");
        return NULL;
    }
    struct value *root = value_new(a, VALUE_MAP, (struct place){1, 1}), *table = root;
    for (skip_lines(&doc); more(&doc) && !doc.failed; skip_lines(&doc))
        if (!read_line(&doc, root, &table))
            break;
    map_fini(&doc.closed);
    return doc.failed ? NULL : root;
}
