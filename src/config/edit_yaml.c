/* Inserting and removing the lines of one server in a YAML text, and reading the result again.
 * Called by edit.c. */
#include "config/edit_yaml.h"

#include "base/mem.h"
#include "config/reader.h"

#include <errno.h>

enum { INDENT = 2 }; /* of the first server in a file */

/* A text, before or after the edit, with its tree. */
struct edited_yaml {
    struct arena arena;
    struct span text;
    struct value *root;    /* NULL when the text is not valid */
    struct value *servers; /* NULL when there is no such key */
};

static void read_document(struct edited_yaml *d, struct span text)
{
    static const char *const names[] = {"mcpServers", "servers"};
    struct problems problems = {0};

    *d = (struct edited_yaml){.text = text};
    d->root = yaml_read(&d->arena, text, &problems);
    if (problems.errors)
        d->root = NULL;
    for (size_t i = 0; d->root && !d->servers && i < COUNT_OF(names); i++)
        d->servers = value_get(d->root, names[i]);
    problems_fini(&problems);
}

static struct value *find(const struct edited_yaml *d, struct span name)
{
    for (struct value *v = d->servers ? d->servers->first : NULL; v; v = v->next)
        if (span_eq(v->key, name))
            return v;
    return NULL;
}

/* --- lines --- */

/* Where line number `line` begins, counted from 1. */
static size_t line_start(struct span text, unsigned line)
{
    size_t at = 0;

    while (--line && at < text.n)
        at += span_find(span_from(text, at), '\n') + 1;
    return at < text.n ? at : text.n;
}

/* Is the line empty, or a comment that begins before column `column`, counted from 0? */
static bool is_filler(struct span line, size_t column)
{
    size_t indent = 0;

    while (indent < line.n && line.p[indent] == ' ')
        indent++;
    char first = indent < line.n ? line.p[indent] : '\n';
    return first == '\n' || first == '\r' || (first == '#' && indent < column);
}

/* `end` without the filler lines that stand before it, down to `begin` at most. */
static size_t before_fillers(struct span text, size_t begin, size_t end, size_t column)
{
    while (end > begin) {
        size_t at = end - 1;
        while (at > begin && text.p[at - 1] != '\n')
            at--;
        if (!is_filler(span_cut(text, at, end - at), column))
            break;
        end = at;
    }
    return end;
}

/* The end of the lines of `v`: the next key of the map, else `end`. Keys that came by an alias
 * stand elsewhere, but then the result is refused. */
static size_t end_of(struct span text, const struct value *v, size_t end)
{
    return v->next ? line_start(text, v->next->key_at.line) : end;
}

/* Is each server on lines of its own, below the key? */
static bool is_block(const struct value *servers)
{
    const struct value *first = servers->first;

    return first && first->key_at.line == servers->at.line &&
           first->key_at.column == servers->at.column && first->key_at.line > servers->key_at.line;
}

static void put_line(struct buf *out, size_t indent, struct span name, struct span entry)
{
    if (out->n && out->p[out->n - 1] != '\n')
        buf_char(out, '\n');
    buf_printf(out, "%*s", (int)indent, "");
    json_quote(out, name);
    buf_printf(out, ": " SPAN_FMT "\n", SPAN_ARG(entry));
}

/* --- checking --- */

/* The document in one line, without the server, and without a map of servers that is empty. */
static void put_rest(struct buf *out, struct edited_yaml *d, struct span name)
{
    struct value *v = find(d, name);

    if (v)
        value_remove(d->servers, v);
    if (d->servers && !d->servers->n)
        value_remove(d->root, d->servers);
    if (d->root->type == VALUE_MAP && d->root->n)
        value_put_json(out, d->root, false);
}

/* Are both documents the same, except for the server, which only one of them has? */
static int check(struct edited_yaml *before, struct span after, struct span name, bool adds,
                 struct err *err)
{
    BUF_SCOPED old = {0}, new = {0};
    struct edited_yaml d;

    read_document(&d, after.n ? after : SPAN(""));
    bool fine = d.root && (find(&d, name) != NULL) == adds;
    if (fine) {
        put_rest(&old, before, name);
        put_rest(&new, &d, name);
        fine = span_eq(buf_view(&old), buf_view(&new));
    }
    arena_fini(&d.arena);
    if (fine)
        return 0;
    err_set(err, ERR_CONFIG, "the configuration is YAML of a form that is not edited here");
    err_hint(err, "put each server on lines of its own below 'servers:', or edit the file by hand");
    return ERR_CONFIG;
}

/* --- editing --- */

/* Puts in the first server; an empty value of `servers:` is replaced. */
static void put_first(struct buf *out, const struct edited_yaml *d, struct span name,
                      struct span entry)
{
    const struct value *servers = d->servers;
    size_t next = line_start(d->text, servers->key_at.line + 1);
    size_t at = line_start(d->text, servers->at.line) + servers->at.column - 1;
    struct span none = span_cut(d->text, at, servers->type == VALUE_MAP ? 2 : servers->text.n);

    buf_span(out, span_cut(d->text, 0, at < next ? at : next));
    if (at < next)
        buf_span(out, span_cut(d->text, at + none.n, next - at - none.n));
    put_line(out, servers->key_at.column - 1 + INDENT, name, entry);
    buf_span(out, span_from(d->text, next));
}

static void put_last(struct buf *out, const struct edited_yaml *d, struct span name,
                     struct span entry)
{
    size_t column = d->servers->first->key_at.column - 1;
    size_t begin = line_start(d->text, d->servers->first->key_at.line + 1);
    size_t at = before_fillers(d->text, begin, end_of(d->text, d->servers, d->text.n), column);

    buf_span(out, span_cut(d->text, 0, at));
    put_line(out, column, name, entry);
    buf_span(out, span_from(d->text, at));
}

static void put_with(struct buf *out, const struct edited_yaml *d, struct span name,
                     struct span entry)
{
    if (d->servers && is_block(d->servers)) {
        put_last(out, d, name, entry);
    } else if (d->servers && !d->servers->n) {
        put_first(out, d, name, entry);
    } else if (!d->servers) {
        buf_span(out, d->text);
        if (out->n && out->p[out->n - 1] != '\n')
            buf_char(out, '\n');
        buf_str(out, "servers:\n");
        put_line(out, INDENT, name, entry);
    }
}

/* Appends the edited text to `out` if it passes the check. */
static int finish(struct buf *out, struct edited_yaml *d, struct buf *edited, struct span name,
                  bool adds, struct err *err)
{
    int code = check(d, buf_view(edited), name, adds, err);

    if (!code)
        buf_span(out, buf_view(edited));
    return code;
}

static int open_document(struct edited_yaml *d, struct span text, struct err *err)
{
    read_document(d, text.n ? text : SPAN(""));
    if (d->root)
        return 0;
    arena_fini(&d->arena);
    err_set(err, ERR_SYNTAX, "the configuration is neither plain JSON nor YAML, and is not edited");
    err_hint(err, "add the server to the file by hand, or keep the configuration as YAML");
    return ERR_SYNTAX;
}

int edit_yaml_add(struct buf *out, struct span text, struct span name, struct span entry,
                  struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited_yaml d;
    int code = open_document(&d, text, err);

    if (code)
        return code;
    put_with(&edited, &d, name, entry);
    code = finish(out, &d, &edited, name, true, err);
    arena_fini(&d.arena);
    return code;
}

int edit_yaml_remove(struct buf *out, struct span text, struct span name, struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited_yaml d;
    int code = open_document(&d, text, err);

    if (code)
        return code;
    const struct value *v = find(&d, name);
    if (v) {
        size_t begin = line_start(text, v->key_at.line);
        size_t end = end_of(text, v, end_of(text, d.servers, text.n));
        end = before_fillers(text, begin, end, v->key_at.column);
        buf_span(&edited, span_cut(text, 0, begin));
        buf_span(&edited, span_from(text, end));
        code = finish(out, &d, &edited, name, false, err);
    } else {
        code = err_set(err, -ENOENT, "the configuration file has no server '" SPAN_FMT "'",
                       SPAN_ARG(name));
    }
    arena_fini(&d.arena);
    return code;
}
