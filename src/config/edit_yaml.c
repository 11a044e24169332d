/* The text of a YAML document with the lines of one entry more or less, or with one word changed.
 * Called by edit.c. */
#include "config/edit_inside.h"

enum { INDENT = 2 }; /* of what is put below a key */

/* --- lines --- */

/* Is the line empty, or a comment that begins before column `column`, counted from 0? */
static bool is_filler(struct span line, size_t column)
{
    size_t indent = 0;

    while (indent < line.n && line.p[indent] == ' ')
        indent++;
    char first = indent < line.n ? line.p[indent] : '\n';
    return first == '\n' || first == '\r' || (first == '#' && indent < column);
}

/* `end` moved up over the filler lines before it, at most to `begin`. */
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

/* The line that an entry of a map or list begins on. */
static unsigned line_of(const struct value *v)
{
    return v->key_at.line ? v->key_at.line : v->at.line;
}

/* Where the lines of `v`, an entry of d->chain[depth], end: at the next entry, or at what follows
 * the map or list around it. The lines of an aliased entry are elsewhere in the text, but then
 * edit.c refuses the result. */
static size_t end_of(const struct edited *d, const struct value *v, size_t depth)
{
    while (!v->next && depth)
        v = d->chain[depth--];
    return v->next ? edit_line(d->text, line_of(v->next)) : d->text.n;
}

/* The column, from 0, of the dash that begins this item of a list; SIZE_MAX: none on its line. */
static size_t dash_of(const struct edited *d, const struct value *item)
{
    struct span line = span_from(d->text, edit_line(d->text, item->at.line));
    size_t at = 0;

    while (at < line.n && line.p[at] == ' ')
        at++;
    return at < line.n && line.p[at] == '-' ? at : SIZE_MAX;
}

/* The column of the entries, from 0; SIZE_MAX when they are not on lines of their own. */
static size_t column_of(const struct edited *d, const struct value *all)
{
    const struct value *first = all->first;

    if (!first)
        return SIZE_MAX;
    if (all->type == VALUE_LIST)
        return dash_of(d, first);
    bool block = first->key_at.line == all->at.line && first->key_at.column == all->at.column &&
                 first->key_at.line > all->key_at.line;
    return block ? first->key_at.column - 1 : SIZE_MAX;
}

/* --- putting in --- */

/* The lines of an entry, indented to `column`, below the missing keys of the place. */
static void put_lines(struct buf *out, const struct edited *d, size_t column, struct value *entry)
{
    struct arena scratch = {0};
    struct span newline = edit_newline(d->text);
    size_t dash = SIZE_MAX;
    BUF_SCOPED lines = {0};

    for (size_t i = d->found; i < d->wanted; i++, column += INDENT)
        buf_printf(out, "%*s%s:" SPAN_FMT, (int)column, "", d->place->keys[i], SPAN_ARG(newline));
    struct value *map = value_new(&scratch, VALUE_MAP, (struct place){0});
    struct value copy = *entry;
    value_append(map, &copy);
    if (d->place->list) {
        dash = 0;
        map = entry;
    }
    value_put_yaml(&lines, map);
    for (struct span rest = buf_view(&lines), line; rest.n; rest = span_from(rest, line.n + 1)) {
        line = span_cut(rest, 0, span_find(rest, '\n'));
        buf_printf(out, "%*s%s" SPAN_FMT SPAN_FMT, (int)column, "",
                   dash == SIZE_MAX ? ""
                   : dash++         ? "  "
                                    : "- ",
                   SPAN_ARG(line), SPAN_ARG(newline));
    }
    arena_fini(&scratch);
}

/* Takes out `cut` and puts whole lines at `at`. Behind a last line without a line end, they have
 * none either. */
static void insert_lines(struct buf *out, const struct edited *d, size_t at, struct span cut,
                         struct span lines)
{
    struct span newline = edit_newline(d->text);
    bool open = at == d->text.n && at && d->text.p[at - 1] != '\n';
    BUF_SCOPED with = {0};

    if (open)
        buf_span(&with, newline);
    buf_span(&with, lines);
    if (open)
        with.n -= newline.n;
    size_t cut_at = cut.p ? (size_t)(cut.p - d->text.p) : at;
    struct edited_cut cuts[] = {{cut_at, cut.n, SPAN_EMPTY}, {at, 0, buf_view(&with)}};
    edit_splice(out, d->text, cuts, 2);
}

/* The {} or [] behind the key of an empty map or list; nothing when only the key is there. */
static struct span token_of(const struct edited *d, const struct value *all)
{
    bool brackets = all->type == VALUE_MAP || all->type == VALUE_LIST;

    return span_cut(d->text, edit_offset(d->text, all->at), brackets ? 2 : all->text.n);
}

/* Puts the first entry below the key of an empty map or list. Below a last key without {}, it is
 * indented twice, which tells edit_yaml_take that the key was there before. */
static void put_below(struct buf *out, const struct edited *d, struct value *all,
                      struct value *entry)
{
    size_t next = edit_line(d->text, all->key_at.line + 1);
    struct span token = token_of(d, all);
    size_t column = all->key_at.column - 1 + INDENT;
    BUF_SCOPED lines = {0};

    if (!token.n && !all->next)
        column += INDENT;
    put_lines(&lines, d, column, entry);
    insert_lines(out, d, next, token.n ? token : SPAN_EMPTY, buf_view(&lines));
}

void edit_yaml_put(struct buf *out, const struct edited *d, struct value *entry)
{
    struct value *all = d->chain[d->found];
    size_t column = column_of(d, all);
    BUF_SCOPED lines = {0};

    if (!d->found && (column == 0 || !all->n)) { /* a new top-level key */
        if (all->type == VALUE_MAP && !all->n)
            return; /* {}: no line can follow */
        put_lines(&lines, d, 0, entry);
        insert_lines(out, d, d->text.n, SPAN_EMPTY, buf_view(&lines));
    } else if (column != SIZE_MAX) {
        size_t begin = edit_line(d->text, line_of(all->first) + 1);
        size_t at = before_fillers(d->text, begin, end_of(d, all->last, d->found), column);
        put_lines(&lines, d, column, entry);
        insert_lines(out, d, at, SPAN_EMPTY, buf_view(&lines));
    } else if (!all->n) {
        put_below(out, d, all, entry);
    }
}

/* --- taking out --- */

/* What happens to the key above when the last entry is taken out: {} is written behind it where
 * edit_yaml_put cut it out, or where the place keeps_empty; a key that edit_yaml_put made goes, too
 * (*begin moves up). Returns the text to write at *at. */
static const char *empty_of(const struct edited *d, const struct value *v, size_t *begin,
                            size_t *at)
{
    const struct value *all = edit_all(d);
    struct span text = d->text;
    size_t key = edit_offset(text, all->key_at);
    size_t colon = key + span_find(span_from(text, key), ':');
    size_t column = all->type == VALUE_LIST ? dash_of(d, v) : v->key_at.column - 1;
    colon += colon < text.n;
    char next = colon + 1 < text.n ? text.p[colon + 1] : '\n';
    bool blank = colon < text.n && text.p[colon] == ' ' && strchr(" \r\n", next);
    bool bare = colon == text.n || text.p[colon] == '\n' || text.p[colon] == '\r';
    const char *brackets = d->place->list ? " []" : " {}";

    *at = colon;
    if (blank) {
        *at = colon + 1;
        return brackets + 1;
    }
    if (d->place->keeps_empty)
        return brackets;
    if (bare && d->wanted == 1 && !all->next && column == all->key_at.column - 1 + INDENT)
        *begin = edit_line(text, all->key_at.line);
    *at = *begin;
    return "";
}

void edit_yaml_take(struct buf *out, const struct edited *d, const struct value *v)
{
    const struct value *all = edit_all(d);
    size_t begin = edit_line(d->text, line_of(v)), at = begin;
    size_t column = column_of(d, all);
    const char *empty = "";

    if (column == SIZE_MAX || begin < edit_line(d->text, all->key_at.line + 1))
        return;
    size_t end = before_fillers(d->text, begin, end_of(d, v, d->found), column + 1);
    if (all->n == 1)
        empty = empty_of(d, v, &begin, &at);
    /* The last line of a file may have no end: then the line before it has none afterwards. */
    if (end == d->text.n && begin && d->text.p[end - 1] != '\n') {
        begin--;
        begin -= begin && d->text.p[begin - 1] == '\r';
    }
    at = at < begin ? at : begin;
    struct edited_cut cuts[] = {{at, 0, span_str(empty)}, {begin, end - begin, SPAN_EMPTY}};
    edit_splice(out, d->text, cuts, 2);
}

/* --- changing --- */

/* The key as it is written, with its quotes. */
static struct span key_text(const struct edited *d, const struct value *v)
{
    struct span rest = span_from(d->text, edit_offset(d->text, v->key_at));
    char quote = rest.n ? rest.p[0] : '\0';

    if (quote != '"' && quote != '\'')
        return span_cut(rest, 0, v->key.n);
    for (size_t i = 1; i < rest.n; i++) {
        if (quote == '"' && rest.p[i] == '\\')
            i++;
        else if (rest.p[i] == quote)
            return span_cut(rest, 0, i + 1);
    }
    return SPAN_EMPTY;
}

static void put_instead(struct buf *out, const struct edited *d, struct span old, struct span with)
{
    if (old.n)
        edit_splice(out, d->text, &(struct edited_cut){(size_t)(old.p - d->text.p), old.n, with},
                    1);
}

void edit_yaml_rename(struct buf *out, const struct edited *d, const struct value *v,
                      struct span fresh)
{
    struct value name = {.type = VALUE_STRING, .text = fresh};
    BUF_SCOPED key = {0};

    value_put_yaml(&key, &name);
    put_instead(out, d, key_text(d, v), span_cut(buf_view(&key), 0, key.n - 1));
}

void edit_yaml_set(struct buf *out, const struct edited *d, const struct value *v,
                   struct span value)
{
    struct span old = span_cut(d->text, edit_offset(d->text, v->at), v->text.n);

    if (span_eq(old, v->text))
        put_instead(out, d, old, value);
}
