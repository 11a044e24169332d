/* The index of find_tools, the calls that call_tool relays, and the provider that offers both. Made
 * by hub/graph/exposure.c; the router calls the verbs; admin/tools.c fills an index of its own. */
#include "mcp/search_provider.h"

#include "base/mem.h"
#include "core/forward.h"
#include "core/search.h"
#include "mcp/tool_call.h"
#include "wire/json.h"
#include "wire/json_out.h"

enum { DEFAULT_LIMIT = 10, MAX_LIMIT = 50, MAX_QUESTION = 1000, MAX_HINTS = 3 };
/* How deep a schema is searched for words; how many servers or tools a text for agents names. */
enum { SCHEMA_DEPTH = 4, MAX_NAMED = 40 };
enum { TWO_DAYS = 2 * 24 * 3600 * 1000 };

struct search_provider {
    struct provider core;
    struct view *full;
    unsigned offers;      /* SEARCH_OFFERS_ bits */
    struct search *index; /* NULL before the first search */
    uint64_t digest;      /* of the list that the index was made from */
};

static struct search_provider *of_peer(struct peer *self)
{
    return CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct search_provider, core);
}

/* --- the index --- */

static void put_text(struct buf *out, struct json_slot slot)
{
    if (slot.type != JSON_STRING)
        return;
    json_unescape(out, slot.value);
    buf_char(out, ' ');
}

/* Append titles, descriptions and property names of a schema. */
static void put_schema_text(struct buf *out, struct span schema, int depth)
{
    struct json_iter it = json_iter(schema);

    put_text(out, json_get(schema, "title"));
    put_text(out, json_get(schema, "description"));
    while (depth && json_next(&it)) {
        if (it.type != JSON_OBJECT)
            continue;
        if (json_string_is(it.key, SPAN("items")))
            put_schema_text(out, it.value, depth - 1);
        if (!json_string_is(it.key, SPAN("properties")))
            continue;
        struct json_iter property = json_iter(it.value);
        while (json_next(&property)) {
            put_text(out, (struct json_slot){.type = JSON_STRING, .value = property.key});
            if (property.type == JSON_OBJECT)
                put_schema_text(out, property.value, depth - 1);
        }
    }
}

void search_provider_add(struct search *index, struct span name, struct span raw)
{
    BUF_SCOPED description = {0}, details = {0};
    struct json_slot schema = json_get(raw, "inputSchema");

    put_text(&description, json_get(raw, "title"));
    put_text(&description, json_get(raw, "description"));
    if (schema.type == JSON_OBJECT)
        put_schema_text(&details, schema.value, SCHEMA_DEPTH);
    search_add(index,
               (const struct span[SEARCH_FIELDS]){[SEARCH_NAME] = name,
                                                  [SEARCH_DESCRIPTION] = buf_view(&description),
                                                  [SEARCH_DETAILS] = buf_view(&details)});
}

/* The index of the view's current tools: its documents are the view's items, in their order. */
static struct search *fresh_index(struct search_provider *s)
{
    uint64_t digest = view_digest(s->full, ITEM_TOOL);
    const struct target *t;

    if (s->index && s->digest == digest)
        return s->index;
    search_free(s->index);
    s->index = search_new();
    s->digest = digest;
    for (size_t i = 0; (t = view_item(s->full, ITEM_TOOL, i)); i++)
        search_provider_add(s->index, t->public_name, t->item->raw);
    search_finish(s->index);
    return s->index;
}

/* --- find_tools --- */

static void put_hit(struct buf *out, const struct target *t, double score)
{
    struct json_slot schema = json_get(t->item->raw, "inputSchema");
    struct json_slot description = json_get(t->item->raw, "description");

    buf_str(out, "{\"name\":");
    json_quote(out, t->public_name);
    if (description.type == JSON_STRING)
        json_out_raw(out, "description", description.value);
    json_out_raw(out, "inputSchema",
                 schema.type == JSON_OBJECT ? schema.value : SPAN("{\"type\":\"object\"}"));
    buf_printf(out, ",\"score\":%.3f}", score);
}

static void find_tools(struct search_provider *s, struct call *call, struct span arguments)
{
    struct json_slot query = json_get(arguments, "query"), limit = json_get(arguments, "limit");
    struct search_hit hits[MAX_LIMIT];
    BUF_SCOPED question = {0}, found = {0};
    int64_t wanted = DEFAULT_LIMIT;

    if (query.type != JSON_STRING) {
        tool_fail(call, "find_tools needs 'query', a text with what the tool should do");
        return;
    }
    if (limit.type != JSON_NONE && (!json_int(limit.value, &wanted) || wanted < 1)) {
        tool_fail(call, "'limit' must be a whole number from 1 on; at most 50 tools are found");
        return;
    }
    json_unescape(&question, query.value);
    size_t n = search_find(fresh_index(s), span_cut(buf_view(&question), 0, MAX_QUESTION), hits,
                           wanted < MAX_LIMIT ? (size_t)wanted : MAX_LIMIT);
    buf_str(&found, "{\"tools\":[");
    for (size_t i = 0; i < n; i++) {
        buf_str(&found, i ? "," : "");
        put_hit(&found, view_item(s->full, ITEM_TOOL, hits[i].document), hits[i].score);
    }
    buf_str(&found, "]}");
    tool_finish_structured(call, buf_view(&found));
}

/* --- call_tool --- */

/* The arguments for the tool. Models often send an object as a string: accept that as well. */
static bool read_arguments(struct json_slot given, struct buf *out)
{
    enum json_type type = JSON_NONE;

    if (given.type == JSON_STRING) {
        json_unescape(out, given.value);
        return json_skim(buf_view(out), NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT;
    }
    buf_span(out, given.type == JSON_OBJECT ? given.value : SPAN("{}"));
    return given.type == JSON_OBJECT || given.type == JSON_NULL || given.type == JSON_NONE;
}

static void call_tool(struct search_provider *s, struct call *call, const struct request *request,
                      struct span given)
{
    struct json_slot name = json_get(given, "name");
    BUF_SCOPED text = {0}, arguments = {0}, members = {0}, params = {0};

    if (name.type != JSON_STRING) {
        tool_fail(call, "call_tool needs 'name', the name of a tool as find_tools gives it");
    } else if (!read_arguments(json_get(given, "arguments"), &arguments)) {
        tool_fail(call, "'arguments' must be an object");
    } else {
        struct request inner = *request;
        inner.name = json_text(name.value, &text);
        buf_printf(&members, "\"name\":" SPAN_FMT ",\"arguments\":", SPAN_ARG(name.value));
        buf_span(&members, buf_view(&arguments));
        tool_redirect(&inner, buf_view(&members), &params);
        inner.name_at = (struct cut){1 + strlen("\"name\":"), name.value.n};
        forward_open(&s->core, call, s->full, &inner);
    }
}

/* --- the gateway's tools --- */

/* Is the provider a server as agents know it, and not a part of the bridge? */
static bool is_service(const struct provider *p)
{
    return !p->built_in || p->told_as;
}

static const struct provider *find_service(const struct search_provider *s, struct span name)
{
    const struct provider *p;

    for (size_t i = 0; (p = view_member(s->full, i)); i++)
        if (is_service(p) && span_eq_nocase(span_str(p->alias), name))
            return p;
    return NULL;
}

static void put_member(struct buf *out, const char *key, struct json_slot slot)
{
    buf_printf(out, ",\"%s\":", key);
    buf_span(out, slot.type == JSON_NONE ? SPAN("null") : slot.value);
}

/* The items of one kind that a service shows, as a list; `whole` with their schemas. */
static void put_items(struct buf *out, struct search_provider *s, const struct provider *p,
                      enum item_kind kind, bool whole)
{
    const struct target *t;
    const char *comma = "";

    buf_char(out, '[');
    for (size_t i = 0; (t = view_item(s->full, kind, i)); i++) {
        if (t->provider != p)
            continue;
        buf_printf(out, "%s{\"name\":", comma);
        json_quote(out, t->item->name);
        put_member(out, "description", json_get(t->item->raw, "description"));
        if (whole && kind == ITEM_TOOL)
            put_member(out, "inputSchema", json_get(t->item->raw, "inputSchema"));
        if (whole && kind == ITEM_PROMPT)
            put_member(out, "arguments", json_get(t->item->raw, "arguments"));
        if (kind == ITEM_TOOL)
            json_out_text(out, "wrapperName", t->public_name);
        buf_char(out, '}');
        comma = ",";
    }
    buf_char(out, ']');
}

static void put_service(struct buf *out, struct search_provider *s, const struct provider *p,
                        bool whole)
{
    buf_str(out, "{\"name\":");
    json_quote(out, span_str(p->alias));
    buf_printf(out,
               ",\"displayName\":null,\"description\":null,\"enabled\":true,\"available\":%s,"
               "\"hasSkillDocument\":false",
               provider_advertised(p) ? "true" : "false");
    if (whole && p->catalog && p->catalog->instructions.n)
        json_out_text(out, "remoteInstructions", p->catalog->instructions);
    buf_str(out, ",\"tools\":");
    put_items(out, s, p, ITEM_TOOL, whole);
    if (whole) {
        buf_str(out, ",\"prompts\":");
        put_items(out, s, p, ITEM_PROMPT, true);
    }
    buf_char(out, '}');
}

/* RockBot's gateway returns JSON as text content, and its users expect that. */
static void finish_text(struct call *call, struct span json)
{
    BUF_SCOPED result = {0};

    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, json);
    buf_str(&result, "}]}");
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
}

static void list_services(struct search_provider *s, struct call *call)
{
    const struct provider *p;
    BUF_SCOPED list = {0};

    buf_char(&list, '[');
    for (size_t i = 0; (p = view_member(s->full, i)); i++) {
        if (!is_service(p))
            continue;
        buf_str(&list, list.n > 1 ? "," : "");
        put_service(&list, s, p, false);
    }
    buf_char(&list, ']');
    finish_text(call, buf_view(&list));
}

static void fail_service(const struct search_provider *s, struct call *call, struct span name)
{
    const struct provider *p;
    const char *comma = "";
    BUF_SCOPED text = {0};

    buf_printf(&text, "there is no server '" SPAN_FMT "'. Servers: [", SPAN_ARG(name));
    for (size_t i = 0; (p = view_member(s->full, i)) && i < MAX_NAMED; i++) {
        if (!is_service(p))
            continue;
        buf_printf(&text, "%s%s", comma, p->alias);
        comma = ", ";
    }
    buf_str(&text, "]. Call again with one of these as serverName");
    tool_fail(call, buf_cstr(&text));
}

static void fail_tool(struct search_provider *s, struct call *call, const struct provider *p,
                      struct span name)
{
    const struct target *t;
    const char *comma = "";
    BUF_SCOPED text = {0};

    buf_printf(&text, "server '%s' has no tool '" SPAN_FMT "'. Its tools: [", p->alias,
               SPAN_ARG(name));
    for (size_t i = 0, n = 0; (t = view_item(s->full, ITEM_TOOL, i)) && n < MAX_NAMED; i++) {
        if (t->provider != p)
            continue;
        buf_printf(&text, "%s" SPAN_FMT, comma, SPAN_ARG(t->item->name));
        comma = ", ";
        n++;
    }
    buf_char(&text, ']');
    tool_fail(call, buf_cstr(&text));
}

static void invoke(struct search_provider *s, struct call *call, const struct request *request,
                   struct span given, const struct provider *p)
{
    struct json_slot name = json_get(given, "toolName");
    BUF_SCOPED text = {0};
    BUF_SCOPED arguments = {0};
    BUF_SCOPED members = {0};
    BUF_SCOPED params = {0};
    struct span wanted = json_text(name.value, &text);
    const struct target *t = NULL;

    for (size_t i = 0; name.type == JSON_STRING && (t = view_item(s->full, ITEM_TOOL, i)); i++)
        if (t->provider == p && span_eq(t->item->name, wanted))
            break;
    if (!t) {
        fail_tool(s, call, p, wanted);
    } else if (!read_arguments(json_get(given, "arguments"), &arguments)) {
        tool_fail(call, "'arguments' must be the tool's arguments, an object or an object as JSON "
                        "text");
    } else {
        struct request inner = *request;
        inner.name = t->public_name;
        json_out_text(&members, "name", t->public_name);
        size_t name_n = members.n - strlen("\"name\":");
        json_out_raw(&members, "arguments", buf_view(&arguments));
        tool_redirect(&inner, buf_view(&members), &params);
        inner.name_at = (struct cut){1 + strlen("\"name\":"), name_n};
        forward_open(&s->core, call, s->full, &inner);
    }
}

/* get_service_details and invoke_tool: both name a server. */
static void use_service(struct search_provider *s, struct call *call, const struct request *request,
                        struct span given)
{
    struct json_slot name = json_get(given, "serverName");
    BUF_SCOPED text = {0};
    BUF_SCOPED details = {0};
    struct span wanted = name.type == JSON_STRING ? json_text(name.value, &text) : SPAN_EMPTY;
    const struct provider *p = find_service(s, wanted);

    if (!p) {
        fail_service(s, call, wanted);
    } else if (span_is(request->name, "invoke_tool")) {
        invoke(s, call, request, given, p);
    } else {
        put_service(&details, s, p, true);
        finish_text(call, buf_view(&details));
    }
}

/* The model named a tool that does not exist: tell the model which names are similar. */
static void fail_unknown(struct search_provider *s, struct call *outer, struct span why,
                         struct span name)
{
    struct search_hit hits[MAX_HINTS];
    BUF_SCOPED text = {0};
    size_t n = search_find(fresh_index(s), span_cut(name, 0, MAX_QUESTION), hits, MAX_HINTS);

    buf_span(&text, why);
    for (size_t i = 0; i < n; i++) {
        buf_str(&text, i ? ", " : "; did you mean ");
        buf_span(&text, view_item(s->full, ITEM_TOOL, hits[i].document)->public_name);
    }
    buf_str(&text, n ? "? find_tools gives the names" : "; find_tools gives the names");
    tool_fail(outer, buf_cstr(&text));
}

/* --- verbs --- */

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct search_provider *s = of_peer(self);
    struct json_slot given = json_get(request->params, "arguments");
    struct span arguments = given.type == JSON_OBJECT ? given.value : SPAN("{}");

    if (request->op == OP_CALL_TOOL && span_is(request->name, "find_tools"))
        find_tools(s, call, arguments);
    else if (request->op == OP_CALL_TOOL && span_is(request->name, "list_services"))
        list_services(s, call);
    else if (request->op == OP_CALL_TOOL && !span_is(request->name, "call_tool"))
        use_service(s, call, request, arguments);
    else if (request->op == OP_CALL_TOOL)
        call_tool(s, call, request, arguments);
    else
        call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
}

static void on_done(struct peer *self, struct call *inner, const struct outcome *outcome)
{
    BUF_SCOPED name = {0};
    struct call *outer = forward_end(inner, &name);

    if (outer && outcome->kind == OUTCOME_FAILED && outcome->why == FAIL_UNKNOWN)
        fail_unknown(of_peer(self), outer, outcome->text, buf_view(&name));
    else if (outer)
        call_done(outer, outcome);
}

static const struct peer_verbs verbs = {.open = on_open,
                                        .answer = forward_answer,
                                        .cancel = forward_cancel,
                                        .event = forward_event,
                                        .ask = forward_ask,
                                        .done = on_done};

/* --- life --- */

static void put_servers(struct buf *out, const struct view *v)
{
    const struct provider *p;

    for (size_t i = 0; (p = view_member(v, i)) && i < MAX_NAMED; i++)
        buf_printf(out, "%s%s", i ? ", " : " Servers: ", p->alias);
    if (view_member(v, 0))
        buf_str(out, view_member(v, MAX_NAMED) ? " and more." : ".");
}

static void add_item(struct catalog *c, const char *name, struct span description,
                     const char *members, unsigned flags)
{
    BUF_SCOPED raw = {0};
    struct item item = {.name = span_str(name), .flags = flags};

    buf_str(&raw, "{\"name\":");
    item.name_at = (struct cut){raw.n, strlen(name) + 2};
    json_quote(&raw, item.name);
    buf_str(&raw, ",\"description\":");
    item.description_at.at = raw.n;
    json_quote(&raw, description);
    item.description_at.n = raw.n - item.description_at.at;
    buf_printf(&raw, ",%s}", members);
    item.raw = buf_view(&raw);
    catalog_add(c, ITEM_TOOL, &item);
}

static const char find_members[] =
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"query\":{\"type\":\"string\",\"description\":\"What the tool should do, in a few words\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"default\":10,"
    "\"description\":\"How many tools to give at most\"}},\"required\":[\"query\"]},"
    "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"tools\":{\"type\":\"array\","
    "\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"description\":{\"type\":\"string\"},\"inputSchema\":{\"type\":\"object\"},"
    "\"score\":{\"type\":\"number\"}},\"required\":[\"name\",\"inputSchema\",\"score\"]}}},"
    "\"required\":[\"tools\"]},"
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}";

static const char call_members[] =
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\",\"description\":\"The tool's name, as find_tools gives it\"},"
    "\"arguments\":{\"type\":\"object\",\"description\":\"What the tool's inputSchema asks for\"}},"
    "\"required\":[\"name\"]}";

#define SERVER_NAME                                                                                \
    "\"serverName\":{\"type\":\"string\",\"description\":\"The server, as list_services names "    \
    "it\"}"

static void add_gateway(struct catalog *c)
{
    add_item(c, "list_services", SPAN("List the servers there are, each with its tools."),
             "\"inputSchema\":{\"type\":\"object\",\"properties\":{}},"
             "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}",
             ITEM_READ_ONLY);
    add_item(c, "get_service_details",
             SPAN("The tools of one server with the schemas of their arguments, and its prompts."),
             "\"inputSchema\":{\"type\":\"object\",\"properties\":{" SERVER_NAME
             "},\"required\":[\"serverName\"]},"
             "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}",
             ITEM_READ_ONLY);
    add_item(c, "invoke_tool", SPAN("Call a tool of a server. The result is the tool's own."),
             "\"inputSchema\":{\"type\":\"object\",\"properties\":{" SERVER_NAME
             ",\"toolName\":{\"type\":\"string\",\"description\":\"The tool's own name\"},"
             "\"arguments\":{\"type\":\"string\",\"description\":\"The tool's arguments: an "
             "object, as JSON text\"}},\"required\":[\"serverName\",\"toolName\"]}",
             0);
}

/* Describe to agents what is offered, and the members that the view has now. */
static void refresh(struct search_provider *s)
{
    struct catalog *c = catalog_new();
    BUF_SCOPED description = {0};

    if (s->offers & SEARCH_OFFERS_GATEWAY)
        add_gateway(c);
    if (!(s->offers & SEARCH_OFFERS_SEARCH)) {
        provider_publish(&s->core, c);
        return;
    }

    buf_str(
        &description,
        "Find tools by what they do. There are more tools here than are listed: look for one in "
        "a few words, then call it with call_tool.");
    put_servers(&description, s->full);
    add_item(c, "find_tools", buf_view(&description), find_members, ITEM_READ_ONLY);
    add_item(c, "call_tool",
             SPAN("Call a tool that find_tools has found, with the arguments that its inputSchema "
                  "asks for. The result is the tool's own."),
             call_members, 0);
    provider_publish(&s->core, c);
}

void search_provider_offer(struct search_provider *s, unsigned offers)
{
    s->offers = offers;
    if (s->core.state == PROVIDER_READY)
        refresh(s);
}

static void start(struct provider *p)
{
    refresh(CONTAINER_OF(p, struct search_provider, core));
    provider_up(p);
}

static void stop(struct provider *p)
{
    provider_lost(p, "stopped");
}

static const struct provider_ops life = {.start = start, .stop = stop};

struct search_provider *search_provider_new(struct view *full, unsigned offers)
{
    struct search_provider *s = MEM_NEW(struct search_provider);

    s->full = full;
    s->offers = offers;
    provider_init(&s->core, &verbs, &life, "search");
    s->core.bare_names = s->core.built_in = true;
    /* The inner call has the limits of its server; limits of the outer call must be longer. */
    s->core.policy.timeout = s->core.policy.start_timeout = 0;
    s->core.policy.ask_timeout = TWO_DAYS;
    return s;
}

void search_provider_free(struct search_provider *s)
{
    search_free(s->index);
    provider_fini(&s->core);
    mem_free(s);
}

struct provider *search_provider_core(struct search_provider *s)
{
    return &s->core;
}
