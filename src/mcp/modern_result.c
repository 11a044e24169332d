#include "mcp/modern_result.h"

#include "mcp/protocol.h"

/* One look over the top-level members. */
struct seen {
    bool type, ttl, scope;
    struct span meta;
};

static struct seen look(struct span result)
{
    struct seen seen = {0};
    struct json_iter it = json_iter(result);

    while (json_next(&it)) {
        if (json_string_is(it.key, SPAN("resultType")))
            seen.type = true;
        else if (json_string_is(it.key, SPAN("ttlMs")))
            seen.ttl = true;
        else if (json_string_is(it.key, SPAN("cacheScope")))
            seen.scope = true;
        else if (json_string_is(it.key, SPAN("_meta")) && it.type == JSON_OBJECT)
            seen.meta = it.value;
    }
    return seen;
}

void modern_put_result(struct buf *out, struct span result, bool cacheable)
{
    struct seen seen = look(result);
    struct buf extra = {0};

    buf_str(&extra, seen.type ? "" : "\"resultType\":\"complete\",");
    if (cacheable && !seen.ttl)
        buf_str(&extra, "\"ttlMs\":0,");
    if (cacheable && !seen.scope)
        buf_str(&extra, "\"cacheScope\":\"private\",");
    if (!seen.meta.n)
        buf_str(&extra, MODERN_IDENTITY ",");
    if (extra.n)
        extra.n--; /* the last comma: json_insert knows whether one is needed */
    if (memchr(result.p, '\n', result.n) || memchr(result.p, '\r', result.n)) {
        struct buf line = {0};
        json_one_line(&line, result);
        json_insert(out, buf_view(&line), buf_view(&extra));
        buf_fini(&line);
    } else {
        json_insert(out, result, buf_view(&extra));
    }
    buf_fini(&extra);
}
