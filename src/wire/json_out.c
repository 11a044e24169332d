/* Writers of single JSON members: text, number, boolean, raw JSON, redacted text. Called by admin/,
 * browser/, acp/, rockbot/, cmd/ and others, for JSON that Rialto makes itself. */
#include "wire/json_out.h"

#include "base/log.h"
#include "wire/json.h"

void json_out(struct buf *out, const char *name)
{
    char last = out->n ? out->p[out->n - 1] : '{';

    if (last != '{' && last != '[' && last != ':')
        buf_char(out, ',');
    if (name) {
        buf_char(out, '"');
        buf_str(out, name);
        buf_str(out, "\":");
    }
}

void json_out_open(struct buf *out, const char *name, char bracket)
{
    json_out(out, name);
    buf_char(out, bracket);
}

void json_out_text(struct buf *out, const char *name, struct span text)
{
    json_out(out, name);
    json_quote(out, text);
}

void json_out_text_or_null(struct buf *out, const char *name, struct span text)
{
    if (text.n)
        json_out_text(out, name, text);
    else
        json_out_raw(out, name, SPAN("null"));
}

void json_out_str(struct buf *out, const char *name, const char *text)
{
    json_out_text(out, name, span_str(text));
}

void json_out_number(struct buf *out, const char *name, uint64_t number)
{
    json_out(out, name);
    buf_u64(out, number);
}

void json_out_bool(struct buf *out, const char *name, bool yes)
{
    json_out_raw(out, name, yes ? SPAN("true") : SPAN("false"));
}

void json_out_raw(struct buf *out, const char *name, struct span json)
{
    json_out(out, name);
    buf_span(out, json);
}

void json_out_redacted(struct buf *out, const char *name, struct span text)
{
    BUF_SCOPED shown = {0};

    log_redact(&shown, text);
    json_out_text_or_null(out, name, buf_view(&shown));
}

static void put_indent(struct buf *out, unsigned depth)
{
    buf_char(out, '\n');
    for (unsigned i = 0; i < depth; i++)
        buf_str(out, "  ");
}

static void put_pretty(struct buf *out, struct span json, unsigned depth)
{
    enum json_type type = json_type_of(json);
    struct json_iter it = json_iter(json);
    const char *comma = "";

    if ((type != JSON_OBJECT && type != JSON_ARRAY) || depth > JSON_MAX_DEPTH) {
        buf_span(out, json);
        return;
    }
    buf_char(out, type == JSON_OBJECT ? '{' : '[');
    while (json_next(&it)) {
        buf_str(out, comma);
        put_indent(out, depth + 1);
        if (type == JSON_OBJECT) {
            buf_span(out, it.key);
            buf_str(out, ": ");
        }
        put_pretty(out, it.value, depth + 1);
        comma = ",";
    }
    if (*comma)
        put_indent(out, depth);
    buf_char(out, type == JSON_OBJECT ? '}' : ']');
}

void json_out_pretty(struct buf *out, struct span json)
{
    put_pretty(out, json, 0);
}
