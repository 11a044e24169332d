/* Forms and queries of URLs, written and read. Called by http.c for queries, by admin/tools.c,
 * and by the files of hub/ that speak OAuth. */
#include "wire/webform.h"

#include "base/ascii.h"

void webform_put_text(struct buf *out, struct span text)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == ' ') {
            buf_char(out, '+');
        } else if (ascii_is_word((char)c, "-._*")) {
            buf_char(out, (char)c);
        } else {
            const char escaped[] = {'%', hex[c >> 4], hex[c & 15]};
            buf_bytes(out, escaped, sizeof escaped);
        }
    }
}

void webform_put(struct buf *out, const char *name, struct span value)
{
    char last = out->n ? out->p[out->n - 1] : '?';

    if (last != '?' && last != '&')
        buf_char(out, '&');
    webform_put_text(out, span_str(name));
    buf_char(out, '=');
    webform_put_text(out, value);
}

/* The next character, decoded, and *at moved behind it. A malformed escape stays as it is, and
 * `*whole` becomes false. */
static char next_char(struct span raw, size_t *at, bool *whole)
{
    char c = raw.p[(*at)++];

    if (c == '+')
        return ' ';
    if (c != '%')
        return c;
    int high = raw.n - *at < 2 ? -1 : ascii_hex(raw.p[*at]);
    int low = high < 0 ? -1 : ascii_hex(raw.p[*at + 1]);
    if (low < 0) {
        *whole = false;
        return c;
    }
    *at += 2;
    return (char)(high << 4 | low);
}

static bool name_is(struct span raw, const char *text)
{
    size_t at = 0;
    bool whole;

    while (at < raw.n && *text)
        if (next_char(raw, &at, &whole) != *text++)
            return false;
    return at == raw.n && !*text;
}

/* Appends the decoded text to `out`. The p of the result is not NULL even for an empty value. */
static struct span decode(struct span raw, struct buf *out, bool *whole)
{
    size_t start = out->n;
    char *to = buf_room(out, raw.n + 1);

    for (size_t at = 0; at < raw.n; out->n++)
        *to++ = next_char(raw, &at, whole);
    return span_of(out->p + start, out->n - start);
}

static bool next_pair(struct span *rest, struct span *name, struct span *value)
{
    if (!rest->n)
        return false;
    struct span pair = span_cut(*rest, 0, span_find(*rest, '&'));
    size_t equals = span_find(pair, '=');
    *rest = span_from(*rest, pair.n + 1);
    *name = span_cut(pair, 0, equals);
    *value = span_from(pair, equals + 1);
    return true;
}

struct span webform_get(struct span text, const char *name, struct buf *scratch)
{
    struct span key, value;
    bool whole;

    while (next_pair(&text, &key, &value))
        if (name_is(key, name))
            return decode(value, scratch, &whole);
    return SPAN_EMPTY;
}

int webform_read(struct span text, const char *const *names, size_t n, struct span *values,
                 struct buf *scratch)
{
    struct span key, raw;
    bool whole = true;

    for (size_t i = 0; i < n; i++)
        values[i] = SPAN_EMPTY;
    buf_room(scratch, text.n + n + 1); /* enough for all values, so that they do not move */
    while (next_pair(&text, &key, &raw)) {
        for (size_t i = 0; i < n; i++) {
            if (!name_is(key, names[i]))
                continue;
            if (values[i].p)
                return ERR_DUPLICATE;
            values[i] = decode(raw, scratch, &whole);
            if (!whole || span_find(values[i], '\0') < values[i].n)
                return ERR_SYNTAX;
        }
    }
    return 0;
}
