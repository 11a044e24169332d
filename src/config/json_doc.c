/* A JSON text as a value tree with lines and columns, advice on syntax errors, and the removal of
 * comments and trailing commas. Called by config.c, edit*.c and server_edit.c, by schema_dump.c for
 * values that are JSON, and by cmd/. */
#include "config/reader.h"
#include "wire/json.h"

struct json_doc {
    struct arena *arena;
    struct problems *problems;
    struct buf scratch;
    const char *seen; /* `now` is the place of this byte */
    struct place now;
    size_t nodes;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Offsets come in rising order, so counting lines is one walk over the text. */
static struct place place_of(struct json_doc *doc, const char *p)
{
    for (; doc->seen < p; doc->seen++) {
        if (*doc->seen == '\n') {
            doc->now.line++;
            doc->now.column = 1;
        } else if (((unsigned char)*doc->seen & 0xc0) != 0x80) {
            doc->now.column++;
        }
    }
    return doc->now;
}

static struct span keep_text(struct json_doc *doc, struct span raw)
{
    doc->scratch.n = 0;
    json_unescape(&doc->scratch, raw);
    return arena_span(doc->arena, buf_view(&doc->scratch));
}

static struct value *build_scalar(struct json_doc *doc, struct span raw, enum json_type type)
{
    static const enum value_type types[] = {
        [JSON_NONE] = VALUE_NULL,  [JSON_NULL] = VALUE_NULL,     [JSON_FALSE] = VALUE_BOOL,
        [JSON_TRUE] = VALUE_BOOL,  [JSON_NUMBER] = VALUE_NUMBER, [JSON_STRING] = VALUE_STRING,
        [JSON_ARRAY] = VALUE_LIST, [JSON_OBJECT] = VALUE_MAP,
    };
    struct value *v = value_new(doc->arena, types[type], place_of(doc, raw.p));

    v->truth = type == JSON_TRUE;
    if (type == JSON_STRING)
        v->text = keep_text(doc, raw);
    else if (v->type == VALUE_NUMBER || v->type == VALUE_BOOL)
        v->text = arena_span(doc->arena, raw);
    return v;
}

/* Recursion is bounded by the depth that json_skim has checked. */
static struct value *build(struct json_doc *doc, struct span raw, enum json_type type)
{
    if (++doc->nodes > VALUE_MAX_NODES)
        return NULL;

    struct value *v = build_scalar(doc, raw, type);
    struct json_iter it = json_iter(raw);
    while (json_next(&it)) {
        struct place key_at = place_of(doc, it.member.p);
        struct span key = type == JSON_OBJECT ? keep_text(doc, it.key) : SPAN_EMPTY;
        struct value *child = build(doc, it.value, it.type);
        if (!child)
            return NULL;
        child->key = key;
        child->key_at = key_at;
        value_append(v, child);
    }
    if (v->type == VALUE_MAP)
        value_check_keys(v, doc->problems);
    return v;
}

/* Advice on common mistakes, chosen by the byte at which parsing failed. */
static const char *syntax_advice(struct span text, size_t at)
{
    size_t before = at;
    while (before && is_space(text.p[before - 1]))
        before--;
    char last = before ? text.p[before - 1] : '\0';

    if (at >= text.n)
        return "the text ends too early; is a bracket or quote not closed?";
    switch (text.p[at]) {
    case '#':
        return "a comment in JSON begins with //";
    case '\'':
        return "JSON wants double quotes";
    case '}':
    case ']':
        if (last == ',')
            return "there is a comma too much before the bracket";
        return "this bracket does not belong here";
    case '"':
        if (last == '"' || last == '}' || last == ']')
            return "is a comma missing before it?";
        break;
    default:
        break;
    }
    return "this is not expected here";
}

static void report_skim(struct json_doc *doc, struct span text, int code, size_t at)
{
    struct place place = place_of(doc, text.p + (at < text.n ? at : text.n));

    if (code == ERR_SYNTAX)
        problems_add(doc->problems, PROBLEM_ERROR, place, "", "not valid JSON: %s",
                     syntax_advice(text, at));
    else
        problems_add(doc->problems, PROBLEM_ERROR, place, "", "not valid JSON: %s", err_name(code));
}

struct value *json_doc_read(struct arena *a, struct span text, struct problems *problems)
{
    struct json_doc doc = {
        .arena = a, .problems = problems, .seen = text.p, .now = {.line = 1, .column = 1}};
    enum json_type type;
    size_t at = 0;
    int rc = json_skim(text, NULL, NULL, &type, &at);

    if (rc) {
        report_skim(&doc, text, rc, at);
        return NULL;
    }
    while (is_space(text.p[0]))
        text = span_from(text, 1);
    while (is_space(text.p[text.n - 1]))
        text.n--;
    struct value *root = build(&doc, text, type);
    if (!root)
        problems_add(problems, PROBLEM_ERROR, doc.now, "",
                     "too large: more than %d values in one file", VALUE_MAX_NODES);
    buf_fini(&doc.scratch);
    return root;
}

/* --- comments --- */

size_t json_doc_comment_end(struct span text, size_t at)
{
    struct span rest = span_from(text, at);

    if (span_starts(rest, SPAN("//")))
        return at + span_find(rest, '\n');
    if (!span_starts(rest, SPAN("/*")))
        return at;
    for (size_t end = at + 2; end + 1 < text.n; end++)
        if (text.p[end] == '*' && text.p[end + 1] == '/')
            return end + 2;
    return at;
}

static size_t string_end(struct span text, size_t at)
{
    for (at++; at < text.n && text.p[at] != '"'; at++)
        if (text.p[at] == '\\')
            at++;
    return at < text.n ? at + 1 : text.n;
}

bool json_doc_relax(struct buf *out, struct span text)
{
    size_t start = out->n, comma = SIZE_MAX; /* the last comma, while only blanks follow it */

    for (size_t at = 0, end; at < text.n; at = end) {
        char c = text.p[at];
        end = c == '"' ? string_end(text, at) : json_doc_comment_end(text, at);
        if (c != '"' && end > at) {
            for (; at < end; at++)
                buf_char(out, text.p[at] == '\n' ? '\n' : ' ');
            continue;
        }
        if (end == at)
            end = at + 1;
        if ((c == '}' || c == ']') && comma != SIZE_MAX)
            out->p[comma] = ' ';
        if (c == ',')
            comma = out->n;
        else if (!is_space(c))
            comma = SIZE_MAX;
        buf_span(out, span_cut(text, at, end - at));
    }
    return json_skim(span_from(buf_view(out), start), NULL, NULL, NULL, NULL) == 0;
}
