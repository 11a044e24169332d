/* The rows of the BTCP dialects D1 to D8, and their error numbers; relay.c has the rows of MCP-B.
 * Used by routes.c, pipe.c and join.c, which give each connection or request a dialect, and by
 * agent.c and sender.c for error numbers. */
#include "browser/dialect.h"

#include "base/mem.h"
#include "wire/rpc.h"

const struct dialect dialect_d1 = {.name = "websocket",
                                   .after_hello = &dialect_d2,
                                   .answers_list = true,
                                   .answers_ping = true,
                                   .asks_users = true,
                                   .list_is_array = true,
                                   .result_is_bare = true,
                                   .error_words = true};
const struct dialect dialect_d2 = {.name = "hello",
                                   .answers_list = true,
                                   .answers_ping = true,
                                   .asks_users = true,
                                   .pushes_ask = true};
const struct dialect dialect_d3 = {.name = "ws",
                                   .answers_list = true,
                                   .answers_ping = true,
                                   .asks_users = true,
                                   .pushes_ask = true};
const struct dialect dialect_d4a = {.name = "sse",
                                    .answers_list = true,
                                    .answers_ping = true,
                                    .asks_users = true,
                                    .reply_has_success = true,
                                    .reply_on_stream = true,
                                    .pong_has_time = true,
                                    .lists_nothing = true,
                                    .numbers = NUMBERS_SERVER};
const struct dialect dialect_d4b = {.name = "sse-header",
                                    .answers_list = true,
                                    .answers_ping = true,
                                    .asks_users = true,
                                    .reply_on_stream = true};
const struct dialect dialect_d5 = {
    .name = "extension", .request_event = "tool_call", .ping_is_event = true};
const struct dialect dialect_d6 = {.name = "remote",
                                   .request_event = "request",
                                   .ping_is_event = true,
                                   .answers_by_id = true,
                                   .reply_has_success = true,
                                   .reply_omits_count = true,
                                   .reply_has_status = true};
const struct dialect dialect_d7 = {.name = "rpc", .list_is_array = true};
const struct dialect dialect_d8 = {.name = "socket",
                                   .answers_list = true,
                                   .answers_ping = true,
                                   .asks_users = true,
                                   .list_is_array = true,
                                   .result_is_bare = true,
                                   .error_words = true};

/* A server that we joined, which is treated like a page: its answers carry nothing but an id. */
const struct dialect dialect_joined = {
    .name = "joined", .answers_list = true, .answers_by_id = true};

/* NUMBERS_CLIENT are those of btcp-client, NUMBERS_SERVER those of btcp-server. */
static const struct {
    const char *word;
    int numbers[2];
} errors[] = {
    {"TOOL_NOT_FOUND", {RPC_METHOD_NOT_FOUND, -32603}},
    {"INVALID_PARAMS", {RPC_INVALID_PARAMS, -32005}},
    {"CAPABILITY_DENIED", {RPC_INTERNAL_ERROR, -32006}},
    {"EXECUTION_ERROR", {RPC_INTERNAL_ERROR, -32603}},
    {"TIMEOUT", {-32000, -32001}},
    {"CONNECTION_ERROR", {RPC_INVALID_REQUEST, -32002}},
    {"SESSION_NOT_FOUND", {RPC_INVALID_PARAMS, -32002}},
};

int dialect_number(const struct dialect *d, struct span word)
{
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        if (span_is(word, errors[i].word))
            return errors[i].numbers[d->numbers];
    return RPC_INTERNAL_ERROR;
}
