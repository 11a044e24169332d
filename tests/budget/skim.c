/*
 * skim TIMES: skims a tools/list response of about 200 KB so many times, and prints its length.
 * tests/budget/run.mjs runs it twice under callgrind: the difference is the cost of the skims.
 */
#include "wire/rpc.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOT_TOOLS, SLOT_CURSOR, N_SLOTS };

/* 290 tools with typical descriptions and schemas: text, escapes, numbers, nesting. */
static void put_list(struct buf *out)
{
    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"tools\":[");
    for (int i = 0; i < 290; i++)
        buf_printf(
            out,
            "%s{\"name\":\"search_documents_%d\",\"title\":\"Search documents\",\"description\":"
            "\"Search the documents of a project by words, phrases and dates.\\nReturns at most "
            "`limit` matches, best first; use \\\"quotes\\\" for exact phrases. Results carry the "
            "path, the line and a short excerpt.\",\"inputSchema\":{\"type\":\"object\","
            "\"properties\":{\"query\":{\"type\":\"string\",\"description\":\"What to look for\","
            "\"minLength\":1},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,"
            "\"default\":20},\"since\":{\"type\":\"string\",\"format\":\"date-time\"},"
            "\"kinds\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"page\","
            "\"comment\",\"attachment\"]}}},\"required\":[\"query\"],"
            "\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":true,"
            "\"openWorldHint\":false}}",
            i ? "," : "", i);
    buf_printf(out, "]}}");
}

int main(int argc, char **argv)
{
    static const struct json_shape_row rows[] = {{"tools", SLOT_TOOLS, NULL},
                                                 {"nextCursor", SLOT_CURSOR, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot slots[N_SLOTS];
    struct rpc_message message;
    struct buf text = {0};
    int times = argc > 1 ? atoi(argv[1]) : 1, failed = 0;
    put_list(&text);
    for (int i = 0; i < times; i++)
        if (rpc_skim(buf_view(&text), NULL, &shape, slots, N_SLOTS, &message) != 0 ||
            slots[SLOT_TOOLS].type != JSON_ARRAY)
            failed = 1;
    printf("%zu\n", buf_view(&text).n);
    buf_fini(&text);
    return failed;
}
