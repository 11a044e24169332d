/* Collects the names, counts and fingerprints of one server's view, and writes tools, prompts and
 * resources as RockBot records. Called by worker_announce.c and worker_manage.c. */
#include "rockbot/surface.h"

#include "base/mem.h"
#include "rockbot/content.h"
#include "rockbot/rockbot.h"

#include <stdlib.h>

enum { SUMMARY_NAMES = 10, SUMMARY_BYTES = 500 };

static void get(struct buf *out, struct span object, const char *key)
{
    struct json_slot slot = json_get(object, key);

    if (slot.type == JSON_STRING)
        json_unescape(out, slot.value);
}

static struct span schema_of(struct span tool)
{
    struct json_slot schema = json_get(tool, "inputSchema");

    return schema.type == JSON_OBJECT ? schema.value : SPAN_EMPTY;
}

/* --- the fingerprint of all lists --- */

static int by_name(const void *a, const void *b)
{
    const struct target *const *one = a, *const *other = b;

    return span_cmp((*one)->public_name, (*other)->public_name);
}

/* The items of the view sorted by name, because the order of a server's list does not matter. */
static const struct target **sorted(struct view *v, enum item_kind kind, size_t *n)
{
    const struct target **items;
    const struct target *t;

    for (*n = 0; view_item(v, kind, *n);)
        ++*n;
    items = mem_alloc((*n + 1) * sizeof(struct target *));
    for (size_t i = 0; (t = view_item(v, kind, i)) && i < *n; i++)
        items[i] = t;
    qsort(items, *n, sizeof(struct target *), by_name);
    return items;
}

static void put_unit(struct buf *text, struct span raw, const char *key)
{
    get(text, raw, key);
    buf_char(text, FINGERPRINT_UNIT);
}

static void put_prompt_text(struct buf *text, struct span raw)
{
    struct json_slot arguments = json_get(raw, "arguments");
    struct json_iter it = json_iter(arguments.type == JSON_ARRAY ? arguments.value : SPAN("[]"));

    put_unit(text, raw, "description");
    while (json_next(&it)) {
        if (it.type != JSON_OBJECT)
            continue;
        put_unit(text, it.value, "name");
        put_unit(text, it.value, "description");
        buf_char(text, json_get(it.value, "required").type == JSON_TRUE ? '1' : '0');
        buf_char(text, FINGERPRINT_UNIT);
    }
}

static void put_items_text(struct buf *text, struct view *v, enum item_kind kind)
{
    size_t n;
    const struct target **items = sorted(v, kind, &n);

    buf_char(text, FINGERPRINT_GROUP);
    for (size_t i = 0; i < n; i++) {
        buf_span(text, items[i]->public_name);
        buf_char(text, FINGERPRINT_UNIT);
        if (kind == ITEM_PROMPT) {
            put_prompt_text(text, items[i]->item->raw);
        } else {
            put_unit(text, items[i]->item->raw, "name");
            put_unit(text, items[i]->item->raw, "description");
        }
        buf_char(text, FINGERPRINT_RECORD);
    }
    mem_free(items);
}

static void read_tools(struct surface *s, struct view *v, struct buf *text)
{
    size_t n;
    const struct target **tools = sorted(v, ITEM_TOOL, &n);

    buf_char(&s->tool_prints, '{');
    for (size_t i = 0; i < n; i++) {
        char print[FINGERPRINT_SIZE];
        BUF_SCOPED description = {0};
        struct span raw = tools[i]->item->raw;
        get(&description, raw, "description");
        fingerprint_of_tool(print, tools[i]->public_name, buf_view(&description), schema_of(raw));
        buf_str(&s->tool_prints, i ? "," : "");
        json_quote(&s->tool_prints, tools[i]->public_name);
        buf_printf(&s->tool_prints, ":\"%s\"", print);
        buf_str(text, print);
        buf_char(text, FINGERPRINT_RECORD);
    }
    buf_char(&s->tool_prints, '}');
    mem_free(tools);
}

/* --- names --- */

static size_t read_names(struct buf *out, struct view *v, enum item_kind kind)
{
    const struct target *t;
    size_t n = 0;

    buf_char(out, '[');
    for (; (t = view_item(v, kind, n)); n++) {
        BUF_SCOPED name = {0};
        /* Agents show resources by name, and read them by the uri from the list of resources. */
        if (kind == ITEM_RESOURCE)
            get(&name, t->item->raw, "name");
        buf_str(out, n ? "," : "");
        json_quote(out, name.n ? buf_view(&name) : t->public_name);
    }
    buf_char(out, ']');
    return n;
}

void surface_read(struct surface *s, struct view *v)
{
    BUF_SCOPED text = {0};
    const struct target *t;

    *s = (struct surface){0};
    s->n_tools = read_names(&s->tools, v, ITEM_TOOL);
    s->n_prompts = read_names(&s->prompts, v, ITEM_PROMPT);
    s->n_resources = read_names(&s->resources, v, ITEM_RESOURCE);
    for (size_t i = 0; i < SUMMARY_NAMES && (t = view_item(v, ITEM_TOOL, i)); i++) {
        buf_str(&s->first_tools, i ? ", " : "");
        content_put_line(&s->first_tools, t->public_name);
    }
    read_tools(s, v, &text);
    put_items_text(&text, v, ITEM_PROMPT);
    put_items_text(&text, v, ITEM_RESOURCE);
    put_items_text(&text, v, ITEM_TEMPLATE);
    fingerprint_of(s->fingerprint, buf_view(&text));
}

void surface_fini(struct surface *s)
{
    buf_fini(&s->tools);
    buf_fini(&s->prompts);
    buf_fini(&s->resources);
    buf_fini(&s->tool_prints);
    buf_fini(&s->first_tools);
}

/* --- records --- */

/* The server's instructions or description; else its first tools. */
static void put_summary(struct buf *out, const struct surface *s,
                        const struct bus_server_facts *facts)
{
    struct span own = facts->instructions.n ? facts->instructions : facts->description;

    if (own.n) {
        content_put_line(out, content_cut(own, SUMMARY_BYTES));
        buf_str(out, own.n > SUMMARY_BYTES ? "..." : "");
        return;
    }
    buf_printf(out, "Provides %zu tool(s)", s->n_tools);
    if (s->n_tools)
        buf_printf(out, ": " SPAN_FMT "%s", SPAN_ARG(buf_view(&s->first_tools)),
                   s->n_tools > SUMMARY_NAMES ? ", ..." : "");
    buf_char(out, '.');
}

void surface_put_server(struct buf *out, const struct surface *s, const char *alias,
                        const struct bus_server_facts *facts, bool prints)
{
    BUF_SCOPED summary = {0}, n_tools = {0}, n_prompts = {0}, n_resources = {0};

    put_summary(&summary, s, facts);
    buf_u64(&n_tools, s->n_tools);
    buf_u64(&n_prompts, s->n_prompts);
    buf_u64(&n_resources, s->n_resources);
    rockbot_put(out, ROCKBOT_A_SERVER,
                (const struct span[ROCKBOT_MAX_MEMBERS]){
                    [SERVER_NAME] = span_str(alias),
                    [SERVER_DISPLAY] = facts->display_name,
                    [SERVER_SUMMARY] = buf_view(&summary),
                    [SERVER_N_TOOLS] = buf_view(&n_tools),
                    [SERVER_TOOLS] = buf_view(&s->tools),
                    [SERVER_N_PROMPTS] = buf_view(&n_prompts),
                    [SERVER_PROMPTS] = buf_view(&s->prompts),
                    [SERVER_N_RESOURCES] = buf_view(&n_resources),
                    [SERVER_RESOURCES] = buf_view(&s->resources),
                    [SERVER_ID] = facts->server_id,
                    [SERVER_FINGERPRINT] = span_str(s->fingerprint),
                    [SERVER_TOOL_FINGERPRINTS] = prints ? buf_view(&s->tool_prints) : SPAN_EMPTY,
                    [SERVER_VERSION] = facts->version,
                    [SERVER_IDENTITY] = facts->identity_hash,
                    [SERVER_HANDBACK] = facts->handback ? SPAN("true") : SPAN_EMPTY,
                });
}

void surface_put_tool(struct buf *out, const struct target *tool)
{
    BUF_SCOPED description = {0};

    get(&description, tool->item->raw, "description");
    rockbot_put(
        out, ROCKBOT_A_TOOL,
        (const struct span[ROCKBOT_MAX_MEMBERS]){[TOOL_NAME] = tool->public_name,
                                                 [TOOL_DESCRIPTION] = buf_view(&description),
                                                 [TOOL_SCHEMA] = schema_of(tool->item->raw)});
}

static void put_arguments(struct buf *out, struct span prompt)
{
    struct json_slot list = json_get(prompt, "arguments");
    struct json_iter it = json_iter(list.type == JSON_ARRAY ? list.value : SPAN("[]"));
    bool first = true;

    buf_char(out, '[');
    while (json_next(&it)) {
        BUF_SCOPED name = {0}, description = {0};
        if (it.type != JSON_OBJECT)
            continue;
        get(&name, it.value, "name");
        get(&description, it.value, "description");
        buf_str(out, first ? "" : ",");
        rockbot_put(out, ROCKBOT_AN_ARGUMENT,
                    (const struct span[ROCKBOT_MAX_MEMBERS]){
                        [ARGUMENT_NAME] = buf_view(&name),
                        [ARGUMENT_DESCRIPTION] = buf_view(&description),
                        [ARGUMENT_REQUIRED] = json_get(it.value, "required").type == JSON_TRUE
                                                  ? SPAN("true")
                                                  : SPAN_EMPTY});
        first = false;
    }
    buf_char(out, ']');
}

void surface_put_prompts(struct buf *out, struct view *v)
{
    const struct target *t;

    buf_char(out, '[');
    for (size_t i = 0; (t = view_item(v, ITEM_PROMPT, i)); i++) {
        BUF_SCOPED description = {0}, arguments = {0};
        get(&description, t->item->raw, "description");
        put_arguments(&arguments, t->item->raw);
        buf_str(out, i ? "," : "");
        rockbot_put(out, ROCKBOT_A_PROMPT,
                    (const struct span[ROCKBOT_MAX_MEMBERS]){
                        [A_PROMPT_NAME] = t->public_name,
                        [A_PROMPT_DESCRIPTION] = buf_view(&description),
                        [A_PROMPT_ARGUMENTS] = buf_view(&arguments)});
    }
    buf_char(out, ']');
}

void surface_put_resources(struct buf *out, struct view *v, enum item_kind kind)
{
    const struct target *t;

    buf_char(out, '[');
    for (size_t i = 0; (t = view_item(v, kind, i)); i++) {
        BUF_SCOPED name = {0}, title = {0}, description = {0}, mime = {0};
        struct json_slot size = json_get(t->item->raw, "size");
        get(&name, t->item->raw, "name");
        get(&title, t->item->raw, "title");
        get(&description, t->item->raw, "description");
        get(&mime, t->item->raw, "mimeType");
        buf_str(out, i ? "," : "");
        rockbot_put(
            out, ROCKBOT_A_RESOURCE,
            (const struct span[ROCKBOT_MAX_MEMBERS]){
                [A_RESOURCE_URI] = t->public_name,
                [A_RESOURCE_NAME] = buf_view(&name),
                [A_RESOURCE_TITLE] = buf_view(&title),
                [A_RESOURCE_DESCRIPTION] = buf_view(&description),
                [A_RESOURCE_MIME] = buf_view(&mime),
                [A_RESOURCE_SIZE] = size.type == JSON_NUMBER ? size.value : SPAN_EMPTY,
                [A_RESOURCE_IS_TEMPLATE] = kind == ITEM_TEMPLATE ? SPAN("true") : SPAN_EMPTY});
    }
    buf_char(out, ']');
}
