/* Converts a page's answer or error to an MCP result or error object. Called by page_request.c, and
 * by session.c for calls that are refused. */
#include "browser/result.h"

#include "base/mem.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

/* BTCP's words for errors, and MCP's codes for them. */
static const struct {
    const char *word;
    int code;
} codes[] = {
    {"TOOL_NOT_FOUND", RPC_METHOD_NOT_FOUND},  {"INVALID_PARAMS", RPC_INVALID_PARAMS},
    {"CAPABILITY_DENIED", RPC_INTERNAL_ERROR}, {"EXECUTION_ERROR", RPC_INTERNAL_ERROR},
    {"TIMEOUT", RPC_INTERNAL_ERROR},           {"CONNECTION_ERROR", RPC_INTERNAL_ERROR},
};

static int code_of_word(struct span word)
{
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        if (span_is(word, codes[i].word))
            return codes[i].code;
    return RPC_INTERNAL_ERROR;
}

/* --- content items --- */

/* Does the base64 text begin like an image in a format that browsers show? */
static bool looks_like_image(struct span base64)
{
    static const char *const magic[] = {"iVBORw0KGg", "/9j/",   "R0lGOD", "UklGR",
                                        "PHN2Zy",     "PD94bW", "Qk",     "AAAA"};

    for (size_t i = 0; i < COUNT_OF(magic); i++)
        if (span_starts(base64, span_str(magic[i])))
            return true;
    return false;
}

static void put_text_item(struct buf *out, struct span raw_string)
{
    buf_str(out, "{\"type\":\"text\",\"text\":");
    buf_span(out, raw_string);
    buf_char(out, '}');
}

/* Append valid JSON without the white space between its tokens. */
static void put_compact(struct buf *out, struct span json)
{
    bool in_string = false;

    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r'))
            continue;
        buf_char(out, c);
        if (in_string && c == '\\')
            buf_char(out, json.p[++i]);
        else if (c == '"')
            in_string = !in_string;
    }
}

/* Append a text item whose text is the JSON of a value. */
static void put_json_item(struct buf *out, struct span value)
{
    BUF_SCOPED compact = {0};

    put_compact(&compact, value);
    buf_str(out, "{\"type\":\"text\",\"text\":");
    json_quote(out, buf_view(&compact));
    buf_char(out, '}');
}

/* A data: URL is cut into media type and base64; data that is no image becomes a text. */
static void put_image(struct buf *out, struct span item)
{
    struct json_slot data = json_get(item, "data");
    BUF_SCOPED scratch = {0};

    if (data.type != JSON_STRING) {
        buf_span(out, item);
        return;
    }
    struct span text = json_text(data.value, &scratch);
    size_t comma = span_find(text, ',');
    struct span head = span_cut(text, 0, comma);
    bool is_url = span_starts(text, SPAN("data:")) && comma < text.n;
    struct span bytes = is_url ? span_from(text, comma + 1) : text;

    if (!looks_like_image(bytes)) {
        put_text_item(out, data.value);
    } else if (is_url) {
        struct span mime = span_from(span_cut(head, 0, span_find(head, ';')), 5);
        buf_str(out, "{\"type\":\"image\"");
        json_out_text(out, "data", bytes);
        json_out_text(out, "mimeType", mime);
        buf_char(out, '}');
    } else {
        buf_span(out, item);
    }
}

static void put_member(struct buf *out, struct span item, const char *name)
{
    struct json_slot slot = json_get(item, name);

    if (slot.type != JSON_NONE)
        json_out_raw(out, NULL, slot.member);
}

/* MCP has the members of a resource one level deeper; without contents it is a resource_link. */
static void put_resource(struct buf *out, struct span item)
{
    struct json_slot uri = json_get(item, "uri");
    bool full =
        json_get(item, "text").type == JSON_STRING || json_get(item, "blob").type == JSON_STRING;

    if (json_get(item, "resource").type == JSON_OBJECT || uri.type != JSON_STRING) {
        buf_span(out, item);
        return;
    }
    buf_str(out, full ? "{\"type\":\"resource\",\"resource\":{" : "{\"type\":\"resource_link\",");
    buf_span(out, uri.member);
    if (!full)
        json_out_raw(out, "name", uri.value);
    put_member(out, item, "mimeType");
    put_member(out, item, "text");
    put_member(out, item, "blob");
    buf_str(out, full ? "}}" : "}");
}

static void put_item(struct buf *out, struct span item)
{
    struct json_slot type = json_get(item, "type");

    if (json_string_is(type.value, SPAN("image"))) {
        put_image(out, item);
    } else if (json_string_is(type.value, SPAN("resource"))) {
        put_resource(out, item);
    } else if (json_string_is(type.value, SPAN("json"))) {
        struct json_slot data = json_get(item, "data");
        put_json_item(out, data.type == JSON_NONE ? SPAN("null") : data.value);
    } else {
        buf_span(out, item);
    }
}

static bool is_content(struct json_slot content)
{
    struct json_iter it = json_iter(content.value);

    if (content.type != JSON_ARRAY)
        return false;
    while (json_next(&it))
        if (it.type != JSON_OBJECT || json_get(it.value, "type").type != JSON_STRING)
            return false;
    return true;
}

bool result_put(struct buf *out, struct span result, bool structured)
{
    bool object = json_type_of(result) == JSON_OBJECT;
    struct json_slot content = object ? json_get(result, "content") : (struct json_slot){0};

    if (!is_content(content)) {
        buf_str(out, "{\"content\":[");
        put_json_item(out, result);
        buf_char(out, ']');
        if (object && structured)
            json_out_raw(out, "structuredContent", result);
        buf_char(out, '}');
        return false;
    }
    struct json_iter members = json_iter(result);
    bool failed = false;
    buf_char(out, '{');
    while (json_next(&members)) {
        if (json_string_is(members.key, SPAN("isError")))
            failed = members.type == JSON_TRUE;
        if (!json_string_is(members.key, SPAN("content"))) {
            json_out_raw(out, NULL, members.member);
            continue;
        }
        struct json_iter items = json_iter(members.value);
        json_out_open(out, "content", '[');
        while (json_next(&items)) {
            json_out(out, NULL);
            put_item(out, items.value);
        }
        buf_char(out, ']');
    }
    buf_char(out, '}');
    return failed;
}

/* --- errors --- */

void result_put_error(struct buf *out, struct span error)
{
    struct json_slot code = json_get(error, "code"), message = json_get(error, "message");
    BUF_SCOPED scratch = {0};
    int64_t number;
    int mapped = RPC_INTERNAL_ERROR;

    if (code.type == JSON_STRING)
        mapped = code_of_word(json_text(code.value, &scratch));
    else if (code.type == JSON_NUMBER && json_int(code.value, &number) &&
             (number == RPC_METHOD_NOT_FOUND || number == RPC_INVALID_PARAMS))
        mapped = (int)number;
    buf_printf(out, "{\"code\":%d", mapped);
    json_out_raw(out, "message",
                 message.type == JSON_STRING ? message.value
                                             : SPAN("\"the page reported an error\""));
    if (code.type != JSON_NONE) {
        json_out_open(out, "data", '{');
        json_out_raw(out, "btcpCode", code.value);
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

void result_put_failure(struct buf *out, const char *code, struct span message)
{
    buf_printf(out, "{\"code\":%d", code_of_word(span_str(code)));
    json_out_text(out, "message", message);
    buf_printf(out, ",\"data\":{\"btcpCode\":\"%s\"}}", code);
}
