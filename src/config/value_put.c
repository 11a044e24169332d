/* A value tree written as JSON or as YAML, and comments for YAML. Called by convert.c, edit*.c,
 * schema.c, server_edit.c, hub/graph/memory.c, hub/graph/narrowings.c and cmd/. */
#include "config/value.h"

#include "base/ascii.h"
#include "wire/json.h"

enum { INDENT = 2, LONG_KEY = 512 };

static void put_indent(struct buf *out, unsigned depth)
{
    buf_printf(out, "%*s", (int)(depth * INDENT), "");
}

static bool is_container(const struct value *v)
{
    return v->type == VALUE_LIST || v->type == VALUE_MAP;
}

static void put_json_scalar(struct buf *out, const struct value *v)
{
    if (v->type == VALUE_STRING)
        json_quote(out, v->text);
    else if (v->type == VALUE_BOOL)
        buf_str(out, v->truth ? "true" : "false");
    else if (v->type == VALUE_NUMBER)
        buf_span(out, v->text);
    else
        buf_str(out, "null");
}

static void put_json(struct buf *out, const struct value *v, bool indent, unsigned depth)
{
    if (!is_container(v)) {
        put_json_scalar(out, v);
        return;
    }
    buf_char(out, v->type == VALUE_MAP ? '{' : '[');
    for (const struct value *child = v->first; child; child = child->next) {
        if (indent) {
            buf_char(out, '\n');
            put_indent(out, depth + 1);
        }
        if (v->type == VALUE_MAP) {
            json_quote(out, child->key);
            buf_str(out, indent ? ": " : ":");
        }
        put_json(out, child, indent, depth + 1);
        if (child->next)
            buf_char(out, ',');
    }
    if (indent && v->first) {
        buf_char(out, '\n');
        put_indent(out, depth);
    }
    buf_char(out, v->type == VALUE_MAP ? '}' : ']');
}

void value_put_json(struct buf *out, const struct value *v, bool indent)
{
    put_json(out, v, indent, 0);
}

/* "30s" and "16MiB": text for every YAML reader, but "0xAB" would be a number. */
static bool is_amount(struct span text)
{
    size_t at = 0;

    while (at < text.n && ascii_is_digit(text.p[at]))
        at++;
    if (!at || at == text.n || (text.p[at] | 0x20) == 'x')
        return false;
    while (at < text.n && ascii_is_letter(text.p[at]))
        at++;
    return at == text.n;
}

/*
 * May the text stand in YAML without quotes? Only when it is harmless under every reader: a letter
 * or slash first, then nothing but name and path characters, and no word that some YAML version
 * takes for something else.
 */
static bool is_plain(struct span text)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};

    if (is_amount(text))
        return true;
    if (!text.n || !(ascii_is_letter(text.p[0]) || text.p[0] == '/'))
        return false;
    if (!ascii_is_words(text, "_-./"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (span_eq_nocase(text, span_str(words[i])))
            return false;
    return true;
}

/*
 * The character at the front of `text`, with its length in *n, if YAML takes it for a line break or
 * refuses it, but JSON allows it: DEL, the C1 controls, the line separators, the byte order mark,
 * U+FFFE and U+FFFF. 0 for any other character.
 */
static unsigned yaml_special(struct span text, size_t *n)
{
    const unsigned char *p = (const unsigned char *)text.p;
    unsigned c = 0;

    if (p[0] == 0x7f) {
        *n = 1;
        return p[0];
    }
    if (text.n >= 2 && p[0] == 0xc2 && p[1] < 0xa0) {
        *n = 2;
        return p[1];
    }
    if (text.n < 3 || (p[0] != 0xe2 && p[0] != 0xef))
        return 0;
    *n = 3;
    c = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    return c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff ? c : 0;
}

static void put_yaml_text(struct buf *out, struct span text)
{
    BUF_SCOPED quoted = {0};

    if (is_plain(text)) {
        buf_span(out, text);
        return;
    }
    /* Except for those characters a JSON string is a double-quoted YAML string. */
    json_quote(&quoted, text);
    for (size_t i = 0, n; i < quoted.n; i += n) {
        unsigned special = yaml_special(span_from(buf_view(&quoted), i), &n);
        if (special) {
            buf_printf(out, "\\u%04x", special);
        } else {
            n = 1;
            buf_char(out, quoted.p[i]);
        }
    }
}

/* "key:". YAML readers look at most 1024 characters ahead for the colon: a long key needs "? ". */
static void put_yaml_key(struct buf *out, struct span key, unsigned depth)
{
    BUF_SCOPED text = {0};

    put_yaml_text(&text, key);
    if (text.n > LONG_KEY) {
        buf_str(out, "? ");
        buf_span(out, buf_view(&text));
        buf_char(out, '\n');
        put_indent(out, depth);
    } else {
        buf_span(out, buf_view(&text));
    }
    buf_char(out, ':');
}

static void put_yaml(struct buf *out, const struct value *v, unsigned depth);

/* The value behind "key:" or "-": on the same line, or as a block below. */
static void put_yaml_child(struct buf *out, const struct value *v, unsigned depth)
{
    if (is_container(v) && v->first) {
        buf_char(out, '\n');
        put_yaml(out, v, depth);
        return;
    }
    buf_char(out, ' ');
    if (v->type == VALUE_STRING)
        put_yaml_text(out, v->text);
    else
        put_json(out, v, false, 0);
    buf_char(out, '\n');
}

static void put_yaml(struct buf *out, const struct value *v, unsigned depth)
{
    for (const struct value *child = v->first; child; child = child->next) {
        put_indent(out, depth);
        if (v->type == VALUE_MAP)
            put_yaml_key(out, child->key, depth);
        else
            buf_char(out, '-');
        put_yaml_child(out, child, depth + 1);
    }
}

void value_put_yaml(struct buf *out, const struct value *v)
{
    if (is_container(v) && v->first) {
        put_yaml(out, v, 0);
        return;
    }
    if (v->type == VALUE_STRING)
        put_yaml_text(out, v->text);
    else
        put_json(out, v, false, 0);
    buf_char(out, '\n');
}

void value_put_comment(struct buf *out, struct span text)
{
    BUF_SCOPED quoted = {0}, clean = {0};

    json_quote(&quoted, text); /* replaces bytes that are no UTF-8 */
    json_unescape(&clean, buf_view(&quoted));
    buf_str(out, "# ");
    for (size_t i = 0, n; i < clean.n; i += n) {
        bool special = yaml_special(span_from(buf_view(&clean), i), &n) != 0;
        n = special ? n : 1;
        buf_char(out, special || (unsigned char)clean.p[i] < 0x20 ? '?' : clean.p[i]);
    }
    buf_char(out, '\n');
}
