/* The rows for the BTCP dialects D1 to D8. Used by doors.c, methods.c and unix.c, which give each
 * connection or request a dialect. */
#include "browser/dialect.h"

const struct dialect dialect_d1 = {.name = "websocket", .answers_list = true, .speaks_words = true};
const struct dialect dialect_d2 = {.name = "hello", .answers_list = true, .pushes_ask = true};
const struct dialect dialect_d3 = {.name = "ws", .answers_list = true, .pushes_ask = true};
const struct dialect dialect_d4a = {
    .name = "sse", .answers_list = true, .says_success = true, .stamps_pongs = true};
const struct dialect dialect_d4b = {.name = "sse-header", .answers_list = true};
const struct dialect dialect_d5 = {.name = "extension", .event = "tool_call"};
const struct dialect dialect_d6 = {.name = "remote",
                                   .event = "request",
                                   .answers_blind = true,
                                   .is_terse = true,
                                   .reads_status = true};
const struct dialect dialect_d7 = {.name = "rpc"};
const struct dialect dialect_d8 = {.name = "socket", .answers_list = true, .speaks_words = true};
