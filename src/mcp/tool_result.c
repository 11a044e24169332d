#include "mcp/tool_result.h"

#include "wire/json.h"

void tool_fail(struct call *call, const char *why)
{
    struct buf result = {0};

    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, span_str(why));
    buf_str(&result, "}],\"isError\":true}");
    router_done(call, &(struct outcome){.kind = OUTCOME_RESULT,
                                        .body = buf_view(&result),
                                        .is_error = true,
                                        .text = span_str(why)});
    buf_fini(&result);
}

void tool_finish_structured(struct call *call, struct span object)
{
    struct buf result = {0};

    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, object);
    buf_str(&result, "}],\"structuredContent\":");
    buf_span(&result, object);
    buf_char(&result, '}');
    router_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
    buf_fini(&result);
}
