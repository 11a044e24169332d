/* Texts of an entry of the configuration, with ${NAME} replaced by values. Called by server.c,
 * which makes plans from entries. */
#include "hub/graph/filling.h"

#include "base/log.h"
#include "config/credentials.h"
#include "wire/json.h"

#include <string.h>

void filling_note(struct filling *f, struct span text)
{
    BUF_SCOPED all = {0};

    buf_bytes(&all, f->digest, sizeof f->digest);
    buf_span(&all, text);
    sha_256(f->digest, buf_view(&all));
}

const char *filling_text(struct filling *f, const char *text)
{
    BUF_SCOPED filled = {0};

    if (!text || !f->secrets || !strstr(text, "${"))
        return arena_text(f->arena, text);
    secrets_fill(f->secrets, text, &filled, &f->missing);
    f->fills = true;
    filling_note(f, buf_view(&filled));
    return arena_span(f->arena, buf_view(&filled)).p;
}

const char *filling_some(struct filling *f, const char *text)
{
    const char *filled = filling_text(f, text);

    return filled && *filled ? filled : NULL;
}

const char *const *filling_texts(struct filling *f, const struct config_strings *list)
{
    const char **texts = ARENA_ARRAY(f->arena, const char *, list->n + 1);

    for (size_t i = 0; i < list->n; i++)
        texts[i] = filling_text(f, list->items[i]);
    return texts;
}

const struct span *filling_spans(struct filling *f, const struct config_strings *list)
{
    struct span *spans = ARENA_ARRAY(f->arena, struct span, list->n + 1);

    for (size_t i = 0; i < list->n; i++)
        spans[i] = span_str(filling_text(f, list->items[i]));
    return spans;
}

const char **filling_pairs(struct filling *f, const struct config_pairs *pairs,
                           const char *separator, bool omits)
{
    const char **texts = ARENA_ARRAY(f->arena, const char *, pairs->n + 2);
    size_t n = 0;

    for (size_t i = 0; i < pairs->n; i++) {
        BUF_SCOPED text = {0};
        size_t missing = f->missing.n;
        const char *value = filling_text(f, pairs->items[i].value);
        if (omits && f->missing.n > missing) {
            log_warn(f->alias, "is asked without the header '%s': no value for " SPAN_FMT,
                     pairs->items[i].name,
                     SPAN_ARG(span_from(buf_view(&f->missing), missing ? missing + 2 : 0)));
            f->missing.n = missing;
            continue;
        }
        credentials_in_pair(span_str(pairs->items[i].name), span_str(value));
        buf_printf(&text, "%s%s%s", pairs->items[i].name, separator, value);
        texts[n++] = arena_span(f->arena, buf_view(&text)).p;
    }
    return texts;
}

/* Recursion is bounded: the configuration's readers limit the depth. */
static void fill_value(struct filling *f, struct span json, struct buf *out)
{
    enum json_type type = json_type_of(json);
    BUF_SCOPED text = {0};

    if (type == JSON_STRING) {
        json_unescape(&text, json);
        json_quote(out, span_str(filling_text(f, buf_cstr(&text))));
        return;
    }
    if (type != JSON_OBJECT && type != JSON_ARRAY) {
        buf_span(out, json);
        return;
    }
    buf_char(out, type == JSON_OBJECT ? '{' : '[');
    for (struct json_iter it = json_iter(json); json_next(&it);) {
        if (out->p[out->n - 1] != '{' && out->p[out->n - 1] != '[')
            buf_char(out, ',');
        if (it.key.n)
            buf_printf(out, SPAN_FMT ":", SPAN_ARG(it.key));
        fill_value(f, it.value, out);
    }
    buf_char(out, type == JSON_OBJECT ? '}' : ']');
}

const char *filling_json(struct filling *f, const char *json)
{
    BUF_SCOPED out = {0};

    if (!json || !f->secrets || !strstr(json, "${"))
        return arena_text(f->arena, json);
    fill_value(f, span_str(json), &out);
    return arena_span(f->arena, buf_view(&out)).p;
}

void filling_put_missing(const struct filling *f, struct buf *out)
{
    struct span names = buf_view(&f->missing); /* "A, B, A" */

    while (names.n) {
        struct span name = span_cut(names, 0, span_find(names, ',')), rest = buf_view(out);
        while (rest.n && !span_eq(span_cut(rest, 0, span_find(rest, ',')), name))
            rest = span_from(rest, span_find(rest, ',') + 2);
        if (!rest.n)
            buf_printf(out, "%s" SPAN_FMT, out->n ? ", " : "", SPAN_ARG(name));
        names = span_from(names, name.n + 2);
    }
}
