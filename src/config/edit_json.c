/* The text of a JSON document with one entry more, less, or changed; comments and trailing commas
 * stay. Called by edit.c. */
#include "config/edit_inside.h"
#include "config/reader.h"

#include "base/mem.h"

enum { INDENT = 2 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
    return is_blank(c) || c == '\r' || c == '\n';
}

/* The object or array that the first `depth` keys of the place lead to. */
static struct span container_of(const struct edited *d, size_t depth)
{
    struct span all = buf_view(&d->plain);

    while (all.n && is_space(all.p[0]))
        all = span_from(all, 1);
    while (all.n && is_space(all.p[all.n - 1]))
        all.n--;
    for (size_t i = 0; i < depth; i++)
        all = json_get(all, d->place->keys[i]).value;
    return all;
}

static size_t at_of(const struct edited *d, const char *p)
{
    return (size_t)(p - d->plain.p);
}

/* Where the blanks before `at` begin. */
static size_t before_blanks(struct span text, size_t at)
{
    while (at && is_blank(text.p[at - 1]))
        at--;
    return at;
}

/* Does what is at `at` begin its line? */
static bool begins_line(struct span text, size_t at)
{
    at = before_blanks(text, at);
    return at && text.p[at - 1] == '\n';
}

/* The blanks that the line of `at` begins with. */
static struct span indent_of(struct span text, size_t at)
{
    size_t end;

    while (at && text.p[at - 1] != '\n')
        at--;
    for (end = at; end < text.n && is_blank(text.p[end]);)
        end++;
    return span_cut(text, at, end - at);
}

/* The end of the line if nothing but blanks and comments is left on it, else `at`. */
static size_t line_end(struct span text, size_t at)
{
    size_t end = at;

    for (size_t next = at; next < text.n && text.p[next] != '\n'; end = next) {
        next = json_doc_comment_end(text, end);
        if (next == end && text.p[end] != '\r' && !is_blank(text.p[end]))
            return at;
        next += next == end;
        if (memchr(text.p + end, '\n', next - end))
            return at; /* a comment of several lines */
    }
    return end > at && text.p[end - 1] == '\r' ? end - 1 : end;
}

/* The comma behind a value that ends at `at`, also a trailing one; SIZE_MAX when there is none. */
static size_t comma_after(const struct edited *d, size_t at)
{
    struct span text = d->text;

    while (at < text.n) {
        size_t next = json_doc_comment_end(text, at);
        if (text.p[at] == ',')
            return at;
        if (next == at && !is_space(text.p[at]))
            break;
        at = next + (next == at);
    }
    return SIZE_MAX;
}

/* --- putting in --- */

/* The entry with its name, inside a new map or list for each missing key of the place. */
static void put_member(struct buf *out, const struct edited *d, struct span name, struct span entry)
{
    for (size_t i = d->found; i < d->wanted; i++) {
        json_quote(out, span_str(d->place->keys[i]));
        buf_printf(out, ": %c", i + 1 == d->wanted && d->place->list ? '[' : '{');
    }
    if (!d->place->list) {
        json_quote(out, name);
        buf_str(out, ": ");
    }
    buf_span(out, entry);
    for (size_t i = d->wanted; i > d->found; i--)
        buf_char(out, i == d->wanted && d->place->list ? ']' : '}');
}

/* Puts the first member into a container. Between bare brackets it gets a line of its own; blanks
 * and comments between the brackets stay as they are, behind the member. */
static void put_first(struct buf *out, const struct edited *d, struct span all, struct span member)
{
    BUF_SCOPED with = {0};
    struct span newline = edit_newline(d->text);
    size_t at = at_of(d, all.p);

    if (all.n > 2) {
        buf_span(&with, member);
    } else {
        struct span indent = indent_of(d->text, at);
        buf_span(&with, newline);
        buf_span(&with, indent);
        buf_printf(&with, "%*s", INDENT, "");
        buf_span(&with, member);
        buf_span(&with, newline);
        buf_span(&with, indent);
    }
    edit_splice(out, d->text, &(struct edited_cut){at + 1, 0, buf_view(&with)}, 1);
}

static void put_last(struct buf *out, const struct edited *d, struct span last, struct span member)
{
    size_t begin = at_of(d, last.p), end = begin + last.n, comma = comma_after(d, end);
    bool trailing = comma != SIZE_MAX, lines = begins_line(d->text, begin);
    size_t at = trailing ? comma + 1 : end;
    BUF_SCOPED with = {0};

    if (lines) {
        at = line_end(d->text, at);
        buf_span(&with, edit_newline(d->text));
        buf_span(&with, indent_of(d->text, begin));
    } else {
        buf_char(&with, ' ');
    }
    buf_span(&with, member);
    if (trailing)
        buf_char(&with, ',');
    struct edited_cut cuts[] = {{end, 0, trailing ? SPAN_EMPTY : SPAN(",")},
                                {at, 0, buf_view(&with)}};
    edit_splice(out, d->text, cuts, COUNT_OF(cuts));
}

void edit_json_put(struct buf *out, const struct edited *d, struct span name, struct span entry)
{
    struct span all = container_of(d, d->found), last = {0};
    BUF_SCOPED member = {0};

    if (json_type_of(all) != JSON_OBJECT && json_type_of(all) != JSON_ARRAY)
        return; /* null: where the entry would go is not clear */
    for (struct json_iter it = json_iter(all); json_next(&it);)
        last = it.member;
    put_member(&member, d, name, entry);
    if (last.p)
        put_last(out, d, last, buf_view(&member));
    else
        put_first(out, d, all, buf_view(&member));
}

/* --- taking out --- */

/* The member that `v` was read from, the one before it, and the container of both. */
struct neighbours {
    struct span all, before, own;
    bool last;
};

static struct neighbours find_member(const struct edited *d, size_t depth, size_t index)
{
    struct neighbours n = {.all = container_of(d, depth)};
    struct json_iter it = json_iter(n.all);

    for (size_t i = 0; i <= index && json_next(&it); i++) {
        n.before = n.own;
        n.own = it.member;
    }
    n.last = !json_next(&it);
    return n;
}

static size_t index_of(const struct value *all, const struct value *v)
{
    size_t index = 0;

    for (const struct value *other = all->first; other != v; other = other->next)
        index++;
    return index;
}

/* Takes out the only member. If it stands on a line of its own with only white space around it, as
 * put_first writes it, nothing but the brackets is left. */
static void take_only(struct buf *out, const struct edited *d, const struct neighbours *n)
{
    size_t open = at_of(d, n->all.p) + 1, close = open + n->all.n - 2;
    size_t begin = at_of(d, n->own.p), end = begin + n->own.n;
    bool bare = begins_line(d->text, begin);

    for (size_t i = open; i < close; i++)
        bare &= (i >= begin && i < end) || is_space(d->text.p[i]);
    if (bare) {
        begin = open;
        end = close;
    }
    edit_splice(out, d->text, &(struct edited_cut){begin, end - begin, SPAN_EMPTY}, 1);
}

/* Takes a member out with its comma, and its lines if it has lines of its own. */
static void take_member(struct buf *out, const struct edited *d, const struct neighbours *n)
{
    size_t begin = at_of(d, n->own.p), end = begin + n->own.n, own = comma_after(d, end);
    struct edited_cut cuts[2] = {{0, 0, SPAN_EMPTY}, {0, 0, SPAN_EMPTY}};

    if (own == SIZE_MAX) { /* the comma before the member goes */
        cuts[0].at = comma_after(d, at_of(d, n->before.p) + n->before.n);
        cuts[0].n = 1;
    } else {
        end = own + 1;
    }
    size_t line = line_end(d->text, end);
    bool to_the_end = line < d->plain.n && (d->text.p[line] == '\n' || d->text.p[line] == '\r');
    if (begins_line(d->text, begin) && (to_the_end || own == SIZE_MAX)) {
        begin = before_blanks(d->text, begin) - 1;
        begin -= begin && d->text.p[begin - 1] == '\r';
        end = to_the_end ? line : end;
    } else if (n->before.p) {
        begin = before_blanks(d->text, begin);
    }
    cuts[1] = (struct edited_cut){begin, end - begin, SPAN_EMPTY};
    edit_splice(out, d->text, cuts, COUNT_OF(cuts));
}

/* Was the container made by edit_json_put, as ": {MEMBER}" with this as its only member? */
static bool was_made(const struct edited *d, const struct neighbours *n)
{
    size_t open = at_of(d, n->all.p);

    return n->own.p == n->all.p + 1 && n->own.n + 2 == n->all.n && open > 2 &&
           d->text.p[open - 1] == ' ' && d->text.p[open - 2] == ':';
}

void edit_json_take(struct buf *out, const struct edited *d, const struct value *v)
{
    size_t depth = d->found;
    struct neighbours n = find_member(d, depth, index_of(d->chain[depth], v));

    while (depth && !d->place->keeps_empty && !n.before.p && n.last && was_made(d, &n)) {
        v = d->chain[depth--];
        n = find_member(d, depth, index_of(d->chain[depth], v));
    }
    if (!n.before.p && n.last && comma_after(d, at_of(d, n.own.p) + n.own.n) == SIZE_MAX)
        take_only(out, d, &n);
    else
        take_member(out, d, &n);
}

/* --- changing --- */

void edit_json_rename(struct buf *out, const struct edited *d, const struct value *v,
                      struct span fresh)
{
    struct json_iter it = json_iter(container_of(d, d->found));
    BUF_SCOPED key = {0};

    for (size_t i = index_of(edit_all(d), v) + 1; i && json_next(&it);)
        i--;
    json_quote(&key, fresh);
    edit_splice(out, d->text, &(struct edited_cut){at_of(d, it.key.p), it.key.n, buf_view(&key)},
                1);
}

void edit_json_set(struct buf *out, const struct edited *d, const struct value *v,
                   struct span value)
{
    struct json_iter it = json_iter(container_of(d, d->found));

    for (size_t i = index_of(edit_all(d), v) + 1; i && json_next(&it);)
        i--;
    edit_splice(out, d->text, &(struct edited_cut){at_of(d, it.value.p), it.value.n, value}, 1);
}
