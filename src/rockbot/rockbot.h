/*
 * rockbot: the vocabulary of RockBot's tool messages: topics, headers, records.
 *
 * Each record is a row of one table, its members in the order in which they are written. Values go
 * in and come out as an array by member: plain text for texts, raw JSON for everything else. Every
 * member is always written, for readers that require it; names are matched without regard to case,
 * and unknown members are skipped.
 */
#ifndef RIALTO_ROCKBOT_ROCKBOT_H
#define RIALTO_ROCKBOT_ROCKBOT_H

#include "bus/message.h"
#include "wire/json.h"

/* --- topics; those that end in a dot are followed by the agent's name --- */
#define ROCKBOT_TOPIC_INVOKE   "tool.invoke.mcp"
#define ROCKBOT_TOPIC_RESULT   "tool.result."
#define ROCKBOT_TOPIC_META     "tool.meta.mcp."
#define ROCKBOT_TOPIC_REFRESH  "tool.meta.mcp.refresh"
#define ROCKBOT_TOPIC_MANAGE   "mcp.manage"
#define ROCKBOT_TOPIC_MANAGED  "mcp.manage.response."
#define ROCKBOT_TOPIC_ASK      "system.mcp.tool_approval_request"
#define ROCKBOT_TOPIC_APPROVAL "system.mcp.tool_approval_response"
#define ROCKBOT_TOPIC_EVENT    "mcp.event."  /* KIND.ALIAS */
#define ROCKBOT_BRIDGE         "mcp-bridge." /* source and group of the bridge of an agent */

/* --- headers --- */
#define ROCKBOT_TRUST       "rb-content-trust"
#define ROCKBOT_PROVIDER    "rb-tool-provider"
#define ROCKBOT_TIMEOUT     "rb-timeout-ms"
#define ROCKBOT_SERVER      "rb-mcp-server"
#define ROCKBOT_HANDBACK    "rb-mcp-handback"
#define ROCKBOT_TRACEPARENT "traceparent"
#define ROCKBOT_TRACESTATE  "tracestate"

#define ROCKBOT_TRUST_SYSTEM  "system"
#define ROCKBOT_TRUST_USER    "user-input"
#define ROCKBOT_TRUST_REQUEST "tool-request"
#define ROCKBOT_TRUST_OUTPUT  "tool-output"
#define ROCKBOT_TRUST_AGENT   "agent-message"
#define ROCKBOT_PROVIDER_MCP  "mcp"

enum rockbot_record {
    ROCKBOT_INVOKE, /* RockBot.Tools.ToolInvokeRequest */
    ROCKBOT_RESULT, /* ToolInvokeResponse */
    ROCKBOT_ERROR,  /* ToolError */
    ROCKBOT_TOOLS_AVAILABLE,
    ROCKBOT_SERVERS_INDEXED,
    ROCKBOT_REFRESH,
    ROCKBOT_GET_DETAILS,
    ROCKBOT_DETAILS,
    ROCKBOT_REGISTER,
    ROCKBOT_REGISTERED,
    ROCKBOT_UNREGISTER,
    ROCKBOT_UNREGISTERED,
    ROCKBOT_GET_PROMPT,
    ROCKBOT_PROMPT,
    ROCKBOT_LIST_RESOURCES,
    ROCKBOT_RESOURCES,
    ROCKBOT_READ_RESOURCE,
    ROCKBOT_RESOURCE,
    ROCKBOT_ANSWER,
    ROCKBOT_ANSWERED,
    ROCKBOT_RELEASE,
    ROCKBOT_TYPES, /* from here on: parts of the others, never messages of their own */
    ROCKBOT_A_BLOCK = ROCKBOT_TYPES,
    ROCKBOT_A_TOOL,
    ROCKBOT_A_SERVER,
    ROCKBOT_A_PROMPT,
    ROCKBOT_AN_ARGUMENT,
    ROCKBOT_A_MESSAGE,
    ROCKBOT_A_RESOURCE,
    ROCKBOT_A_CONTENT,
    ROCKBOT_RECORDS,
};

/* --- members: places in the array of values --- */
enum { INVOKE_CALL, INVOKE_TOOL, INVOKE_ARGUMENTS, INVOKE_SESSION, INVOKE_BATCH };
enum { RESULT_CALL, RESULT_TOOL, RESULT_CONTENT, RESULT_BLOCKS, RESULT_IS_ERROR };
enum { ERROR_CALL, ERROR_TOOL, ERROR_CODE, ERROR_MESSAGE, ERROR_RETRYABLE };
enum { AVAILABLE_SERVER, AVAILABLE_TOOLS, AVAILABLE_REMOVED };
enum { INDEXED_SERVERS, INDEXED_REMOVED };
enum { ONLY_SERVER }; /* refresh, get details, unregister, list resources */
enum { DETAILS_SERVER, DETAILS_TOOLS, DETAILS_ERROR, DETAILS_ID, DETAILS_FINGERPRINT };
enum { DETAILS_IMPLEMENTATION = 5, DETAILS_TITLE, DETAILS_VERSION, DETAILS_DESCRIPTION };
enum { DETAILS_INSTRUCTIONS = 9, DETAILS_PROMPTS, DETAILS_N_RESOURCES };
enum { REGISTER_SERVER, REGISTER_TYPE, REGISTER_URL, REGISTER_COMMAND, REGISTER_ARGS };
enum { REGISTER_ENV = 5 };
enum { REGISTERED_SERVER, REGISTERED_SUCCESS, REGISTERED_SUMMARY, REGISTERED_ERROR };
enum { UNREGISTERED_SERVER, UNREGISTERED_SUCCESS, UNREGISTERED_ERROR };
enum { GET_PROMPT_SERVER, GET_PROMPT_NAME, GET_PROMPT_ARGUMENTS };
enum { PROMPT_SERVER, PROMPT_NAME, PROMPT_DESCRIPTION, PROMPT_MESSAGES, PROMPT_ERROR };
enum { RESOURCES_SERVER, RESOURCES_LIST, RESOURCES_TEMPLATES, RESOURCES_ERROR };
enum { READ_SERVER, READ_URI };
enum { RESOURCE_SERVER, RESOURCE_URI, RESOURCE_CONTENTS, RESOURCE_ERROR };
enum { ANSWER_QUESTION, ANSWER_SESSION, ANSWER_CALL, ANSWER_ANSWERS, ANSWER_DECLINE };
enum { ANSWERED_QUESTION, ANSWERED_SERVER, ANSWERED_TOOL, ANSWERED_RESULT, ANSWERED_ERROR };
enum { BLOCK_TYPE, BLOCK_TEXT, BLOCK_DATA, BLOCK_MIME, BLOCK_URI };
enum { TOOL_NAME, TOOL_DESCRIPTION, TOOL_SCHEMA };
enum { SERVER_NAME, SERVER_DISPLAY, SERVER_SUMMARY, SERVER_N_TOOLS, SERVER_TOOLS };
enum { SERVER_N_PROMPTS = 5, SERVER_PROMPTS, SERVER_N_RESOURCES, SERVER_RESOURCES, SERVER_ID };
enum { SERVER_FINGERPRINT = 10, SERVER_TOOL_FINGERPRINTS, SERVER_VERSION, SERVER_IDENTITY };
enum { SERVER_HANDBACK = 14 };
enum { A_PROMPT_NAME, A_PROMPT_DESCRIPTION, A_PROMPT_ARGUMENTS };
enum { ARGUMENT_NAME, ARGUMENT_DESCRIPTION, ARGUMENT_REQUIRED };
enum { MESSAGE_ROLE, MESSAGE_CONTENT, MESSAGE_CONTENT_TYPE };
enum { A_RESOURCE_URI, A_RESOURCE_NAME, A_RESOURCE_TITLE, A_RESOURCE_DESCRIPTION };
enum { A_RESOURCE_MIME = 4, A_RESOURCE_SIZE, A_RESOURCE_IS_TEMPLATE };
enum { CONTENT_URI, CONTENT_MIME, CONTENT_TEXT, CONTENT_PATH, CONTENT_NAME, CONTENT_SIZE };
enum { CONTENT_NOTE = 6 };
enum { ROCKBOT_MAX_MEMBERS = 15 };

/* The full name of the type, as in the envelope. */
const char *rockbot_name(enum rockbot_record type);
/* The record with exactly this full name; ROCKBOT_RECORDS when there is none. */
enum rockbot_record rockbot_record(struct span name);

/*
 * Append a record. A text without bytes is null where null is allowed, else "". Other values
 * without bytes are written as their default: null, false, 0, [] or {}.
 */
void rockbot_put(struct buf *out, enum rockbot_record type, const struct span *values);
/* Validates `body` and finds the members: JSON_NONE for those that are absent or null. Fails, with
 * a reason, when `body` is no object, a required member is absent, or any member is of another type
 * or comes twice. */
MUST_CHECK int rockbot_read(enum rockbot_record type, struct span body,
                            struct json_slot slots[ROCKBOT_MAX_MEMBERS], struct err *err);
/* The text of a member; empty when it is absent. A text with escapes is in `scratch`, and valid
 * until that grows: use one text before reading the next, or a scratch for each. */
struct span rockbot_text(const struct json_slot *slot, struct buf *scratch);

/* An agent's name: [A-Za-z0-9][A-Za-z0-9_-]*, at most 64, and not "refresh", which is a topic. */
bool rockbot_is_agent_name(struct span name);

/* The value of the timeout header; 0 when it is absent or not valid. */
uint64_t rockbot_timeout(const struct message *m);

#endif
