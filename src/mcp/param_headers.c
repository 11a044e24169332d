/* The x-mcp-header annotations of a tool: checked, written as headers, compared with headers.
 * Called by server/lists.c, server/upstream_calls.c and agent/modern_http.c. */
#include "mcp/param_headers.h"

#include "base/ascii.h"
#include "base/map.h"
#include "mcp/header_value.h"
#include "wire/json.h"

#define KEY "x-mcp-header"

bool param_headers_possible(struct span tool)
{
    return tool.n && memmem(tool.p, tool.n, KEY, strlen(KEY)) != NULL;
}

/* One annotated property. `value` is its argument, JSON_NONE when the argument is not given. */
typedef bool visit_fn(void *arg, struct span property, struct json_slot name,
                      struct json_slot value);

/* Visit the annotations that are reachable through `properties` alone; stops at the first false. */
static bool walk(struct span schema, struct json_slot arguments, visit_fn *visit, void *arg)
{
    struct json_slot properties = json_get(schema, "properties");
    struct json_iter it = json_iter(properties.value);

    while (properties.type == JSON_OBJECT && json_next(&it)) {
        struct json_slot value = {0};
        if (it.type != JSON_OBJECT)
            continue;
        if (arguments.type == JSON_OBJECT) {
            BUF_SCOPED key = {0};
            json_unescape(&key, it.key);
            value = json_get(arguments.value, buf_cstr(&key));
        }
        struct json_slot name = json_get(it.value, KEY);
        if (name.type != JSON_NONE && !visit(arg, it.value, name, value))
            return false;
        if (!walk(it.value, value, visit, arg))
            return false;
    }
    return true;
}

static bool walk_tool(struct span tool, struct span arguments, visit_fn *visit, void *arg)
{
    struct json_slot schema = json_get(tool, "inputSchema");
    struct json_slot given = {.type = arguments.n ? JSON_OBJECT : JSON_NONE, .value = arguments};

    return schema.type != JSON_OBJECT || walk(schema.value, given, visit, arg);
}

/* --- are the annotations valid? --- */

struct census {
    struct map names; /* in lower case */
    size_t reached;
};

static bool is_plain_type(struct span property)
{
    static const char *const plain[] = {"string", "integer", "boolean"};
    struct json_slot type = json_get(property, "type");

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (type.type == JSON_STRING && json_string_is(type.value, span_str(plain[i])))
            return true;
    return false;
}

static bool count_name(void *arg, struct span property, struct json_slot name,
                       struct json_slot value)
{
    struct census *census = arg;
    BUF_SCOPED text = {0};
    bool fine = name.type == JSON_STRING && is_plain_type(property);

    (void)value;
    if (name.type == JSON_STRING)
        json_unescape(&text, name.value);
    fine = fine && text.n > 0 && ascii_is_words(buf_view(&text), "!#$%&'*+-.^_`|~");
    for (size_t i = 0; i < text.n; i++)
        text.p[i] = ascii_to_lower(text.p[i]);
    fine = fine && map_put(&census->names, buf_view(&text), census) == NULL;
    census->reached++;
    return fine;
}

/* The number of annotations anywhere in the value. */
static size_t count_anywhere(struct span value)
{
    struct json_iter it = json_iter(value);
    size_t n = 0;

    while (json_next(&it)) {
        n += it.key.n && json_string_is(it.key, SPAN(KEY));
        if (it.type == JSON_OBJECT || it.type == JSON_ARRAY)
            n += count_anywhere(it.value);
    }
    return n;
}

bool param_headers_valid(struct span tool)
{
    struct census census = {0};
    struct json_slot schema = json_get(tool, "inputSchema");
    bool valid = walk_tool(tool, SPAN_EMPTY, count_name, &census) &&
                 (schema.type != JSON_OBJECT || count_anywhere(schema.value) == census.reached);

    map_fini(&census.names);
    return valid;
}

/* --- sending and checking --- */

/* Append the argument as the header has it; false when the argument gets no header. */
static bool text_of(struct json_slot value, struct buf *out)
{
    if (value.type == JSON_STRING)
        json_unescape(out, value.value);
    else if (value.type == JSON_NUMBER || value.type == JSON_TRUE || value.type == JSON_FALSE)
        buf_span(out, value.value);
    else
        return false;
    return true;
}

static bool put_one(void *arg, struct span property, struct json_slot name, struct json_slot value)
{
    struct buf *out = arg, text = {0};

    (void)property;
    if (text_of(value, &text)) {
        buf_str(out, "Mcp-Param-");
        json_unescape(out, name.value);
        buf_str(out, ": ");
        header_value_put(out, buf_view(&text));
        buf_str(out, "\r\n");
    }
    buf_fini(&text);
    return true;
}

void param_headers_put(struct buf *out, struct span tool, struct span arguments)
{
    walk_tool(tool, arguments, put_one, out);
}

struct check {
    param_header_fn *header;
    void *arg;
};

static bool same_value(struct span sent, struct json_slot value, struct span text)
{
    int64_t a, b;

    if (value.type == JSON_NUMBER && json_int(value.value, &b) &&
        json_skim(sent, NULL, NULL, NULL, NULL) == 0 && json_int(sent, &a))
        return a == b;
    return span_eq(sent, text);
}

static bool match_one(void *arg, struct span property, struct json_slot name,
                      struct json_slot value)
{
    const struct check *check = arg;
    BUF_SCOPED header = {0}, text = {0}, decoded = {0};

    (void)property;
    buf_str(&header, "Mcp-Param-");
    json_unescape(&header, name.value);
    struct span sent = check->header(check->arg, buf_view(&header));
    bool given = text_of(value, &text);
    return given ? sent.p && header_value_decode(sent, &decoded) &&
                       same_value(buf_view(&decoded), value, buf_view(&text))
                 : !sent.p;
}

bool param_headers_match(struct span tool, struct span arguments, param_header_fn *header,
                         void *arg)
{
    struct check check = {header, arg};

    return walk_tool(tool, arguments, match_one, &check);
}
