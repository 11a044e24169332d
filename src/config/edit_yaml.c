/* Inserting and removing the lines of one server or token in a YAML text, and reading the result
 * again. Called by edit.c. */
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
    struct value *servers; /* the map or list that is edited; NULL when there is no such key */
    struct value *around;  /* the map that `servers` is in; NULL when there is no such key */
};

/* What is edited: a server, or a token. */
enum edited { EDIT_SERVER, EDIT_TOKEN };

static void read_document(struct edited_yaml *d, enum edited what, struct span text)
{
    static const char *const names[] = {"mcpServers", "servers"};
    struct problems problems = {0};

    *d = (struct edited_yaml){.text = text};
    d->root = yaml_read(&d->arena, text, &problems);
    if (problems.errors)
        d->root = NULL;
    d->around = d->root && what == EDIT_TOKEN ? value_get(d->root, "auth") : d->root;
    for (size_t i = 0; d->root && !d->servers && what == EDIT_SERVER && i < COUNT_OF(names); i++)
        d->servers = value_get(d->root, names[i]);
    if (what == EDIT_TOKEN && d->around)
        d->servers = value_get(d->around, "tokens");
    problems_fini(&problems);
}

/* The key of a server; the name of a token. */
static struct span name_of(const struct edited_yaml *d, const struct value *v)
{
    const struct value *name = d->servers->type == VALUE_LIST ? value_get(v, "name") : NULL;

    return name ? name->text : v->key;
}

static struct value *find(const struct edited_yaml *d, struct span name)
{
    for (struct value *v = d->servers ? d->servers->first : NULL; v; v = v->next)
        if (span_eq(name_of(d, v), name))
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

/* The document in one line, without the server or token, and without maps and lists that are empty
 * then. */
static void put_rest(struct buf *out, struct edited_yaml *d, struct span name)
{
    struct value *v = find(d, name);

    if (v)
        value_remove(d->servers, v);
    if (d->servers && !d->servers->n)
        value_remove(d->around, d->servers);
    if (d->around && d->around != d->root && !d->around->n)
        value_remove(d->root, d->around);
    if (d->root->type == VALUE_MAP && d->root->n)
        value_put_json(out, d->root, false);
}

/* Are both documents the same, except for the server or token, which only one of them has? */
static int check(struct edited_yaml *before, enum edited what, struct span after, struct span name,
                 bool adds, struct err *err)
{
    BUF_SCOPED old = {0}, new = {0};
    struct edited_yaml d;

    read_document(&d, what, after.n ? after : SPAN(""));
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
    err_hint(err, "put each %s on lines of its own below '%s:', or edit the file by hand",
             what == EDIT_TOKEN ? "token" : "server", what == EDIT_TOKEN ? "tokens" : "servers");
    return ERR_CONFIG;
}

/* --- editing --- */

/* Puts `lines` below the key of `servers`, whose empty value is replaced. */
static void put_below(struct buf *out, const struct edited_yaml *d, const struct value *servers,
                      struct span lines)
{
    size_t next = line_start(d->text, servers->key_at.line + 1);
    size_t at = line_start(d->text, servers->at.line) + servers->at.column - 1;
    bool braces = servers->type == VALUE_MAP || servers->type == VALUE_LIST;
    struct span none = span_cut(d->text, at, braces ? 2 : servers->text.n);

    buf_span(out, span_cut(d->text, 0, at < next ? at : next));
    if (at < next)
        buf_span(out, span_cut(d->text, at + none.n, next - at - none.n));
    if (out->n && out->p[out->n - 1] != '\n')
        buf_char(out, '\n');
    buf_span(out, lines);
    buf_span(out, span_from(d->text, next));
}

/* Puts in the first server. */
static void put_first(struct buf *out, const struct edited_yaml *d, struct span name,
                      struct span entry)
{
    BUF_SCOPED line = {0};

    put_line(&line, d->servers->key_at.column - 1 + INDENT, name, entry);
    put_below(out, d, d->servers, buf_view(&line));
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
static int finish(struct buf *out, struct edited_yaml *d, enum edited what, struct buf *edited,
                  struct span name, bool adds, struct err *err)
{
    int code = check(d, what, buf_view(edited), name, adds, err);

    if (!code)
        buf_span(out, buf_view(edited));
    return code;
}

static int open_document(struct edited_yaml *d, enum edited what, struct span text, struct err *err)
{
    read_document(d, what, text.n ? text : SPAN(""));
    if (d->root)
        return 0;
    arena_fini(&d->arena);
    err_set(err, ERR_SYNTAX, "the configuration is neither plain JSON nor YAML, and is not edited");
    err_hint(err, "edit the file by hand, or keep the configuration as YAML");
    return ERR_SYNTAX;
}

int edit_yaml_add(struct buf *out, struct span text, struct span name, struct span entry,
                  struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited_yaml d;
    int code = open_document(&d, EDIT_SERVER, text, err);

    if (code)
        return code;
    put_with(&edited, &d, name, entry);
    code = finish(out, &d, EDIT_SERVER, &edited, name, true, err);
    arena_fini(&d.arena);
    return code;
}

int edit_yaml_remove(struct buf *out, struct span text, struct span name, struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited_yaml d;
    int code = open_document(&d, EDIT_SERVER, text, err);

    if (code)
        return code;
    const struct value *v = find(&d, name);
    if (v) {
        size_t begin = line_start(text, v->key_at.line);
        size_t end = end_of(text, v, end_of(text, d.servers, text.n));
        end = before_fillers(text, begin, end, v->key_at.column);
        buf_span(&edited, span_cut(text, 0, begin));
        buf_span(&edited, span_from(text, end));
        code = finish(out, &d, EDIT_SERVER, &edited, name, false, err);
    } else {
        code = err_set(err, -ENOENT, "the configuration file has no server '" SPAN_FMT "'",
                       SPAN_ARG(name));
    }
    arena_fini(&d.arena);
    return code;
}

/* --- tokens --- */

/* Where the dash stands that begins this item of a list, from 0; -1: there is none on its line. */
static int dash_of(const struct edited_yaml *d, const struct value *item)
{
    struct span line = span_from(d->text, line_start(d->text, item->at.line));
    size_t at = 0;

    while (at < line.n && line.p[at] == ' ')
        at++;
    return at < line.n && line.p[at] == '-' ? (int)at : -1;
}

/* The end of the lines of `tokens`, or of `auth`. */
static size_t end_of_tokens(const struct edited_yaml *d, const struct value *v)
{
    size_t end = end_of(d->text, d->around, d->text.n);

    return v == d->around ? end : end_of(d->text, v, end);
}

static void put_item(struct buf *out, size_t indent, struct span entry)
{
    buf_printf(out, "%*s- " SPAN_FMT "\n", (int)indent, "", SPAN_ARG(entry));
}

/* Puts `lines` behind the last line of `v`, before the blank lines and comments that follow. */
static void put_behind(struct buf *out, const struct edited_yaml *d, const struct value *v,
                       size_t column, struct span lines)
{
    size_t begin = line_start(d->text, v->first->at.line + 1);
    size_t at = before_fillers(d->text, begin, end_of_tokens(d, v), column);

    buf_span(out, span_cut(d->text, 0, at));
    if (out->n && out->p[out->n - 1] != '\n')
        buf_char(out, '\n');
    buf_span(out, lines);
    buf_span(out, span_from(d->text, at));
}

static void put_token(struct buf *out, const struct edited_yaml *d, struct span entry)
{
    const struct value *list = d->servers, *auth = d->around;
    int dash = list && list->n ? dash_of(d, list->first) : -1;
    BUF_SCOPED lines = {0};

    if (dash >= 0) {
        put_item(&lines, (size_t)dash, entry);
        put_behind(out, d, list, (size_t)dash, buf_view(&lines));
    } else if (list && !list->n) {
        put_item(&lines, list->key_at.column - 1 + INDENT, entry);
        put_below(out, d, list, buf_view(&lines));
    } else if (auth && !list) {
        size_t column =
            is_block(auth) ? auth->first->key_at.column - 1 : auth->key_at.column - 1 + INDENT;
        buf_printf(&lines, "%*stokens:\n", (int)column, "");
        put_item(&lines, column + INDENT, entry);
        if (is_block(auth))
            put_behind(out, d, auth, column, buf_view(&lines));
        else if (!auth->n)
            put_below(out, d, auth, buf_view(&lines));
    } else if (!auth) {
        buf_span(out, d->text);
        if (out->n && out->p[out->n - 1] != '\n')
            buf_char(out, '\n');
        buf_str(out, "auth:\n  tokens:\n");
        put_item(out, 2 * INDENT, entry);
    }
}

int edit_yaml_add_token(struct buf *out, struct span text, struct span entry, struct err *err)
{
    BUF_SCOPED edited = {0}, name = {0};
    struct edited_yaml d;
    int code = open_document(&d, EDIT_TOKEN, text, err);

    if (code)
        return code;
    json_unescape(&name, json_get(entry, "name").value);
    put_token(&edited, &d, entry);
    code = finish(out, &d, EDIT_TOKEN, &edited, buf_view(&name), true, err);
    arena_fini(&d.arena);
    return code;
}

/* Leaves "tokens: []" when the only token goes. */
static void put_without(struct buf *out, const struct edited_yaml *d, const struct value *v)
{
    const struct value *list = d->servers;
    size_t begin = line_start(d->text, v->at.line);
    size_t end = v->next ? line_start(d->text, v->next->at.line) : end_of_tokens(d, list);
    size_t key = line_start(d->text, list->key_at.line) + list->key_at.column - 1;
    size_t colon = key + span_find(span_from(d->text, key), ':') + 1;
    int dash = dash_of(d, v);

    if (dash < 0 || begin < colon)
        return;
    end = before_fillers(d->text, begin, end, (size_t)dash + 1);
    buf_span(out, span_cut(d->text, 0, colon));
    if (list->n == 1)
        buf_str(out, " []");
    buf_span(out, span_cut(d->text, colon, begin - colon));
    buf_span(out, span_from(d->text, end));
}

int edit_yaml_remove_token(struct buf *out, struct span text, struct span name, struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited_yaml d;
    int code = open_document(&d, EDIT_TOKEN, text, err);

    if (code)
        return code;
    const struct value *v = find(&d, name);
    if (v) {
        put_without(&edited, &d, v);
        code = finish(out, &d, EDIT_TOKEN, &edited, name, false, err);
    } else {
        code = err_set(err, -ENOENT, "the configuration file has no token '" SPAN_FMT "'",
                       SPAN_ARG(name));
    }
    arena_fini(&d.arena);
    return code;
}
