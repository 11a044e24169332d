/* Results that the bridge writes for a tool call itself, and the request of a call turned into
 * another. Called by search_provider.c, server/as_tools.c and server/upstream_calls.c. */
#include "mcp/tool_call.h"

#include "base/mem.h"
#include "wire/json.h"

void tool_put_failure(struct buf *out, struct span why)
{
    buf_str(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(out, why);
    buf_str(out, "}],\"isError\":true}");
}

void tool_fail(struct call *call, const char *why)
{
    BUF_SCOPED result = {0};

    tool_put_failure(&result, span_str(why));
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT,
                                      .body = buf_view(&result),
                                      .is_error = true,
                                      .text = span_str(why)});
}

void tool_finish_structured(struct call *call, struct span object)
{
    BUF_SCOPED result = {0};

    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, object);
    buf_str(&result, "}],\"structuredContent\":");
    buf_span(&result, object);
    buf_char(&result, '}');
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
}

static bool is_replaced(struct span key)
{
    static const char *const keys[] = {"name", "uri", "arguments", "_meta"};

    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (json_string_is(key, span_str(keys[i])))
            return true;
    return false;
}

void tool_redirect(struct request *r, struct span members, struct buf *params)
{
    struct json_iter it = json_iter(r->params);

    buf_char(params, '{');
    buf_span(params, members);
    while (json_next(&it)) {
        if (is_replaced(it.key))
            continue;
        buf_char(params, ',');
        buf_span(params, it.member);
    }
    r->name_at = r->meta_at = r->arguments_at = (struct cut){0, 0};
    if (r->meta_keep.n) {
        /* The place for `_meta` members that go on to the next hop. */
        buf_str(params, ",\"_meta\":");
        r->meta_at = (struct cut){params->n, 2};
        buf_str(params, "{}");
    }
    buf_char(params, '}');
    r->params = buf_view(params);
}
