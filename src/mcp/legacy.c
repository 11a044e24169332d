/* Results without members of the stateless era; structured content of any type, and the schema of
 * that content, wrapped into an object. Called by server/upstream_calls.c, server/upstream_tasks.c
 * and server/task_request.c for results, by server/lists.c and agent/session.c for lists. */
#include "mcp/legacy.h"

#include "mcp/circle.h"
#include "mcp/protocol.h"

static bool is_any(struct span key, const char *const *words)
{
    for (; *words; words++)
        if (json_string_is(key, span_str(*words)))
            return true;
    return false;
}

static void put_comma(struct buf *out, size_t start)
{
    if (out->n > start)
        buf_char(out, ',');
}

/* --- results --- */

/* Is this a member of the stateless era? Results of methods that MCP does not know may use the
 * names of the cache members for something else. */
static bool is_dropped(enum op op, struct span key)
{
    static const char *const cache[] = {"ttlMs", "cacheScope", NULL};

    return json_string_is(key, SPAN("resultType")) || (op != OP_OTHER && is_any(key, cache));
}

/* Append `_meta` without the members of this hop; nothing if there are no other members. */
static void put_meta(struct buf *out, size_t start, struct span meta)
{
    BUF_SCOPED kept = {0};

    mcp_put_foreign_meta(&kept, meta);
    if (!kept.n)
        return;
    put_comma(out, start);
    buf_str(out, "\"_meta\":{");
    buf_span(out, buf_view(&kept));
    buf_char(out, '}');
}

void legacy_put_result(struct buf *out, enum op op, struct span result, bool wrap)
{
    struct json_iter it = json_iter(result);

    if (json_type_of(result) != JSON_OBJECT) {
        buf_span(out, result);
        return;
    }
    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&it)) {
        if (is_dropped(op, it.key))
            continue;
        if (it.type == JSON_OBJECT && json_string_is(it.key, SPAN("_meta"))) {
            put_meta(out, start, it.value);
            continue;
        }
        put_comma(out, start);
        if (op == OP_CALL_TOOL && (wrap || it.type != JSON_OBJECT) &&
            json_string_is(it.key, SPAN("structuredContent"))) {
            buf_str(out, "\"structuredContent\":{\"result\":");
            buf_span(out, it.value);
            buf_char(out, '}');
        } else {
            buf_span(out, it.member);
        }
    }
    buf_char(out, '}');
}

/* --- tools --- */

bool legacy_fits(const struct json_slot *schema)
{
    return schema->type == JSON_NONE ||
           (schema->type == JSON_OBJECT &&
            json_string_is(json_get(schema->value, "type").value, SPAN("object")));
}

/* A reference into the schema itself is rewritten to begin at the schema's new place. */
static void put_reference(struct buf *out, struct span raw)
{
    BUF_SCOPED scratch = {0}, moved = {0};
    struct span text = json_text(raw, &scratch);

    if (!span_is(text, "#") && !span_starts(text, SPAN("#/"))) {
        buf_span(out, raw);
        return;
    }
    buf_str(&moved, "#/properties/result");
    buf_span(&moved, span_from(text, 1));
    json_quote(out, buf_view(&moved));
}

/* Has the schema an $id of its own, to which its references are relative? */
static bool has_own_root(struct span schema)
{
    struct json_slot id = json_get(schema, "$id");

    return id.type == JSON_STRING && !span_starts(id.value, SPAN("\"#"));
}

static void put_moved(struct buf *out, struct span value, bool of_names);

/* `of_names`: the keys are names that the author chose, as in `properties`, not keywords. */
static void put_moved_member(struct buf *out, const struct json_iter *it, bool of_names)
{
    static const char *const references[] = {"$ref", "$dynamicRef", NULL};
    static const char *const data[] = {"const", "enum", "default", "examples", NULL};
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  "dependencies",
                                       NULL};

    buf_span(out, it->key);
    buf_char(out, ':');
    if (!of_names && it->type == JSON_STRING && is_any(it->key, references))
        put_reference(out, it->value);
    else if (!of_names && is_any(it->key, data))
        buf_span(out, it->value);
    else
        put_moved(out, it->value, !of_names && is_any(it->key, maps));
}

/* Append a schema, or a value in one, for a place inside another schema. */
static void put_moved(struct buf *out, struct span value, bool of_names)
{
    enum json_type type = json_type_of(value);
    struct json_iter it = json_iter(value);

    if ((type != JSON_OBJECT && type != JSON_ARRAY) ||
        (type == JSON_OBJECT && !of_names && has_own_root(value))) {
        buf_span(out, value);
        return;
    }
    buf_char(out, type == JSON_OBJECT ? '{' : '[');
    size_t start = out->n;
    while (json_next(&it)) {
        put_comma(out, start);
        if (type == JSON_OBJECT)
            put_moved_member(out, &it, of_names);
        else
            put_moved(out, it.value, false);
    }
    buf_char(out, type == JSON_OBJECT ? '}' : ']');
}

static void put_wrapped(struct buf *out, struct span schema)
{
    struct json_slot dialect = {0};

    if (json_type_of(schema) == JSON_OBJECT)
        dialect = json_get(schema, "$schema");
    buf_char(out, '{');
    if (dialect.type == JSON_STRING) {
        buf_span(out, dialect.member);
        buf_char(out, ',');
    }
    buf_str(out, "\"type\":\"object\",\"properties\":{\"result\":");
    put_moved(out, schema, false);
    buf_str(out, "},\"required\":[\"result\"]}");
}

static void put_tool(struct buf *out, struct span tool, unsigned flags)
{
    struct json_slot schema = json_get(tool, "outputSchema");
    size_t start = out->n;

    if (legacy_fits(&schema)) {
        buf_span(out, tool);
    } else {
        size_t at = (size_t)(schema.value.p - tool.p);
        buf_span(out, span_cut(tool, 0, at));
        put_wrapped(out, schema.value);
        buf_span(out, span_from(tool, at + schema.value.n));
    }
    if (flags & ITEM_TASK_UNSAID) {
        BUF_SCOPED said = {0};
        json_insert(&said, span_of(out->p + start, out->n - start),
                    SPAN("\"execution\":{\"taskSupport\":\"optional\"}"));
        out->n = start;
        buf_span(out, buf_view(&said));
    }
}

static void put_tools(struct buf *out, struct view *v)
{
    struct json_iter it = json_iter(view_list(v, ITEM_TOOL));

    buf_char(out, '[');
    size_t start = out->n;
    for (size_t i = 0; json_next(&it); i++) {
        const struct target *t = view_item(v, ITEM_TOOL, i);
        put_comma(out, start);
        put_tool(out, it.value, t ? t->item->flags : 0);
    }
    buf_char(out, ']');
}

void legacy_put_list(struct buf *out, struct span id, struct view *v, enum item_kind kind,
                     bool marks)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, id);
    buf_printf(out, ",\"result\":{\"%s\":", mcp_lists[kind].member);
    if (view_flags(v, kind) & LEGACY_REWRITES)
        put_tools(out, v);
    else
        buf_span(out, view_list(v, kind));
    if (marks) {
        buf_str(out, ",\"_meta\":{");
        circle_put_marks(out, v);
        buf_char(out, '}');
    }
    buf_str(out, "}}");
}
