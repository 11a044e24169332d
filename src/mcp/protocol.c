/* The tables of MCP's members, methods, lists and log levels, the skimmer of messages, and
 * capabilities read and written. Called by all of agent/ and server/, and by a few files of hub/,
 * admin/ and cmd/. */
#include "mcp/protocol.h"

#include "base/mem.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
static const struct json_shape_row meta_rows[] = {
    {"progressToken", SLOT_META_TOKEN, NULL},
    {MCP_META_PREFIX "protocolVersion", SLOT_META_VERSION, NULL},
    {MCP_META_PREFIX "clientCapabilities", SLOT_META_CAPABILITIES, NULL},
    {MCP_META_PREFIX "clientInfo", SLOT_META_INFO, NULL},
    {MCP_META_PREFIX "logLevel", SLOT_META_LOG_LEVEL, NULL},
    {MCP_META_PREFIX "subscriptionId", SLOT_META_SUBSCRIPTION, NULL},
};
static const struct json_shape meta_shape = JSON_SHAPE_GUARDED(meta_rows, SLOT_LOOKALIKE);

static const struct json_shape_row ref_rows[] = {
    {"name", SLOT_REF_NAME, NULL},
    {"uri", SLOT_REF_URI, NULL},
};
static const struct json_shape ref_shape = JSON_SHAPE_GUARDED(ref_rows, SLOT_LOOKALIKE);

static const struct json_shape_row params_rows[] = {
    {"name", SLOT_NAME, NULL},
    {"arguments", SLOT_ARGUMENTS, NULL},
    {"_meta", SLOT_META, &meta_shape},
    {"uri", SLOT_URI, NULL},
    {"cursor", SLOT_CURSOR, NULL},
    {"level", SLOT_LEVEL, NULL},
    {"ref", SLOT_REF, &ref_shape},
    {"requestId", SLOT_REQUEST_ID, NULL},
    {"progressToken", SLOT_TOKEN, NULL},
    {"protocolVersion", SLOT_VERSION, NULL},
    {"capabilities", SLOT_CAPABILITIES, NULL},
    {"clientInfo", SLOT_INFO, NULL},
    {"notifications", SLOT_NOTIFICATIONS, NULL},
    {"requestState", SLOT_REQUEST_STATE, NULL},
    {"inputResponses", SLOT_INPUT_RESPONSES, NULL},
    {"task", SLOT_TASK, NULL},
    {"taskId", SLOT_TASK_ID, NULL},
};
static const struct json_shape params_shape = JSON_SHAPE_GUARDED(params_rows, SLOT_LOOKALIKE);

static const struct json_shape_row result_rows[] = {
    {"protocolVersion", SLOT_VERSION, NULL},
    {"capabilities", SLOT_CAPABILITIES, NULL},
    {"serverInfo", SLOT_INFO, NULL},
    {"instructions", SLOT_INSTRUCTIONS, NULL},
    {"tools", SLOT_ITEMS + ITEM_TOOL, NULL},
    {"resources", SLOT_ITEMS + ITEM_RESOURCE, NULL},
    {"resourceTemplates", SLOT_ITEMS + ITEM_TEMPLATE, NULL},
    {"prompts", SLOT_ITEMS + ITEM_PROMPT, NULL},
    {"nextCursor", SLOT_NEXT_CURSOR, NULL},
    {"resultType", SLOT_RESULT_TYPE, NULL},
    {"isError", SLOT_IS_ERROR, NULL},
    {"inputRequests", SLOT_INPUT_REQUESTS, NULL},
    {"requestState", SLOT_REQUEST_STATE, NULL},
    {"supportedVersions", SLOT_SUPPORTED, NULL},
};
static const struct json_shape result_shape = JSON_SHAPE(result_rows);

const struct mcp_operation mcp_operations[OP_COUNT] = {
    [OP_CALL_TOOL] = {"tools/call", SLOT_NAME, "name"},
    [OP_READ_RESOURCE] = {"resources/read", SLOT_URI, "uri"},
    [OP_GET_PROMPT] = {"prompts/get", SLOT_NAME, "name"},
    [OP_COMPLETE] = {"completion/complete", SLOT_REF_NAME, "ref"},
    [OP_SUBSCRIBE] = {"resources/subscribe", SLOT_URI, "uri"},
    [OP_UNSUBSCRIBE] = {"resources/unsubscribe", SLOT_URI, "uri"},
    [OP_SET_LEVEL] = {"logging/setLevel", SLOT_LEVEL, "level"},
    [OP_TASK_GET] = {"tasks/get", SLOT_TASK_ID, "taskId"},
    [OP_TASK_RESULT] = {"tasks/result", SLOT_TASK_ID, "taskId"},
    [OP_TASK_CANCEL] = {"tasks/cancel", SLOT_TASK_ID, "taskId"},
    [OP_TASK_UPDATE] = {"tasks/update", SLOT_TASK_ID, "taskId"},
};

const struct mcp_list mcp_lists[ITEM_KINDS] = {
    [ITEM_TOOL] = {"tools/list", "tools", "name", "notifications/tools/list_changed"},
    [ITEM_RESOURCE] = {"resources/list", "resources", "uri", "notifications/resources/list_changed"},
    [ITEM_TEMPLATE] = {"resources/templates/list", "resourceTemplates", "uriTemplate",
                       "notifications/resources/list_changed"},
    [ITEM_PROMPT] = {"prompts/list", "prompts", "name", "notifications/prompts/list_changed"},
};

const char *const mcp_levels[8] = {"debug", "info", "notice", "warning", "error", "critical",
                                   "alert", "emergency"};
/* clang-format on */

/* What is kept of a request until it is answered must not be as long as a message may be. */
static void refuse_long(struct mcp_message *m)
{
    enum { KEPT_MAX = 1024 };

    if (m->rpc.id.n > KEPT_MAX)
        m->rpc.why = "\"id\" is longer than 1 KiB";
    else if (m->slots[SLOT_META_TOKEN].value.n > KEPT_MAX)
        m->rpc.why = "params._meta.progressToken is longer than 1 KiB";
    else
        return;
    m->rpc.kind = RPC_INVALID;
}

int mcp_skim(struct span text, struct mcp_message *out)
{
    int error = rpc_skim(text, &params_shape, &result_shape, out->slots, SLOT_COUNT, &out->rpc);

    if (!error && out->rpc.kind == RPC_REQUEST)
        refuse_long(out);
    return error;
}

/* The `i`th method that MCP has for clients, that of an operation at its number; empty where an
 * operation has none; NULL after the last. */
static const char *own_method(size_t i)
{
    static const char *const others[] = {
        "initialize",
        "ping",
        "server/discover",
        "subscriptions/listen",
        "tasks/list",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
    };
    size_t n = OP_COUNT + ITEM_KINDS;

    if (i < OP_COUNT)
        return mcp_operations[i].method ? mcp_operations[i].method : "";
    if (i < n)
        return mcp_lists[i - OP_COUNT].method;
    return i - n < COUNT_OF(others) ? others[i - n] : NULL;
}

bool mcp_is_own_method(const struct rpc_message *m)
{
    const char *own;

    for (size_t i = 0; (own = own_method(i)); i++)
        if (*own && rpc_method_resembles(m, own))
            return true;
    return false;
}

bool mcp_is_repeatable(const char *method)
{
    const char *own;

    for (size_t i = 0; (own = own_method(i)); i++)
        if (strcmp(method, own) == 0)
            return i != OP_CALL_TOOL && *own;
    return false;
}

void mcp_put_lookalike(struct buf *out, struct span member)
{
    enum { SHOWN_MAX = 80 };
    size_t key = span_find(member, ':'); /* no member that we know has a colon in its name */

    buf_printf(out, SPAN_FMT " is not a member that MCP has, but a lenient reader takes it for one",
               SPAN_ARG(span_cut(member, 0, key < SHOWN_MAX ? key : SHOWN_MAX)));
}

bool mcp_params_mislead(const struct mcp_message *m, struct buf *why)
{
    const struct json_slot *slots = m->slots;

    if (slots[SLOT_LOOKALIKE].type != JSON_NONE) {
        mcp_put_lookalike(why, slots[SLOT_LOOKALIKE].member);
        buf_str(why, ": write it exactly as MCP does, or leave it out");
    } else if (slots[SLOT_REF_NAME].type != JSON_NONE && slots[SLOT_REF_URI].type != JSON_NONE) {
        buf_str(why, "params.ref has either a name or a uri, not both");
    }
    return why->n > 0;
}

bool mcp_is_legacy_version(struct span version)
{
    static const char *const known[] = {MCP_NEWEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05",
                                        "2024-10-07"};

    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (span_is(version, known[i]))
            return true;
    return false;
}

int mcp_level(struct span word)
{
    for (int i = 0; i < (int)COUNT_OF(mcp_levels); i++)
        if (span_is(word, mcp_levels[i]))
            return i;
    return -1;
}

unsigned mcp_answers_of(struct span capabilities)
{
    unsigned answers = 0;

    if (!capabilities.n)
        return 0;
    struct json_slot elicitation = json_get(capabilities, "elicitation");
    if (elicitation.type == JSON_OBJECT) {
        bool url = json_get(elicitation.value, "url").type == JSON_OBJECT;
        bool form = json_get(elicitation.value, "form").type == JSON_OBJECT;
        /* A bare {} is how older revisions say "forms". */
        answers |= (form || !url) ? ANSWERS_ELICIT_FORM : 0u;
        answers |= url ? ANSWERS_ELICIT_URL : 0u;
    }
    struct json_slot sampling = json_get(capabilities, "sampling");
    if (sampling.type == JSON_OBJECT) {
        answers |= ANSWERS_SAMPLING;
        if (json_get(sampling.value, "tools").type == JSON_OBJECT)
            answers |= ANSWERS_SAMPLING_TOOLS;
        if (json_get(sampling.value, "context").type == JSON_OBJECT)
            answers |= ANSWERS_SAMPLING_CONTEXT;
    }
    struct json_slot roots = json_get(capabilities, "roots");
    if (roots.type == JSON_OBJECT) {
        answers |= ANSWERS_ROOTS;
        if (json_get(roots.value, "listChanged").type == JSON_TRUE)
            answers |= ANSWERS_ROOTS_CHANGED;
    }
    struct json_slot extensions = json_get(capabilities, "extensions");
    if (extensions.type == JSON_OBJECT && json_get(extensions.value, MCP_TASKS).type == JSON_OBJECT)
        answers |= ANSWERS_TASKS;
    return answers;
}

void mcp_put_capabilities(struct buf *out, unsigned answers)
{
    const char *comma = "";

    buf_char(out, '{');
    if (answers & (ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL)) {
        buf_printf(out, "\"elicitation\":{%s%s%s}",
                   answers & ANSWERS_ELICIT_FORM ? "\"form\":{}" : "",
                   (answers & ANSWERS_ELICIT_FORM) && (answers & ANSWERS_ELICIT_URL) ? "," : "",
                   answers & ANSWERS_ELICIT_URL ? "\"url\":{}" : "");
        comma = ",";
    }
    if (answers & ANSWERS_SAMPLING) {
        bool tools = answers & ANSWERS_SAMPLING_TOOLS, context = answers & ANSWERS_SAMPLING_CONTEXT;
        buf_printf(out, "%s\"sampling\":{%s%s%s}", comma, tools ? "\"tools\":{}" : "",
                   tools && context ? "," : "", context ? "\"context\":{}" : "");
        comma = ",";
    }
    if (answers & ANSWERS_ROOTS) {
        buf_printf(out, "%s\"roots\":{%s}", comma,
                   answers & ANSWERS_ROOTS_CHANGED ? "\"listChanged\":true" : "");
        comma = ",";
    }
    if (answers & ANSWERS_TASKS)
        buf_printf(out, "%s\"extensions\":{\"" MCP_TASKS "\":{}}", comma);
    buf_char(out, '}');
}

/* Append the members of both objects; if both have a member, that of the first. */
static void put_union(struct buf *out, struct span first, struct span second)
{
    struct json_iter it = json_iter(first);
    size_t before = out->n;
    BUF_SCOPED key = {0};

    for (; first.n && json_next(&it);) {
        buf_str(out, out->n > before ? "," : "");
        buf_span(out, it.member);
    }
    it = json_iter(second);
    while (second.n && json_next(&it)) {
        key.n = 0;
        json_unescape(&key, it.key);
        if (first.n && json_get(first, buf_cstr(&key)).type != JSON_NONE)
            continue;
        buf_str(out, out->n > before ? "," : "");
        buf_span(out, it.member);
    }
}

static struct span object_in(struct span capabilities, const char *key)
{
    struct json_slot slot = capabilities.n ? json_get(capabilities, key) : (struct json_slot){0};

    return slot.type == JSON_OBJECT ? slot.value : SPAN_EMPTY;
}

/* The tasks extension is declared separately (ANSWERS_TASKS, OFFERS_TASKS), not passed on. */
static void put_without_tasks(struct buf *out, struct span extensions)
{
    struct json_iter it = json_iter(extensions);
    const char *comma = "";

    buf_char(out, '{');
    while (extensions.n && json_next(&it)) {
        if (json_string_is(it.key, SPAN(MCP_META_PREFIX "tasks")))
            continue;
        buf_str(out, comma);
        buf_span(out, it.member);
        comma = ",";
    }
    buf_char(out, '}');
}

void mcp_merge_extras(struct buf *out, struct span a, struct span b)
{
    static const char *const keys[] = {"experimental", "extensions"};
    BUF_SCOPED members = {0}, both = {0};
    bool any = false;

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct span of_a = object_in(a, keys[i]), of_b = object_in(b, keys[i]);
        if (!of_a.n && !of_b.n)
            continue;
        both.n = 0;
        buf_char(&both, '{');
        put_union(&both, of_a, of_b);
        buf_char(&both, '}');
        buf_printf(&members, "%s\"%s\":", any ? "," : "", keys[i]);
        put_without_tasks(&members, buf_view(&both));
        any = true;
    }
    if (any)
        buf_printf(out, "{" SPAN_FMT "}", SPAN_ARG(buf_view(&members)));
}

unsigned mcp_ask_needs(struct span method, struct span params)
{
    if (json_string_is(method, SPAN("elicitation/create"))) {
        struct json_slot mode = json_get(params, "mode");
        bool url = mode.type == JSON_STRING && json_string_is(mode.value, SPAN("url"));
        return url ? ANSWERS_ELICIT_URL : ANSWERS_ELICIT_FORM;
    }
    if (json_string_is(method, SPAN("sampling/createMessage"))) {
        bool tools = json_get(params, "tools").type == JSON_ARRAY;
        return ANSWERS_SAMPLING | (tools ? ANSWERS_SAMPLING_TOOLS : 0u);
    }
    if (json_string_is(method, SPAN("roots/list")))
        return ANSWERS_ROOTS;
    return 0;
}

struct span mcp_legacy_ask_params(const struct ask *ask, uint64_t id, struct buf *scratch)
{
    char member[64];

    if (!(ask->needs & ANSWERS_ELICIT_URL) ||
        json_get(ask->params, "elicitationId").type != JSON_NONE)
        return ask->params;
    snprintf(member, sizeof member, "\"elicitationId\":\"rialto-%" PRIu64 "\"", id);
    json_insert(scratch, ask->params, span_str(member));
    return buf_view(scratch);
}

static bool is_hop_scoped(struct span key)
{
    static const char *const words[] = {
        "progressToken",
        MCP_META_PREFIX "protocolVersion",
        MCP_META_PREFIX "clientCapabilities",
        MCP_META_PREFIX "clientInfo",
        MCP_META_PREFIX "logLevel",
        MCP_META_PREFIX "serverInfo",
        MCP_META_PREFIX "subscriptionId",
    };

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (json_string_is(key, span_str(words[i])))
            return true;
    return false;
}

void mcp_put_foreign_meta(struct buf *out, struct span meta)
{
    struct json_iter it = json_iter(meta);
    size_t before = out->n;

    while (json_next(&it)) {
        if (is_hop_scoped(it.key))
            continue;
        if (out->n > before)
            buf_char(out, ',');
        buf_span(out, it.member);
    }
}

void mcp_put_names(struct buf *out, const char *member, const struct map *names)
{
    size_t at = 0;
    struct span name;

    if (!names->n)
        return;
    json_out_open(out, member, '[');
    while (map_next(names, &at, &name, NULL))
        json_out_text(out, NULL, name);
    buf_char(out, ']');
}

struct cut mcp_cut(struct span whole, const struct json_slot *slot)
{
    if (slot->type == JSON_NONE)
        return (struct cut){0, 0};
    return (struct cut){(uint32_t)(slot->value.p - whole.p), (uint32_t)slot->value.n};
}

struct span mcp_client_of(struct span params)
{
    struct json_slot meta = {0}, info = {0};

    if (params.n)
        meta = json_get(params, "_meta");
    if (meta.type == JSON_OBJECT)
        info = json_get(meta.value, MCP_META_PREFIX "clientInfo");
    return info.type == JSON_OBJECT ? info.value : SPAN_EMPTY;
}

bool mcp_read_named(const struct mcp_message *m, struct request *request, struct buf *scratch)
{
    const struct mcp_operation *operation = &mcp_operations[request->op];
    const struct json_slot *name = &m->slots[operation->name_slot];

    if (request->op == OP_OTHER) {
        request->name = rpc_method_text(&m->rpc, scratch);
        return true;
    }
    if (request->op == OP_COMPLETE && name->type == JSON_NONE)
        name = &m->slots[SLOT_REF_URI];
    if (name->type != JSON_STRING) {
        buf_printf(scratch, "%s needs params.%s, a string", operation->method,
                   operation->name_member);
        return false;
    }
    request->name = json_text(name->value, scratch);
    request->name_at = mcp_cut(m->rpc.params, name);
    request->arguments_at = mcp_cut(m->rpc.params, &m->slots[SLOT_ARGUMENTS]);
    return true;
}
