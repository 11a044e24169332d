/* The table of RockBot's records, and functions that write and read a record, check names of
 * agents, and read the timeout header. Called by the other files of rockbot/. */
#include "rockbot/rockbot.h"

#include "base/ascii.h"
#include "base/mem.h"

enum { MAX_AGENT_NAME = 64, MAX_TIMEOUT_DIGITS = 10 };

enum kind {
    TEXT,   /* never null */
    NOTE,   /* a text or null */
    LOOSE,  /* written as a text or null, read as any type */
    FLAG,   /* true or false */
    NUMBER, /* never null */
    SIZE,   /* a number or null */
    LIST,
    BLOCKS, /* a list or null */
    TABLE,  /* an object */
    INSIDE, /* an object or null */
};

static const struct {
    const char *empty; /* written when there is no value */
    enum json_type reads;
    bool quoted;
} kinds[] = {
    [TEXT] = {"\"\"", JSON_STRING, true}, [NOTE] = {"null", JSON_STRING, true},
    [LOOSE] = {"null", JSON_NONE, true},  [FLAG] = {"false", JSON_TRUE, false},
    [NUMBER] = {"0", JSON_NUMBER, false}, [SIZE] = {"null", JSON_NUMBER, false},
    [LIST] = {"[]", JSON_ARRAY, false},   [BLOCKS] = {"null", JSON_ARRAY, false},
    [TABLE] = {"{}", JSON_OBJECT, false}, [INSIDE] = {"null", JSON_OBJECT, false},
};

struct record_member {
    const char *key;
    enum kind kind;
    bool required;
};

#define MEMBERS(...) .members = {__VA_ARGS__}

/* In the order of the enums in the header, which is the order in which RockBot writes them. */
static const struct record {
    const char *name;
    struct record_member members[ROCKBOT_MAX_MEMBERS + 1];
} records[ROCKBOT_RECORDS] = {
    [ROCKBOT_INVOKE] = {"RockBot.Tools.ToolInvokeRequest",
                        MEMBERS({"toolCallId", TEXT, true}, {"toolName", TEXT, true},
                                {"arguments", LOOSE}, {"sessionId", NOTE}, {"batchId", LOOSE})},
    [ROCKBOT_RESULT] = {"RockBot.Tools.ToolInvokeResponse",
                        MEMBERS({"toolCallId", TEXT, true}, {"toolName", TEXT, true},
                                {"content", NOTE}, {"contentBlocks", BLOCKS}, {"isError", FLAG})},
    [ROCKBOT_ERROR] = {"RockBot.Tools.ToolError",
                       MEMBERS({"toolCallId", TEXT, true}, {"toolName", TEXT, true},
                               {"code", TEXT, true}, {"message", TEXT, true},
                               {"isRetryable", FLAG})},
    [ROCKBOT_TOOLS_AVAILABLE] = {"RockBot.Tools.Mcp.McpToolsAvailable",
                                 MEMBERS({"serverName", TEXT, true}, {"tools", LIST, true},
                                         {"removedTools", LIST, true})},
    [ROCKBOT_SERVERS_INDEXED] = {"RockBot.Tools.Mcp.McpServersIndexed",
                                 MEMBERS({"servers", LIST, true}, {"removedServers", LIST})},
    [ROCKBOT_REFRESH] = {"RockBot.Tools.Mcp.McpMetadataRefreshRequest",
                         MEMBERS({"serverName", NOTE})},
    [ROCKBOT_GET_DETAILS] = {"RockBot.Tools.Mcp.McpGetServiceDetailsRequest",
                             MEMBERS({"serverName", TEXT, true})},
    [ROCKBOT_DETAILS] = {"RockBot.Tools.Mcp.McpGetServiceDetailsResponse",
                         MEMBERS({"serverName", TEXT, true}, {"tools", LIST, true}, {"error", NOTE},
                                 {"serverId", NOTE}, {"fingerprint", NOTE},
                                 {"implementationName", NOTE}, {"title", NOTE}, {"version", NOTE},
                                 {"description", NOTE}, {"instructions", NOTE}, {"prompts", LIST},
                                 {"resourceCount", NUMBER})},
    [ROCKBOT_REGISTER] = {"RockBot.Tools.Mcp.McpRegisterServerRequest",
                          MEMBERS({"serverName", TEXT, true}, {"type", NOTE}, {"url", NOTE},
                                  {"command", NOTE}, {"args", LIST}, {"env", TABLE})},
    [ROCKBOT_REGISTERED] = {"RockBot.Tools.Mcp.McpRegisterServerResponse",
                            MEMBERS({"serverName", TEXT, true}, {"success", FLAG, true},
                                    {"summary", NOTE}, {"error", NOTE})},
    [ROCKBOT_UNREGISTER] = {"RockBot.Tools.Mcp.McpUnregisterServerRequest",
                            MEMBERS({"serverName", TEXT, true})},
    [ROCKBOT_UNREGISTERED] = {"RockBot.Tools.Mcp.McpUnregisterServerResponse",
                              MEMBERS({"serverName", TEXT, true}, {"success", FLAG, true},
                                      {"error", NOTE})},
    [ROCKBOT_GET_PROMPT] = {"RockBot.Tools.Mcp.McpGetPromptRequest",
                            MEMBERS({"serverName", TEXT, true}, {"promptName", TEXT, true},
                                    {"arguments", INSIDE})},
    [ROCKBOT_PROMPT] = {"RockBot.Tools.Mcp.McpGetPromptResponse",
                        MEMBERS({"serverName", TEXT, true}, {"promptName", TEXT, true},
                                {"description", NOTE}, {"messages", LIST, true}, {"error", NOTE})},
    [ROCKBOT_LIST_RESOURCES] = {"RockBot.Tools.Mcp.McpListResourcesRequest",
                                MEMBERS({"serverName", TEXT, true})},
    [ROCKBOT_RESOURCES] = {"RockBot.Tools.Mcp.McpListResourcesResponse",
                           MEMBERS({"serverName", TEXT, true}, {"resources", LIST, true},
                                   {"templates", LIST}, {"error", NOTE})},
    [ROCKBOT_READ_RESOURCE] = {"RockBot.Tools.Mcp.McpReadResourceRequest",
                               MEMBERS({"serverName", TEXT, true}, {"uri", TEXT, true})},
    [ROCKBOT_RESOURCE] = {"RockBot.Tools.Mcp.McpReadResourceResponse",
                          MEMBERS({"serverName", TEXT, true}, {"uri", TEXT, true},
                                  {"contents", LIST, true}, {"error", NOTE})},
    [ROCKBOT_ANSWER] = {"RockBot.Tools.Mcp.McpAnswerQuestionRequest",
                        MEMBERS({"questionId", TEXT, true}, {"sessionId", NOTE},
                                {"toolCallId", NOTE}, {"answers", NOTE}, {"decline", FLAG})},
    [ROCKBOT_ANSWERED] = {"RockBot.Tools.Mcp.McpAnswerQuestionResponse",
                          MEMBERS({"questionId", TEXT, true}, {"serverName", NOTE},
                                  {"toolName", NOTE}, {"result", INSIDE}, {"error", NOTE})},
    [ROCKBOT_RELEASE] = {"RockBot.Tools.Mcp.McpReleaseSessionQuestionsRequest",
                         MEMBERS({"sessionId", TEXT, true})},
    [ROCKBOT_A_BLOCK] = {NULL, MEMBERS({"type", TEXT, true}, {"text", NOTE}, {"data", NOTE},
                                       {"mimeType", NOTE}, {"uri", NOTE})},
    [ROCKBOT_A_TOOL] = {NULL, MEMBERS({"name", TEXT, true}, {"description", TEXT, true},
                                      {"parametersSchema", NOTE})},
    [ROCKBOT_A_SERVER] =
        {NULL, MEMBERS({"serverName", TEXT, true}, {"displayName", NOTE}, {"summary", NOTE},
                       {"toolCount", NUMBER}, {"toolNames", LIST}, {"promptCount", NUMBER},
                       {"promptNames", LIST}, {"resourceCount", NUMBER}, {"resourceNames", LIST},
                       {"serverId", NOTE}, {"fingerprint", NOTE}, {"toolFingerprints", INSIDE},
                       {"version", NOTE}, {"identityHash", NOTE}, {"handback", FLAG})},
    [ROCKBOT_A_PROMPT] = {NULL, MEMBERS({"name", TEXT, true}, {"description", NOTE},
                                        {"arguments", LIST})},
    [ROCKBOT_AN_ARGUMENT] = {NULL, MEMBERS({"name", TEXT, true}, {"description", NOTE},
                                           {"required", FLAG})},
    [ROCKBOT_A_MESSAGE] = {NULL, MEMBERS({"role", TEXT, true}, {"content", TEXT, true},
                                         {"contentType", NOTE})},
    [ROCKBOT_A_RESOURCE] = {NULL, MEMBERS({"uri", TEXT, true}, {"name", NOTE}, {"title", NOTE},
                                          {"description", NOTE}, {"mimeType", NOTE}, {"size", SIZE},
                                          {"isTemplate", FLAG})},
    [ROCKBOT_A_CONTENT] = {NULL,
                           MEMBERS({"uri", TEXT, true}, {"mimeType", NOTE}, {"text", NOTE},
                                   {"path", NOTE}, {"name", NOTE}, {"size", SIZE}, {"note", NOTE})},
};

const char *rockbot_name(enum rockbot_record type)
{
    return records[type].name;
}

enum rockbot_record rockbot_record(struct span name)
{
    for (int type = 0; type < ROCKBOT_TYPES; type++)
        if (span_is(name, records[type].name))
            return (enum rockbot_record)type;
    return ROCKBOT_RECORDS;
}

void rockbot_put(struct buf *out, enum rockbot_record type, const struct span *values)
{
    const struct record_member *m = records[type].members;

    for (size_t i = 0; m[i].key; i++) {
        buf_str(out, i ? ",\"" : "{\"");
        buf_str(out, m[i].key);
        buf_str(out, "\":");
        if (!values[i].n)
            buf_str(out, kinds[m[i].kind].empty);
        else if (kinds[m[i].kind].quoted)
            json_quote(out, values[i]);
        else
            buf_span(out, values[i]);
    }
    buf_char(out, '}');
}

/* --- reading --- */

static const struct record_member *find_member(const struct record *r, struct span key,
                                               size_t *place)
{
    for (size_t i = 0; r->members[i].key; i++) {
        *place = i;
        if (span_eq_nocase(key, span_str(r->members[i].key)))
            return &r->members[i];
    }
    return NULL;
}

static bool fits(enum kind kind, enum json_type type)
{
    if (kind == LOOSE)
        return true;
    return type == kinds[kind].reads || (kind == FLAG && type == JSON_FALSE);
}

static int take_member(const struct record *r, const struct json_iter *it, struct json_slot *slots,
                       struct err *err)
{
    BUF_SCOPED scratch = {0};
    size_t place;
    const struct record_member *m = find_member(r, json_text(it->key, &scratch), &place);

    if (!m || it->type == JSON_NULL)
        return 0;
    if (slots[place].type != JSON_NONE)
        return err_set(err, ERR_DUPLICATE, "%s occurs twice", m->key);
    if (!fits(m->kind, it->type))
        return err_set(err, ERR_PROTOCOL, "%s is of the wrong type", m->key);
    slots[place] = (struct json_slot){it->type, it->value, it->member};
    return 0;
}

int rockbot_read(enum rockbot_record type, struct span body,
                 struct json_slot slots[ROCKBOT_MAX_MEMBERS], struct err *err)
{
    const struct record *r = &records[type];
    enum json_type found;
    size_t at = 0;
    int rc = json_skim(body, NULL, NULL, &found, &at);

    memset(slots, 0, sizeof slots[0] * ROCKBOT_MAX_MEMBERS);
    if (rc < 0)
        return err_set(err, rc, "the body is not JSON: %s at byte %zu", err_name(rc), at);
    if (found != JSON_OBJECT)
        return err_set(err, ERR_PROTOCOL, "the body is not a JSON object");
    for (struct json_iter it = json_iter(body); json_next(&it);)
        if ((rc = take_member(r, &it, slots, err)) < 0)
            return rc;
    for (size_t i = 0; r->members[i].key; i++)
        if (r->members[i].required && slots[i].type == JSON_NONE)
            return err_set(err, ERR_PROTOCOL, "%s is missing", r->members[i].key);
    return 0;
}

struct span rockbot_text(const struct json_slot *slot, struct buf *scratch)
{
    return slot->type == JSON_STRING ? json_text(slot->value, scratch) : SPAN_EMPTY;
}

/* --- words --- */

bool rockbot_is_agent_name(struct span name)
{
    return name.n && name.n <= MAX_AGENT_NAME && ascii_is_word(name.p[0], "") &&
           ascii_is_words(name, "_-") && !span_is(name, "refresh");
}

uint64_t rockbot_timeout(const struct message *m)
{
    struct span text = span_trim(message_header(m, ROCKBOT_TIMEOUT));
    uint64_t ms;

    return text.n <= MAX_TIMEOUT_DIGITS && ascii_number(text, &ms) ? ms : 0;
}
