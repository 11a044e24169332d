/* The text of a TOML document with one table more or less. Called by edit.c. */
#include "config/edit_inside.h"

#include "base/ascii.h"

/* --- putting in --- */

static void put_key(struct buf *out, struct span key)
{
    if (key.n && ascii_is_words(key, "_-"))
        buf_span(out, key);
    else
        json_quote(out, key);
}

static void put_value(struct buf *out, const struct value *v)
{
    bool map = v->type == VALUE_MAP;

    if (!map && v->type != VALUE_LIST) {
        value_put_json(out, v, false); /* null, which TOML does not have, is refused by edit.c */
        return;
    }
    buf_str(out, map ? "{ " : "[");
    for (const struct value *child = v->first; child; child = child->next) {
        if (map) {
            put_key(out, child->key);
            buf_str(out, " = ");
        }
        put_value(out, child);
        if (child->next)
            buf_str(out, ", ");
    }
    buf_str(out, map ? " }" : "]");
}

/* Puts the entry as a table at the end, behind a blank line. If the file does not end with a line
 * end, it does not afterwards either. */
void edit_toml_put(struct buf *out, const struct edited *d, struct span name,
                   const struct value *entry)
{
    struct span newline = edit_newline(d->text);
    bool open = d->text.n && d->text.p[d->text.n - 1] != '\n';

    buf_span(out, d->text);
    for (int i = (d->text.n > 0) + open; i > 0; i--)
        buf_span(out, newline);
    buf_char(out, '[');
    for (size_t i = 0; i < d->wanted; i++)
        buf_printf(out, "%s.", d->place->keys[i]);
    put_key(out, name);
    buf_char(out, ']');
    for (const struct value *v = entry->first; v; v = v->next) {
        buf_span(out, newline);
        put_key(out, v->key);
        buf_str(out, " = ");
        put_value(out, v);
    }
    if (!open)
        buf_span(out, newline);
}

/* --- taking out --- */

/* The search for the next header. */
struct headers {
    const struct value *taken;
    unsigned after; /* the next header is looked for behind this line */
    unsigned first; /* the first line behind `after` with a header; 0 when there is none */
    bool inside;    /* this header belongs to the table that is taken out */
};

static void look(struct headers *h, const struct value *v, bool inside)
{
    inside |= v == h->taken;
    if (v->type == VALUE_MAP && v->truth && v->at.line > h->after &&
        (!h->first || v->at.line < h->first)) {
        h->first = v->at.line;
        h->inside = inside;
    }
    for (const struct value *child = v->first; child; child = child->next)
        look(h, child, inside);
}

/* `end` moved up over the comments right above the next header: they belong to that header. */
static size_t before_comments(struct span text, size_t begin, size_t end)
{
    size_t kept = end;

    while (end > begin) {
        size_t at = end - 1;
        while (at > begin && text.p[at - 1] != '\n')
            at--;
        if (text.p[at] != '#')
            break;
        kept = end = at;
    }
    return kept;
}

/* Does the text end with `times` (1 or 2) line ends? */
static bool ends_with(const struct buf *out, struct span newline, size_t times)
{
    struct span end = span_from(buf_view(out), out->n - times * newline.n);

    return out->n >= times * newline.n && span_starts(end, newline) &&
           span_starts(span_from(end, end.n - newline.n), newline);
}

/* Cuts out each table of the entry, up to the next header that is not the entry's. */
void edit_toml_take(struct buf *out, const struct edited *d, const struct value *v)
{
    struct headers h = {.taken = v};
    size_t at = 0;

    for (look(&h, d->chain[0], false); h.first; look(&h, d->chain[0], false)) {
        size_t begin = edit_line(d->text, h.first);
        bool cut = h.inside;
        h.after = h.first;
        h.first = 0;
        if (!cut)
            continue;
        buf_span(out, span_cut(d->text, at, begin - at));
        struct headers next = h;
        look(&next, d->chain[0], false);
        at = next.first ? edit_line(d->text, next.first) : d->text.n;
        if (next.first && !next.inside)
            at = before_comments(d->text, begin, at);
    }
    buf_span(out, span_from(d->text, at));
    if (at != d->text.n)
        return;
    /* The table was the last one: the blank line and the line end that edit_toml_put wrote before
     * it are taken out, too. */
    struct span newline = edit_newline(d->text);
    if (ends_with(out, newline, 2))
        out->n -= newline.n;
    if (d->text.p[d->text.n - 1] != '\n' && ends_with(out, newline, 1))
        out->n -= newline.n;
}
