/*
 * edit: the editors of JSON with comments, YAML and TOML. The first byte chooses the format and the
 * place; the rest is the document. An entry that was put in can be found, and taking it out again
 * restores the document byte for byte; taking out or renaming one leaves all others as they were.
 */
#include "config/edit.h"
#include "config/reader.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct edit_place places[] = {
    {.keys = {"servers"}},
    {.keys = {"projects", "/p", "mcpServers"}},
    {.keys = {"mcpServers"}, .list = true},
    {.keys = {"auth", "tokens"}, .list = true, .keeps_empty = true},
};

/* The document as a tree in one line; empty when it cannot be read. */
static void put_tree(struct buf *out, enum edit_format format, struct span text)
{
    struct problems ps = {0};
    struct arena a = {0};
    BUF_SCOPED plain = {0};
    struct value *v = NULL;

    if (format == EDIT_TOML)
        v = toml_read(&a, text, &ps);
    else if (format == EDIT_YAML)
        v = yaml_read(&a, text, &ps);
    else if (json_doc_relax(&plain, text))
        v = json_doc_read(&a, buf_view(&plain), &ps);
    if (v && !ps.errors)
        value_put_json(out, v, false);
    problems_fini(&ps);
    arena_fini(&a);
}

static void check_put(enum edit_format format, const struct edit_place *place, struct span text)
{
    static const char entry[] =
        "{\"name\":\"new one\",\"command\":\"x\",\"args\":[\"-y\",\"\\u0001\"]}";
    BUF_SCOPED with = {0}, without = {0}, again = {0}, tree = {0};
    struct err err = {0};

    if (edit_put(&with, format, place, text, SPAN("new one"), span_str(entry), &err))
        return;
    put_tree(&tree, format, buf_view(&with));
    if (format != EDIT_JSON || text.n < 3 || text.p[0] != '\xef') /* a byte order mark */
        if (!strstr(buf_cstr(&tree), "\"command\":\"x\",\"args\":[\"-y\""))
            abort();
    if (!edit_put(&again, format, place, buf_view(&with), SPAN("new one"), SPAN("{}"), &err))
        abort(); /* the name is taken */
    if (edit_take(&without, format, place, buf_view(&with), SPAN("new one"), &err))
        abort();
    if (!place->keeps_empty && !span_eq(buf_view(&without), text))
        abort();
}

static void check_change(enum edit_format format, const struct edit_place *place, struct span text)
{
    BUF_SCOPED without = {0}, renamed = {0}, back = {0}, before = {0}, after = {0};
    struct err err = {0};

    if (!place->list && !edit_take(&without, format, place, text, SPAN("a"), &err) &&
        !edit_take(&back, format, place, buf_view(&without), SPAN("a"), &err))
        abort(); /* the entry is gone */
    if (place->list || edit_rename(&renamed, format, place, text, SPAN("a"), SPAN("z"), &err))
        return;
    back.n = 0;
    if (edit_rename(&back, format, place, buf_view(&renamed), SPAN("z"), SPAN("a"), &err))
        abort();
    put_tree(&before, format, text);
    put_tree(&after, format, buf_view(&back));
    if (!span_eq(buf_view(&before), buf_view(&after)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    enum edit_format format = (enum edit_format)(data[0] % 3);
    const struct edit_place *place = &places[data[0] / 3 % 4];
    struct span text = span_of((const char *)data + 1, size - 1);

    check_put(format, place, text);
    check_change(format, place, text);
    return 0;
}
