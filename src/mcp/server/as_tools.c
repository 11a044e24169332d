/* Tools made of a server's resources and prompts: their schemas, calls turned into requests,
 * results turned back. Called by lists.c, upstream_calls.c and provider.c. */
#include "mcp/server/as_tools.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/tool_call.h"
#include "wire/json_out.h"

/* How many resources the description of read_resource lists, and in about how many bytes. */
enum { MAX_SHOWN = 20, MAX_SHOWN_BYTES = 2000 };

struct made_tool {
    enum op op;
    char *prompt; /* raw name, or NULL */
};

/* --- making --- */

void as_tools_fini(struct mcp_provider *p)
{
    size_t at = 0;
    void *value;

    while (map_next(&p->made, &at, NULL, &value)) {
        mem_free(((struct made_tool *)value)->prompt);
        mem_free(value);
    }
    map_fini(&p->made);
    p->made = (struct map){0};
}

static void make_tool(struct mcp_provider *p, struct span own, struct span raw, enum op op,
                      struct span prompt)
{
    struct catalog *c = p->fetching;
    size_t before = c->n[ITEM_TOOL];

    if (map_get(&p->made, own)) {
        log_info(p->alias, "has a tool '" SPAN_FMT "' already: no second one is made",
                 SPAN_ARG(own));
        return;
    }
    lists_add_item(p, ITEM_TOOL, raw);
    if (c->n[ITEM_TOOL] == before)
        return; /* the configuration hides the tool */
    struct item *item = &c->items[ITEM_TOOL][before];
    item->flags |= ITEM_MADE;
    if (prompt.n) {
        BUF_SCOPED label = {0};
        json_unescape(&label, prompt);
        item->label = arena_span(&c->arena, buf_view(&label));
    }
    struct made_tool *t = MEM_NEW(struct made_tool);
    t->op = op;
    t->prompt = prompt.n ? mem_span(prompt) : NULL;
    map_put(&p->made, own, t);
}

/* Append `intro` and "uri (name), ..." for the first items of this kind. */
static void put_addresses(struct buf *out, const struct catalog *c, enum item_kind kind,
                          const char *intro)
{
    for (size_t i = 0; i < c->n[kind]; i++) {
        const struct item *item = &c->items[kind][i];
        struct json_slot name = json_get(item->raw, "name");
        if (i == MAX_SHOWN || out->n > MAX_SHOWN_BYTES) {
            buf_str(out, " and more");
            return;
        }
        buf_str(out, i ? ", " : intro);
        buf_span(out, item->name);
        if (name.type != JSON_STRING)
            continue;
        buf_str(out, " (");
        json_unescape(out, name.value);
        buf_char(out, ')');
    }
}

static void make_reader(struct mcp_provider *p)
{
    BUF_SCOPED text = {0}, raw = {0};

    buf_printf(&text, "Read a resource of the server '%s'.", p->alias);
    put_addresses(&text, p->fetching, ITEM_RESOURCE, " There are: ");
    put_addresses(&text, p->fetching, ITEM_TEMPLATE, "; by template: ");
    buf_str(&raw, "{\"name\":\"read_resource\",\"description\":");
    json_quote(&raw, buf_view(&text));
    buf_str(&raw, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"uri\":{\"type\":"
                  "\"string\",\"description\":\"Address of the resource\"}},\"required\":[\"uri\"]"
                  "},\"annotations\":{\"readOnlyHint\":true}}");
    make_tool(p, SPAN("read_resource"), buf_view(&raw), OP_READ_RESOURCE, SPAN_EMPTY);
}

/* The arguments that a prompt lists, as properties of a schema. */
static void put_prompt_schema(struct buf *out, struct span prompt)
{
    struct json_iter it = json_iter(json_get(prompt, "arguments").value);
    BUF_SCOPED required = {0};
    const char *comma = "";

    buf_str(out, "{\"type\":\"object\",\"properties\":{");
    while (json_next(&it)) {
        struct json_slot name = json_get(it.value, "name");
        struct json_slot description = json_get(it.value, "description");
        if (name.type != JSON_STRING)
            continue;
        buf_str(out, comma);
        buf_span(out, name.value);
        buf_str(out, ":{\"type\":\"string\"");
        if (description.type == JSON_STRING)
            json_out_raw(out, "description", description.value);
        buf_char(out, '}');
        comma = ",";
        if (json_get(it.value, "required").type == JSON_TRUE) {
            buf_str(&required, required.n ? "," : "");
            buf_span(&required, name.value);
        }
    }
    buf_char(out, '}');
    if (required.n) {
        buf_str(out, ",\"required\":[");
        buf_span(out, buf_view(&required));
        buf_char(out, ']');
    }
    buf_char(out, '}');
}

/* Prompts may have any name; tools may not. */
static void put_tool_name(struct buf *out, struct span prompt)
{
    buf_str(out, "get_prompt_");
    for (size_t i = 0; i < prompt.n; i++)
        buf_char(out, ascii_is_word(prompt.p[i], "_-.") ? prompt.p[i] : '-');
}

static void make_getter(struct mcp_provider *p, const struct item *prompt)
{
    struct json_slot description = json_get(prompt->raw, "description");
    BUF_SCOPED own = {0}, raw = {0};

    put_tool_name(&own, prompt->name);
    buf_str(&raw, "{\"name\":");
    json_quote(&raw, buf_view(&own));
    buf_str(&raw, ",\"description\":");
    if (description.type == JSON_STRING)
        buf_span(&raw, description.value);
    else
        buf_printf(&raw, "\"A prompt of the server '%s'\"", p->alias);
    buf_str(&raw, ",\"inputSchema\":");
    put_prompt_schema(&raw, prompt->raw);
    buf_str(&raw, ",\"annotations\":{\"readOnlyHint\":true}}");
    make_tool(p, buf_view(&own), buf_view(&raw), OP_GET_PROMPT,
              span_cut(prompt->raw, prompt->name_at.at, prompt->name_at.n));
}

void as_tools_make(struct mcp_provider *p)
{
    static struct made_tool not_made = {.op = OP_CALL_TOOL};
    const struct catalog *c = p->fetching;
    size_t listed = c->n[ITEM_TOOL];

    as_tools_fini(p);
    if (!p->extras.resources_as_tools && !p->extras.prompts_as_tools)
        return;
    for (size_t i = 0; i < listed; i++)
        map_put(&p->made, c->items[ITEM_TOOL][i].own, &not_made);
    if (p->extras.resources_as_tools && (p->offers & OFFERS_RESOURCES))
        make_reader(p);
    for (size_t i = 0; p->extras.prompts_as_tools && i < c->n[ITEM_PROMPT]; i++)
        make_getter(p, &c->items[ITEM_PROMPT][i]);
    for (size_t i = 0; i < listed; i++)
        map_del(&p->made, c->items[ITEM_TOOL][i].own);
}

/* --- calling --- */

const struct made_tool *as_tools_find(const struct mcp_provider *p, const struct request *r)
{
    return p->made.n && r->op == OP_CALL_TOOL ? map_get(&p->made, r->name) : NULL;
}

enum op as_tools_op(const struct made_tool *t)
{
    return t->op;
}

/* Arguments of prompts are strings: another value is given as the text of its JSON. */
static void put_texts(struct buf *out, struct json_slot arguments)
{
    struct json_iter it = json_iter(arguments.value);
    const char *comma = "";

    buf_char(out, '{');
    while (arguments.type == JSON_OBJECT && json_next(&it)) {
        if (it.type == JSON_NULL)
            continue;
        buf_str(out, comma);
        buf_span(out, it.key);
        buf_char(out, ':');
        if (it.type == JSON_STRING)
            buf_span(out, it.value);
        else
            json_quote(out, it.value);
        comma = ",";
    }
    buf_char(out, '}');
}

const char *as_tools_redirect(const struct made_tool *t, struct request *r, struct buf *params)
{
    struct json_slot arguments = json_get(r->params, "arguments");
    BUF_SCOPED members = {0}, text = {0};
    struct json_slot uri = json_get(arguments.value, "uri");
    struct span name = t->prompt ? span_str(t->prompt) : uri.value;

    if (t->op == OP_READ_RESOURCE && uri.type != JSON_STRING)
        return "read_resource needs 'uri', the address of a resource";
    buf_str(&members, t->op == OP_READ_RESOURCE ? "\"uri\":" : "\"name\":");
    buf_span(&members, name);
    if (t->op == OP_GET_PROMPT) {
        buf_str(&members, ",\"arguments\":");
        put_texts(&members, arguments);
    }
    r->op = t->op;
    tool_redirect(r, buf_view(&members), params);
    /* The unescaped name is put after the params in the same buffer, to live as long as they do. */
    json_unescape(&text, name);
    size_t n = params->n;
    buf_span(params, buf_view(&text));
    r->params = span_of(params->p, n);
    r->name = span_of(params->p + n, text.n);
    return NULL;
}

/* --- results --- */

static void put_comma(struct buf *out, size_t start)
{
    if (out->n > start)
        buf_char(out, ',');
}

static void put_text(struct buf *out, const char *role, struct span raw)
{
    BUF_SCOPED text = {0};

    if (role)
        buf_printf(&text, "%s: ", role);
    json_unescape(&text, raw);
    buf_str(out, "{\"type\":\"text\",\"text\":");
    json_quote(out, buf_view(&text));
    buf_char(out, '}');
}

/* One of the contents of a resource: text, a picture, a sound, or else the resource itself. */
static void put_resource(struct buf *out, struct span content)
{
    struct json_slot text = json_get(content, "text"), blob = json_get(content, "blob");
    struct json_slot type = json_get(content, "mimeType");
    bool image = span_starts(type.value, SPAN("\"image/"));
    bool audio = span_starts(type.value, SPAN("\"audio/"));

    if (text.type == JSON_STRING) {
        put_text(out, NULL, text.value);
    } else if (blob.type == JSON_STRING && (image || audio)) {
        buf_printf(out, "{\"type\":\"%s\",\"mimeType\":", image ? "image" : "audio");
        buf_span(out, type.value);
        json_out_raw(out, "data", blob.value);
        buf_char(out, '}');
    } else {
        buf_str(out, "{\"type\":\"resource\",\"resource\":");
        buf_span(out, content);
        buf_char(out, '}');
    }
}

static void put_resources(struct buf *out, struct span result)
{
    struct json_iter it = json_iter(json_get(result, "contents").value);
    size_t start = out->n;

    while (json_next(&it)) {
        if (it.type != JSON_OBJECT)
            continue;
        put_comma(out, start);
        put_resource(out, it.value);
    }
}

/* Does the prompt have messages of the assistant? Only then each text begins with its role. */
static bool is_dialogue(struct span messages)
{
    struct json_iter it = json_iter(messages);

    while (json_next(&it))
        if (json_string_is(json_get(it.value, "role").value, SPAN("assistant")))
            return true;
    return false;
}

/* Contents of prompts are valid contents of tools; texts of a dialogue begin with their role. */
static void put_messages(struct buf *out, struct span result)
{
    struct span messages = json_get(result, "messages").value;
    struct json_iter it = json_iter(messages);
    size_t start = out->n;
    bool dialogue = is_dialogue(messages);

    while (json_next(&it)) {
        struct json_slot content = json_get(it.value, "content");
        struct json_slot text = json_get(content.value, "text");
        bool assistant = json_string_is(json_get(it.value, "role").value, SPAN("assistant"));
        if (content.type != JSON_OBJECT)
            continue;
        put_comma(out, start);
        if (text.type == JSON_STRING)
            put_text(out, dialogue ? (assistant ? "assistant" : "user") : NULL, text.value);
        else
            buf_span(out, content.value);
    }
}

static bool asks_for_input(struct span result)
{
    return json_string_is(json_get(result, "resultType").value, SPAN("input_required"));
}

struct outcome as_tools_outcome(enum op op, const struct outcome *outcome, struct buf *body)
{
    struct outcome as = *outcome;

    if (outcome->kind == OUTCOME_FAILED ||
        (outcome->kind == OUTCOME_RESULT && asks_for_input(outcome->body)))
        return as;
    if (outcome->kind == OUTCOME_ERROR) {
        tool_put_failure(body, outcome->text);
        as.is_error = true;
    } else {
        buf_str(body, "{\"content\":[");
        if (op == OP_READ_RESOURCE)
            put_resources(body, outcome->body);
        else
            put_messages(body, outcome->body);
        buf_str(body, "]}");
    }
    as.kind = OUTCOME_RESULT;
    as.body = buf_view(body);
    return as;
}
