/* Strings and numbers of JSON: compared, unescaped, converted, quoted; and the writers of json.h.
 * Called by most folders; json.c has the reader. */
#include "wire/json.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/json_scan.h"

#include <math.h>
#include <stdlib.h>

enum { REPLACEMENT = 0xfffd };

/* The contents of a raw string in pieces: runs without escapes, and escapes one by one. */
struct pieces {
    const char *p, *end;
    char decoded[4];
};

static struct pieces pieces_of(struct span raw)
{
    if (raw.n < 2 || raw.p[0] != '"')
        return (struct pieces){.p = NULL};
    return (struct pieces){.p = raw.p + 1, .end = raw.p + raw.n - 1};
}

/* The four hex digits at `p`, or REPLACEMENT when there are not four. */
static uint32_t hex_unit(const char *p, const char *end)
{
    uint32_t unit = 0;

    if (end - p < 4)
        return REPLACEMENT;
    for (int i = 0; i < 4; i++) {
        int digit = ascii_hex(p[i]);
        if (digit < 0)
            return REPLACEMENT;
        unit = unit << 4 | (uint32_t)digit;
    }
    return unit;
}

/* Behind "\u": one UTF-16 unit, or a surrogate pair. Lone surrogates are replaced. */
static uint32_t take_unicode(struct pieces *t)
{
    uint32_t unit = hex_unit(t->p, t->end);

    t->p = t->end - t->p < 4 ? t->end : t->p + 4;
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return REPLACEMENT;
    if (unit < 0xd800 || unit > 0xdbff)
        return unit;
    if (t->end - t->p < 6 || t->p[0] != '\\' || t->p[1] != 'u')
        return REPLACEMENT;
    uint32_t low = hex_unit(t->p + 2, t->end);
    if (low < 0xdc00 || low > 0xdfff)
        return REPLACEMENT;
    t->p += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

static bool pieces_next(struct pieces *t, struct span *piece)
{
    static const char controls[] = {
        ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    const char *start = t->p;

    if (start == t->end)
        return false;
    if (*start != '\\' || t->end - start < 2) {
        t->p = scan_quote(start + 1, t->end);
        *piece = span_of(start, (size_t)(t->p - start));
        return true;
    }
    unsigned char c = (unsigned char)start[1];
    size_t n = 1;
    t->p += 2;
    if (c == 'u')
        n = utf8_put(t->decoded, take_unicode(t));
    else
        t->decoded[0] = c < sizeof controls && controls[c] ? controls[c] : (char)c;
    *piece = span_of(t->decoded, n);
    return true;
}

bool json_string_is(struct span raw, struct span s)
{
    struct pieces t = pieces_of(raw);
    struct span piece;

    if (!t.p)
        return false;
    /* Fast paths, nearly always taken: another first byte, or the same bytes without escapes. */
    if (raw.n > 2 && s.n && raw.p[1] != '\\' && raw.p[1] != s.p[0])
        return false;
    if (raw.n == s.n + 2 && s.n && !memcmp(raw.p + 1, s.p, s.n) && !memchr(s.p, '\\', s.n))
        return true;
    while (pieces_next(&t, &piece)) {
        if (!span_starts(s, piece))
            return false;
        s = span_from(s, piece.n);
    }
    return s.n == 0;
}

/* The ASCII letters that a character becomes for readers that fold case, if any. */
static struct span folded(struct span character)
{
    static const struct {
        const char *character, *letters;
    } rows[] = {
        {"\u017f", "s"},   {"\u212a", "k"},  {"\u0131", "i"},  {"\u0130", "i"},  {"\u00df", "ss"},
        {"\u1e9e", "ss"},  {"\ufb00", "ff"}, {"\ufb01", "fi"}, {"\ufb02", "fl"}, {"\ufb03", "ffi"},
        {"\ufb04", "ffl"}, {"\ufb05", "st"}, {"\ufb06", "st"},
    };

    for (size_t i = 0; character.n > 1 && i < COUNT_OF(rows); i++)
        if (span_is(character, rows[i].character))
            return span_str(rows[i].letters);
    return character;
}

/* A text as readers that fold case see it, letter by letter. */
struct folding {
    struct pieces rest;
    struct span piece;   /* what is left of the piece at hand */
    struct span letters; /* what is left of the letters that the last character folds into */
};

enum { FOLDED_BEYOND = 0x80 }; /* any character that is not ASCII and does not fold into ASCII */

/* The next character, letters in lower case; 0 at the end, and for a NUL, which also ends the
 * text. */
static int folding_next(struct folding *f)
{
    while (!f->letters.n) {
        if (!f->piece.n && !pieces_next(&f->rest, &f->piece))
            return 0;
        size_t n = utf8_length(f->piece.p, f->piece.p + f->piece.n);
        f->letters = folded(span_cut(f->piece, 0, n ? n : 1));
        f->piece = span_from(f->piece, n ? n : 1);
    }
    unsigned char c = (unsigned char)f->letters.p[0];
    bool beyond = c >= 0x80;
    f->letters = beyond ? SPAN_EMPTY : span_from(f->letters, 1);
    if (beyond)
        return FOLDED_BEYOND;
    return ascii_to_lower((char)c);
}

bool json_string_resembles(struct span raw, struct span s)
{
    struct folding a = {.rest = pieces_of(raw)}, b = {.piece = s};
    int c;

    do {
        c = folding_next(&a);
        if (c != folding_next(&b))
            return false;
    } while (c);
    return a.rest.p != NULL;
}

void json_unescape(struct buf *out, struct span raw)
{
    struct pieces t = pieces_of(raw);
    struct span piece;

    while (pieces_next(&t, &piece))
        buf_span(out, piece);
}

struct span json_text(struct span raw, struct buf *scratch)
{
    if (raw.n < 2 || raw.p[0] != '"')
        return SPAN_EMPTY;
    struct span inside = span_of(raw.p + 1, raw.n - 2);
    if (span_find(inside, '\\') == inside.n)
        return inside;
    size_t start = scratch->n;
    json_unescape(scratch, raw);
    return span_from(buf_view(scratch), start);
}

bool json_int(struct span raw, int64_t *out)
{
    bool negative = raw.n && raw.p[0] == '-';
    uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, v = 0;
    struct span digits = negative ? span_from(raw, 1) : raw;

    if (!digits.n)
        return false;
    for (size_t i = 0; i < digits.n; i++) {
        if (!ascii_is_digit(digits.p[i]))
            return false;
        uint64_t digit = (uint64_t)(digits.p[i] - '0');
        if (v > (most - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

uint64_t json_count(struct span object, const char *key)
{
    int64_t n = 0;

    return json_int(json_get(object, key).value, &n) && n > 0 ? (uint64_t)n : 0;
}

bool json_double(struct span raw, double *out)
{
    char few[64];
    char *digits = few, *end;

    if (json_type_of(raw) != JSON_NUMBER)
        return false;
    /* strtod needs a NUL behind the number. */
    if (raw.n < sizeof few) {
        memcpy(few, raw.p, raw.n);
        few[raw.n] = '\0';
    } else {
        digits = mem_span(raw);
    }
    double v = strtod(digits, &end);
    bool ok = end == digits + raw.n && isfinite(v);
    if (digits != few)
        mem_free(digits);
    if (ok)
        *out = v;
    return ok;
}

/* A byte that must be escaped in a string. */
static void put_escaped(struct buf *out, unsigned char c)
{
    static const char shorts[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    if (c >= 0x80) {
        out->n += utf8_put(buf_room(out, 4), REPLACEMENT);
    } else if (c >= ' ' || shorts[c]) {
        buf_char(out, '\\');
        buf_char(out, c >= ' ' ? (char)c : shorts[c]);
    } else {
        buf_printf(out, "\\u%04x", c);
    }
}

void json_quote(struct buf *out, struct span s)
{
    const char *p = s.n ? s.p : "", *end = p + s.n, *run = p;

    buf_char(out, '"');
    for (;;) {
        p = scan_text(p, end);
        size_t n = p < end ? utf8_length(p, end) : 0;
        if (n > 1) {
            p += n;
            continue;
        }
        buf_bytes(out, run, (size_t)(p - run));
        if (p == end)
            break;
        put_escaped(out, (unsigned char)*p);
        run = ++p;
    }
    buf_char(out, '"');
}

void json_one_line(struct buf *out, struct span value)
{
    size_t from = out->n;

    buf_span(out, value);
    json_join_lines(out, from);
}

void json_join_lines(struct buf *out, size_t from)
{
    struct span text = span_from(buf_view(out), from);

    /* Inside strings CR and LF are escaped, so a raw one is always between tokens. */
    if (span_find(text, '\n') == text.n && span_find(text, '\r') == text.n)
        return;
    char *to = out->p + from;
    for (size_t i = 0; i < text.n; i++) {
        *to = text.p[i];
        to += *to != '\n' && *to != '\r';
    }
    out->n = (size_t)(to - out->p);
}

void json_insert(struct buf *out, struct span object, struct span members)
{
    if (!members.n || json_type_of(object) != JSON_OBJECT) {
        buf_span(out, object);
        return;
    }
    struct span rest = span_from(object, 1);
    const char *end = rest.p + rest.n, *first = scan_space(rest.p, end);
    buf_room(out, object.n + members.n + 1);
    buf_char(out, '{');
    buf_span(out, members);
    if (first < end && *first != '}')
        buf_char(out, ',');
    buf_span(out, rest);
}
