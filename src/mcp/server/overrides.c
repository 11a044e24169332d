/* A tool's JSON and the params of its calls rewritten as the configuration says. Called by lists.c
 * for each tool, by upstream_calls.c for each call, and by provider.c. */
#include "mcp/server/overrides.h"

#include "mcp/protocol.h"
#include "wire/json_merge.h"

const struct mcp_override *override_find(const struct mcp_overrides *all, struct span own)
{
    for (size_t i = 0; i < all->n; i++)
        if (span_is(own, all->rows[i].own))
            return &all->rows[i];
    return NULL;
}

bool overrides_restrict(const struct mcp_overrides *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->rows[i].hide || all->rows[i].arguments)
            return true;
    return false;
}

static void put_comma(struct buf *out, size_t start)
{
    if (out->n > start)
        buf_char(out, ',');
}

static bool is_pinned(const struct mcp_override *o, struct span raw_key)
{
    return json_merge_has(span_str(o->arguments), raw_key, json_string_is);
}

bool override_is_evaded(const struct mcp_override *o, const struct request *r)
{
    if (!o->arguments)
        return false;
    struct json_iter it = json_iter(json_get(r->params, "arguments").value);
    while (json_next(&it))
        if (!is_pinned(o, it.key) &&
            json_merge_has(span_str(o->arguments), it.key, json_string_resembles))
            return true;
    return false;
}

/* The members of `properties` that are not pinned. */
static void put_properties(struct buf *out, const struct mcp_override *o, struct span properties)
{
    struct json_iter it = json_iter(properties);

    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&it)) {
        if (is_pinned(o, it.key))
            continue;
        put_comma(out, start);
        buf_span(out, it.member);
    }
    buf_char(out, '}');
}

static void put_required(struct buf *out, const struct mcp_override *o, struct span required)
{
    struct json_iter it = json_iter(required);

    buf_char(out, '[');
    size_t start = out->n;
    while (json_next(&it)) {
        if (it.type == JSON_STRING && is_pinned(o, it.value))
            continue;
        put_comma(out, start);
        buf_span(out, it.value);
    }
    buf_char(out, ']');
}

static void put_schema(struct buf *out, const struct mcp_override *o, struct span schema)
{
    struct json_iter it = json_iter(schema);

    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&it)) {
        put_comma(out, start);
        bool properties = it.type == JSON_OBJECT && json_string_is(it.key, SPAN("properties"));
        bool required = it.type == JSON_ARRAY && json_string_is(it.key, SPAN("required"));
        if (!properties && !required) {
            buf_span(out, it.member);
            continue;
        }
        buf_span(out, it.key);
        buf_char(out, ':');
        if (properties)
            put_properties(out, o, it.value);
        else
            put_required(out, o, it.value);
    }
    buf_char(out, '}');
}

void override_put_tool(struct buf *out, const struct mcp_override *o, struct span raw)
{
    struct json_iter it = json_iter(raw);
    bool described = false;

    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&it)) {
        put_comma(out, start);
        bool description = json_string_is(it.key, SPAN("description"));
        described |= description;
        if (o->name && json_string_is(it.key, SPAN("name"))) {
            buf_str(out, "\"name\":");
            json_quote(out, span_str(o->name));
        } else if (o->description && description) {
            buf_str(out, "\"description\":");
            json_quote(out, span_str(o->description));
        } else if (o->arguments && it.type == JSON_OBJECT &&
                   json_string_is(it.key, SPAN("inputSchema"))) {
            buf_str(out, "\"inputSchema\":");
            put_schema(out, o, it.value);
        } else {
            buf_span(out, it.member);
        }
    }
    if (o->description && !described) {
        put_comma(out, start);
        buf_str(out, "\"description\":");
        json_quote(out, span_str(o->description));
    }
    buf_char(out, '}');
}

struct request override_request(const struct mcp_override *o, const struct request *r,
                                struct buf *params)
{
    struct request pinned = *r;
    struct json_iter it = json_iter(r->params);
    bool given = false;

    if (!o->arguments)
        return pinned;
    buf_char(params, '{');
    while (json_next(&it)) {
        put_comma(params, 1);
        if (!json_string_is(it.key, SPAN("arguments"))) {
            buf_span(params, it.member);
            continue;
        }
        given = true;
        buf_str(params, "\"arguments\":");
        json_merge_put(params, it.value, span_str(o->arguments));
    }
    if (!given) {
        put_comma(params, 1);
        buf_str(params, "\"arguments\":");
        buf_str(params, o->arguments);
    }
    buf_char(params, '}');
    pinned.params = buf_view(params);
    struct json_slot name = json_get(pinned.params, "name"),
                     meta = json_get(pinned.params, "_meta");
    pinned.name_at = mcp_cut(pinned.params, &name);
    pinned.meta_at = mcp_cut(pinned.params, &meta);
    return pinned;
}
