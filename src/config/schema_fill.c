/* ${NAME} in the values of a document, filled in while it is read (texts of servers stay as they
 * are until hub/graph/server.c plans the server), and values written as one text. Called by
 * schema.c; schema_dump.c asks here which texts stay. */
#include "config/schema.h"

#include "base/mem.h"

bool schema_is_late(const struct schema_row *row)
{
    static const char *const others[] = {"bus.url", "bus.token"};
    bool text = row->type == SCHEMA_STRING || row->type == SCHEMA_STRINGS ||
                row->type == SCHEMA_PAIRS || row->type == SCHEMA_JSON;

    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (strcmp(row->path, others[i]) == 0)
            return true;
    return text && strncmp(row->path, "servers.*.", 10) == 0;
}

static bool has_variable(const struct value *v)
{
    if (v->type == VALUE_STRING && strstr(v->text.p, "${"))
        return true;
    for (const struct value *child = v->first; child; child = child->next)
        if (has_variable(child))
            return true;
    return false;
}

/* Recursion is bounded: no reader builds a tree deeper than VALUE_MAX_DEPTH. */
static void fill_all(struct schema_read *r, struct arena *scratch, struct value *v,
                     struct buf *missing)
{
    if (v->type == VALUE_STRING && strstr(v->text.p, "${")) {
        BUF_SCOPED text = {0};
        r->fill(r->fill_arg, v->text.p, &text, missing);
        v->text = arena_span(scratch, buf_view(&text));
    }
    for (struct value *child = v->first; child; child = child->next)
        fill_all(r, scratch, child, missing);
}

static struct value *text_list(struct arena *a, struct span text)
{
    struct value *list = value_new(a, VALUE_LIST, (struct place){0});

    while (text.n) {
        size_t comma = span_find(text, ',');
        value_append(list, value_text(a, VALUE_STRING, span_trim(span_cut(text, 0, comma))));
        text = span_from(text, comma + 1);
    }
    return list;
}

struct value *schema_text_value(struct arena *a, const struct schema_row *row, struct span text)
{
    if (row->type == SCHEMA_STRINGS || row->type == SCHEMA_WORDS || row->type == SCHEMA_LIST)
        return text_list(a, text);
    if (row->type == SCHEMA_BOOL && (span_is(text, "true") || span_is(text, "false")))
        return value_text(a, VALUE_BOOL, text);
    if (row->type == SCHEMA_NUMBER && value_is_number(text))
        return value_text(a, VALUE_NUMBER, text);
    return value_text(a, VALUE_STRING, text);
}

const struct value *schema_fill(struct schema_read *r, const struct schema_row *row,
                                const struct value *v, const char *shown, struct arena *scratch)
{
    const struct value *origin = r->entry ? value_get(r->entry, "origin") : NULL;
    bool agent = origin && span_is(origin->text, "agent");
    size_t budget = VALUE_MAX_NODES;
    BUF_SCOPED missing = {0};

    r->open = schema_is_late(row) && !agent;
    if (schema_is_late(row) || row->literal || agent || !has_variable(v))
        return v;
    if (!r->fill)
        return r->unfilled ? NULL : v;
    struct value *copy = value_copy(scratch, v, &budget);
    fill_all(r, scratch, copy, &missing);
    if (!missing.n && copy->type == VALUE_STRING &&
        (row->type == SCHEMA_BOOL || row->type == SCHEMA_NUMBER))
        return schema_text_value(scratch, row, copy->text);
    if (!missing.n)
        return copy;
    if (strncmp(row->path, "servers.*.", 10) == 0) {
        buf_printf(&r->unset, "%s%s", r->unset.n ? ", " : "", buf_cstr(&missing));
        return NULL; /* the server is left out, and `unset` says why */
    }
    problems_add(r->problems, PROBLEM_ERROR, v->at, shown,
                 "no value for %s (not in the secrets, not in the environment)",
                 buf_cstr(&missing));
    return NULL;
}
