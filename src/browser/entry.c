/* Writes a page's tool as an MCP tool entry, with schema and annotations checked. Called by
 * session.c for the catalog. */
#include "browser/entry.h"

#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* --- the schema --- */

static bool is_properties(struct span value, enum json_type type)
{
    struct json_iter it = json_iter(value);
    bool fine = type == JSON_OBJECT;

    while (fine && json_next(&it))
        fine = it.type == JSON_OBJECT;
    return fine;
}

static bool is_required(struct span value, enum json_type type)
{
    struct json_iter it = json_iter(value);
    bool fine = type == JSON_ARRAY;

    while (fine && json_next(&it))
        fine = it.type == JSON_STRING;
    return fine;
}

/* Can agents use this schema? Its `type` may be missing (`*typed` false) or "object". */
static bool is_schema(struct json_slot schema, bool *typed)
{
    struct json_iter it = json_iter(schema.value);
    bool fine = schema.type == JSON_OBJECT, any = false;

    *typed = false;
    for (; fine && json_next(&it); any = true) {
        bool type = json_string_is(it.key, SPAN("type"));
        if (type)
            fine = *typed = json_string_is(it.value, SPAN("object"));
        else if (json_string_is(it.key, SPAN("properties")))
            fine = is_properties(it.value, it.type);
        else if (json_string_is(it.key, SPAN("required")))
            fine = is_required(it.value, it.type);
    }
    return fine && any;
}

static void put_schema(struct buf *out, struct json_slot schema)
{
    bool typed;

    json_out(out, "inputSchema");
    if (is_schema(schema, &typed))
        json_insert(out, schema.value, typed ? SPAN_EMPTY : SPAN("\"type\":\"object\""));
    else
        buf_str(out, "{\"type\":\"object\",\"properties\":{}}");
}

/* --- annotations --- */

static bool says(struct span annotations, const char *key)
{
    return json_get(annotations, key).type == JSON_TRUE;
}

/* An annotation that MCP defines must have the type MCP says; others may be anything. */
static bool is_annotation(struct span key, enum json_type type)
{
    static const char *const hints[] = {"readOnlyHint", "destructiveHint", "idempotentHint",
                                        "openWorldHint"};

    if (json_string_is(key, SPAN("title")))
        return type == JSON_STRING;
    for (size_t i = 0; i < COUNT_OF(hints); i++)
        if (json_string_is(key, span_str(hints[i])))
            return type == JSON_TRUE || type == JSON_FALSE;
    return true;
}

/* WebMCP calls "consequential" what MCP calls "destructive". */
static void put_annotations(struct buf *out, struct span annotations)
{
    struct json_iter it = json_iter(annotations);

    json_out_open(out, "annotations", '{');
    if (says(annotations, "consequentialHint") &&
        json_get(annotations, "destructiveHint").type == JSON_NONE)
        json_out_bool(out, "destructiveHint", true);
    while (json_next(&it))
        if (is_annotation(it.key, it.type))
            json_out_raw(out, NULL, it.member);
    buf_char(out, '}');
}

/* --- the whole entry --- */

static void put_description(struct buf *out, struct json_slot own, struct span where,
                            struct item *item)
{
    BUF_SCOPED text = {0}, scratch = {0};

    if (own.type != JSON_STRING && !where.n)
        return;
    json_out(out, "description");
    item->description_at.at = out->n;
    if (where.n) {
        buf_printf(&text, "[" SPAN_FMT "]", SPAN_ARG(where));
        if (own.type == JSON_STRING) {
            buf_char(&text, ' ');
            buf_span(&text, json_text(own.value, &scratch));
        }
        json_quote(out, buf_view(&text));
    } else {
        buf_span(out, own.value);
    }
    item->description_at.n = out->n - item->description_at.at;
}

void entry_put(struct buf *out, struct span tool, struct span name, struct span where,
               struct item *item)
{
    struct json_slot title = json_get(tool, "title"), description = json_get(tool, "description");
    struct json_slot annotations = json_get(tool, "annotations");

    buf_str(out, "{\"name\":");
    item->name_at.at = out->n;
    json_quote(out, name);
    item->name_at.n = out->n - item->name_at.at;
    if (title.type == JSON_STRING)
        json_out_raw(out, NULL, title.member);
    put_description(out, description, where, item);
    put_schema(out, json_get(tool, "inputSchema"));
    if (annotations.type == JSON_OBJECT) {
        put_annotations(out, annotations.value);
        item->flags |= says(annotations.value, "readOnlyHint") ? (unsigned)ITEM_READ_ONLY : 0;
        item->flags |= says(annotations.value, "idempotentHint") ? (unsigned)ITEM_IDEMPOTENT : 0;
    }
    buf_char(out, '}');
}
