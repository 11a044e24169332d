/* The table of keys explained: as text, as JSON, and for the man page. Called by cmd/config.c and
 * cmd/man.c, and by schema.c for the name of a type. */
#include "base/mem.h"
#include "config/nearest.h"
#include "config/schema.h"
#include "config/units.h"
#include "wire/json_out.h"

enum { WIDTH = 79, STEP = 4 };

static void put_words(struct buf *out, const struct schema_word *words, const char *last)
{
    for (size_t i = 0; words[i].word; i++) {
        if (i)
            buf_str(out, words[i + 1].word ? ", " : last);
        buf_str(out, words[i].word);
    }
}

void schema_put_type(struct buf *out, const struct schema_row *row)
{
    static const char *const names[] = {
        [SCHEMA_STRING] = "text",
        [SCHEMA_STRINGS] = "a list of texts",
        [SCHEMA_PAIRS] = "a map of names to texts",
        [SCHEMA_BOOL] = "true or false",
        [SCHEMA_NUMBER] = "a whole number",
        [SCHEMA_SIZE] = "a size such as 16MiB",
        [SCHEMA_DURATION] = "a duration such as 30s",
        [SCHEMA_WORD] = "",
        [SCHEMA_WORDS] = "a list of ",
        [SCHEMA_JSON] = "a map",
        [SCHEMA_SCALARS] = "a list of texts and numbers",
        [SCHEMA_SECTION] = "a map of keys",
        [SCHEMA_ENTRIES] = "a map of names to maps of keys",
        [SCHEMA_LIST] = "a list of maps of keys",
    };

    if (row->shorthand && row->type == SCHEMA_SECTION)
        buf_printf(out, "%s, or its '%s' alone", names[row->type], row->shorthand);
    else if (row->shorthand && row->type == SCHEMA_STRINGS)
        buf_printf(out, "%s%s%s or %s", names[row->type], row->zero ? ", " : "",
                   row->zero ? row->zero : "", row->shorthand);
    else
        buf_str(out, row->shorthand ? "text or a list" : names[row->type]);
    if (row->words && row->type == SCHEMA_SECTION)
        buf_str(out, ", or ");
    if (row->words)
        put_words(out, row->words, " or ");
}

static bool is_amount(const struct schema_row *row)
{
    return row->type == SCHEMA_NUMBER || row->type == SCHEMA_SIZE || row->type == SCHEMA_DURATION;
}

/* Default, bounds and the rest, as sentences; nothing when there is nothing to say. */
static void put_facts(struct buf *out, const struct schema_row *row)
{
    if (row->preset)
        buf_printf(out, "Default: %s. ", row->preset);
    if (is_amount(row) && row->max) {
        buf_str(out, "From ");
        schema_put_amount(out, row, row->min);
        buf_str(out, " to ");
        schema_put_amount(out, row, row->max);
        buf_str(out, ". ");
    }
    if (row->zero && is_amount(row))
        buf_printf(out, "0 means %s. ", row->zero);
    if (row->env)
        buf_printf(out, "The environment variable %s wins over the file. ", row->env);
    if (out->n && out->p[out->n - 1] == ' ')
        out->n--;
}

/* Appends the text, wrapped between `indent` and the right margin. */
static void put_wrapped(struct buf *out, struct span text, size_t indent)
{
    size_t column = 0;

    while (text.n) {
        size_t n = span_find(text, ' ');
        if (column && column + 1 + n > WIDTH) {
            buf_char(out, '\n');
            column = 0;
        }
        buf_printf(out, "%*s", column ? 1 : (int)indent, "");
        buf_span(out, span_cut(text, 0, n));
        column += n + (column ? 1 : indent);
        text = span_from(text, n + 1);
    }
    buf_char(out, '\n');
}

static void explain_row(struct buf *out, const struct schema_row *row)
{
    BUF_SCOPED line = {0};

    buf_printf(&line, "%s: ", row->path);
    schema_put_type(&line, row);
    put_wrapped(out, buf_view(&line), 0);
    put_wrapped(out, span_str(row->help), STEP);
    for (size_t i = 0; row->words && row->words[i].word; i++) {
        line.n = 0;
        buf_printf(&line, "%s: %s", row->words[i].word, row->words[i].help);
        put_wrapped(out, buf_view(&line), (size_t)2 * STEP);
    }
    line.n = 0;
    put_facts(&line, row);
    if (line.n)
        put_wrapped(out, buf_view(&line), STEP);
}

static void explain_row_json(struct buf *out, const struct schema_row *row)
{
    BUF_SCOPED type = {0};

    schema_put_type(&type, row);
    buf_char(out, '{');
    json_out_str(out, "key", row->path);
    json_out_text(out, "type", buf_view(&type));
    json_out_str(out, "help", row->help);
    if (row->preset)
        json_out_str(out, "default", row->preset);
    if (row->env)
        json_out_str(out, "env", row->env);
    if (row->words) {
        json_out_open(out, "values", '[');
        for (size_t i = 0; row->words[i].word; i++)
            json_out_str(out, NULL, row->words[i].word);
        buf_char(out, ']');
    }
    buf_char(out, '}');
}

/* Is `key` this path, or the beginning of it? A star in the path matches any name. */
static bool names_path(struct span key, const char *path_text)
{
    struct span path = span_str(path_text);

    while (key.n && path.n) {
        size_t k = span_find(key, '.'), p = span_find(path, '.');
        struct span part = span_cut(path, 0, p);
        if (!span_is(part, "*") && !span_eq(span_cut(key, 0, k), part))
            return false;
        key = span_from(key, k + 1);
        path = span_from(path, p + 1);
    }
    return !key.n;
}

static const char *last_name(const struct schema_row *row)
{
    const char *dot = strrchr(row->path, '.');
    return dot ? dot + 1 : row->path;
}

static bool matches(const struct schema_row *row, const char *key, bool by_path)
{
    if (!key)
        return true;
    return by_path ? names_path(span_str(key), row->path) : strcmp(last_name(row), key) == 0;
}

static size_t put_matching(struct buf *out, const char *key, bool by_path, bool json)
{
    size_t n = 0;

    for (size_t i = 0; i < schema_rows_n; i++) {
        if (!matches(&schema_rows[i], key, by_path))
            continue;
        if (json)
            buf_str(out, n ? ",\n " : "[");
        else if (n)
            buf_char(out, '\n');
        if (json)
            explain_row_json(out, &schema_rows[i]);
        else
            explain_row(out, &schema_rows[i]);
        n++;
    }
    if (json && n)
        buf_str(out, "]\n");
    return n;
}

bool schema_explain(struct buf *out, const char *key, bool json, struct span *near)
{
    if (put_matching(out, key, true, json) || put_matching(out, key, false, json))
        return true;
    struct nearest found = nearest_to(span_str(key));
    for (size_t i = 0; i < schema_rows_n; i++) {
        nearest_offer(&found, span_str(schema_rows[i].path));
        nearest_offer(&found, span_str(last_name(&schema_rows[i])));
    }
    *near = found.best;
    return false;
}

/* --- man page --- */

void schema_put_roff(struct buf *out, struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\\')
            buf_str(out, "\\e");
        else if (c == '-')
            buf_str(out, "\\-");
        else if (c == '\'')
            buf_str(out, "\\(aq");
        else if (c == '.' && (i == 0 || text.p[i - 1] == '\n'))
            buf_str(out, "\\&.");
        else
            buf_char(out, c);
    }
}

static void put_man_row(struct buf *out, const struct schema_row *row)
{
    BUF_SCOPED text = {0};

    schema_put_type(&text, row);
    buf_str(out, ".TP\n\\fB");
    schema_put_roff(out, span_str(row->path));
    buf_str(out, "\\fR (");
    schema_put_roff(out, buf_view(&text));
    buf_str(out, ")\n");
    text.n = 0;
    buf_printf(&text, "%s\n", row->help);
    put_facts(&text, row);
    if (text.p[text.n - 1] != '\n')
        buf_char(&text, '\n');
    schema_put_roff(out, buf_view(&text));
    for (size_t i = 0; row->words && row->words[i].word; i++) {
        text.n = 0;
        buf_printf(&text, "%s: %s", row->words[i].word, row->words[i].help);
        buf_str(out, ".br\n");
        schema_put_roff(out, buf_view(&text));
        buf_char(out, '\n');
    }
}

void schema_put_man(struct buf *out)
{
    buf_str(out, ".SH CONFIGURATION\n");
    for (size_t i = 0; i < schema_rows_n; i++)
        put_man_row(out, &schema_rows[i]);
}
