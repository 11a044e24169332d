/* Converts RockBot records to MCP: tools, prompts and resources for the catalog, and the results of
 * calls. Called by remote.c and remote_calls.c. */
#include "rockbot/proxy_parts.h"
#include "wire/json_out.h"

/* The schema of a tool that was announced without one. */
static const char anything[] = "{\"type\":\"object\",\"properties\":{}}";

/* Append ,"key":value when there is a value; returns the place of the value. */
static struct cut put_member(struct buf *out, const char *key, const struct json_slot *slot)
{
    if (slot->type == JSON_NONE)
        return (struct cut){0, 0};
    json_out(out, key);
    struct cut cut = {out->n, slot->value.n};
    buf_span(out, slot->value);
    return cut;
}

/* The JSON inside a text; empty when the text is no JSON of this type. */
static struct span json_inside(const struct json_slot *slot, enum json_type wanted,
                               struct buf *scratch)
{
    struct span text = rockbot_text(slot, scratch);
    enum json_type type = JSON_NONE;

    if (!text.n || json_skim(text, NULL, NULL, &type, NULL) < 0 || type != wanted)
        return SPAN_EMPTY;
    return text;
}

/* --- the catalog --- */

static void put_schema(struct buf *out, const struct json_slot *slot)
{
    BUF_SCOPED scratch = {0}, line = {0};
    struct span schema = json_inside(slot, JSON_OBJECT, &scratch);
    struct json_slot type = {0};

    if (schema.n) {
        json_one_line(&line, schema);
        type = json_get(buf_view(&line), "type");
    }
    json_out(out, "inputSchema");
    if (json_string_is(type.value, SPAN("object")))
        buf_span(out, buf_view(&line));
    else if (schema.n && type.type == JSON_NONE)
        json_insert(out, buf_view(&line), SPAN("\"type\":\"object\""));
    else
        buf_str(out, anything);
}

/* A name may come twice: views take the first. */
static void add(struct catalog *c, enum item_kind kind, struct item *item,
                const struct json_slot *name, const struct buf *raw)
{
    BUF_SCOPED scratch = {0};

    item->name = rockbot_text(name, &scratch);
    item->raw = buf_view(raw);
    if (item->name.n && c->n[kind] < REMOTE_ITEMS_MAX)
        catalog_add(c, kind, item);
}

void remote_add_tool(struct catalog *c, struct span tool)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct item item = {0};
    BUF_SCOPED raw = {0};
    struct err err;

    if (rockbot_read(ROCKBOT_A_TOOL, tool, in, &err) < 0)
        return;
    buf_char(&raw, '{');
    item.name_at = put_member(&raw, "name", &in[TOOL_NAME]);
    item.description_at = put_member(&raw, "description", &in[TOOL_DESCRIPTION]);
    put_schema(&raw, &in[TOOL_SCHEMA]);
    buf_char(&raw, '}');
    add(c, ITEM_TOOL, &item, &in[TOOL_NAME], &raw);
}

static void put_arguments(struct buf *out, struct span arguments)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct json_iter it = json_iter(arguments);
    struct err err;

    json_out_open(out, "arguments", '[');
    while (json_next(&it)) {
        if (rockbot_read(ROCKBOT_AN_ARGUMENT, it.value, in, &err) < 0)
            continue;
        json_out_open(out, NULL, '{');
        put_member(out, "name", &in[ARGUMENT_NAME]);
        put_member(out, "description", &in[ARGUMENT_DESCRIPTION]);
        put_member(out, "required", &in[ARGUMENT_REQUIRED]);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void remote_add_prompt(struct catalog *c, struct span prompt)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct item item = {0};
    BUF_SCOPED raw = {0};
    struct err err;

    if (rockbot_read(ROCKBOT_A_PROMPT, prompt, in, &err) < 0)
        return;
    buf_char(&raw, '{');
    item.name_at = put_member(&raw, "name", &in[A_PROMPT_NAME]);
    item.description_at = put_member(&raw, "description", &in[A_PROMPT_DESCRIPTION]);
    put_arguments(&raw, in[A_PROMPT_ARGUMENTS].value);
    buf_char(&raw, '}');
    add(c, ITEM_PROMPT, &item, &in[A_PROMPT_NAME], &raw);
}

void remote_add_resource(struct catalog *c, struct span resource, enum item_kind kind)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct item item = {0};
    BUF_SCOPED raw = {0};
    struct err err;

    if (rockbot_read(ROCKBOT_A_RESOURCE, resource, in, &err) < 0)
        return;
    buf_char(&raw, '{');
    item.name_at =
        put_member(&raw, kind == ITEM_TEMPLATE ? "uriTemplate" : "uri", &in[A_RESOURCE_URI]);
    /* A name is required in MCP, but not on the bus. */
    put_member(&raw, "name",
               &in[in[A_RESOURCE_NAME].type == JSON_NONE ? A_RESOURCE_URI : A_RESOURCE_NAME]);
    put_member(&raw, "title", &in[A_RESOURCE_TITLE]);
    item.description_at = put_member(&raw, "description", &in[A_RESOURCE_DESCRIPTION]);
    put_member(&raw, "mimeType", &in[A_RESOURCE_MIME]);
    if (kind == ITEM_RESOURCE)
        put_member(&raw, "size", &in[A_RESOURCE_SIZE]);
    buf_char(&raw, '}');
    add(c, kind, &item, &in[A_RESOURCE_URI], &raw);
}

/* --- answers --- */

static void put_text_block(struct buf *out, const struct json_slot *text)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "type", "text");
    json_out_raw(out, "text", text->type == JSON_STRING ? text->value : SPAN("\"\""));
    buf_char(out, '}');
}

static void put_resource_block(struct buf *out, const struct json_slot *in)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "type", "resource");
    json_out_open(out, "resource", '{');
    put_member(out, "uri", &in[BLOCK_URI]);
    put_member(out, "mimeType", &in[BLOCK_MIME]);
    put_member(out, in[BLOCK_DATA].type == JSON_NONE ? "text" : "blob",
               &in[in[BLOCK_DATA].type == JSON_NONE ? BLOCK_TEXT : BLOCK_DATA]);
    buf_str(out, "}}");
}

/* A block of a kind that MCP knows keeps its kind; any other becomes a text. */
static void put_block(struct buf *out, const struct json_slot *in)
{
    struct span type = in[BLOCK_TYPE].value;
    bool has_data = in[BLOCK_DATA].type != JSON_NONE, has_text = in[BLOCK_TEXT].type != JSON_NONE;

    if (has_data && in[BLOCK_MIME].type != JSON_NONE &&
        (json_string_is(type, SPAN("image")) || json_string_is(type, SPAN("audio")))) {
        json_out_open(out, NULL, '{');
        put_member(out, "type", &in[BLOCK_TYPE]);
        put_member(out, "data", &in[BLOCK_DATA]);
        put_member(out, "mimeType", &in[BLOCK_MIME]);
        buf_char(out, '}');
    } else if (json_string_is(type, SPAN("resource")) && in[BLOCK_URI].type != JSON_NONE &&
               (has_data || has_text)) {
        put_resource_block(out, in);
    } else {
        put_text_block(out, &in[has_text ? BLOCK_TEXT : BLOCK_URI]);
    }
}

static void put_blocks(struct buf *out, const struct json_slot *in)
{
    struct json_slot block[ROCKBOT_MAX_MEMBERS];
    struct json_iter it = json_iter(in[RESULT_BLOCKS].value);
    struct err err;
    size_t n = 0;

    while (json_next(&it)) {
        if (rockbot_read(ROCKBOT_A_BLOCK, it.value, block, &err) < 0)
            continue;
        n++;
        put_block(out, block);
    }
    if (!n && in[RESULT_CONTENT].type != JSON_NONE)
        put_text_block(out, &in[RESULT_CONTENT]);
}

bool remote_put_result(struct buf *out, struct span body, bool *is_error, struct buf *why)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS];
    struct err err;

    if (rockbot_read(ROCKBOT_RESULT, body, in, &err) < 0) {
        buf_str(why, err.text);
        return false;
    }
    *is_error = in[RESULT_IS_ERROR].type == JSON_TRUE;
    buf_str(out, "{\"content\":[");
    put_blocks(out, in);
    buf_char(out, ']');
    json_out_bool(out, "isError", *is_error);
    buf_char(out, '}');
    if (*is_error && in[RESULT_CONTENT].type == JSON_STRING)
        json_unescape(why, in[RESULT_CONTENT].value);
    return true;
}

/* Answers on the manage topic have a member for errors. */
static bool is_fine(int rc, const struct err *err, const struct json_slot *error, struct buf *why)
{
    if (rc < 0)
        buf_str(why, err->text);
    else if (error->type == JSON_STRING)
        json_unescape(why, error->value);
    return rc >= 0 && error->type != JSON_STRING;
}

static void put_message(struct buf *out, const struct json_slot *in)
{
    const struct json_slot *type = &in[MESSAGE_CONTENT_TYPE];
    BUF_SCOPED scratch = {0};
    struct span block = SPAN_EMPTY;

    /* Content other than text comes as the JSON of its block. */
    if (type->type == JSON_STRING && !json_string_is(type->value, SPAN("text")))
        block = json_inside(&in[MESSAGE_CONTENT], JSON_OBJECT, &scratch);
    json_out_open(out, NULL, '{');
    put_member(out, "role", &in[MESSAGE_ROLE]);
    json_out(out, "content");
    if (block.n)
        json_one_line(out, block);
    else
        put_text_block(out, &in[MESSAGE_CONTENT]);
    buf_char(out, '}');
}

bool remote_put_prompt(struct buf *out, struct span body, struct buf *why)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS], message[ROCKBOT_MAX_MEMBERS];
    struct err err;

    if (!is_fine(rockbot_read(ROCKBOT_PROMPT, body, in, &err), &err, &in[PROMPT_ERROR], why))
        return false;
    buf_char(out, '{');
    put_member(out, "description", &in[PROMPT_DESCRIPTION]);
    json_out_open(out, "messages", '[');
    for (struct json_iter it = json_iter(in[PROMPT_MESSAGES].value); json_next(&it);) {
        if (rockbot_read(ROCKBOT_A_MESSAGE, it.value, message, &err) >= 0)
            put_message(out, message);
    }
    buf_str(out, "]}");
    return true;
}

/* A blob stays on the bridge's machine; the answer has only its path, which becomes a text. */
static void put_content(struct buf *out, const struct json_slot *in)
{
    BUF_SCOPED scratch = {0};

    json_out_open(out, NULL, '{');
    put_member(out, "uri", &in[CONTENT_URI]);
    if (in[CONTENT_TEXT].type != JSON_NONE) {
        put_member(out, "mimeType", &in[CONTENT_MIME]);
        put_member(out, "text", &in[CONTENT_TEXT]);
    } else {
        BUF_SCOPED text = {0};
        buf_span(&text, rockbot_text(&in[CONTENT_NOTE], &scratch));
        if (in[CONTENT_PATH].type != JSON_NONE) {
            scratch.n = 0;
            buf_str(&text, text.n ? "\n" : "");
            buf_str(&text, "kept on the bridge's machine as ");
            buf_span(&text, rockbot_text(&in[CONTENT_PATH], &scratch));
        }
        json_out_str(out, "mimeType", "text/plain");
        json_out_text(out, "text", buf_view(&text));
    }
    buf_char(out, '}');
}

bool remote_put_contents(struct buf *out, struct span body, struct buf *why)
{
    struct json_slot in[ROCKBOT_MAX_MEMBERS], content[ROCKBOT_MAX_MEMBERS];
    struct err err;

    if (!is_fine(rockbot_read(ROCKBOT_RESOURCE, body, in, &err), &err, &in[RESOURCE_ERROR], why))
        return false;
    buf_str(out, "{\"contents\":[");
    for (struct json_iter it = json_iter(in[RESOURCE_CONTENTS].value); json_next(&it);) {
        if (rockbot_read(ROCKBOT_A_CONTENT, it.value, content, &err) >= 0)
            put_content(out, content);
    }
    buf_str(out, "]}");
    return true;
}
