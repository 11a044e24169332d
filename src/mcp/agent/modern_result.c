/* A server's result with the members that the stateless era requires, and the server's identity
 * replaced by ours. Called by modern.c. */
#include "mcp/agent/modern_result.h"

#include "mcp/protocol.h"

/* The top-level members that a result has. */
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

/* The server's identity belongs to its own hop and is replaced by ours; the rest of `_meta` is
 * passed on. */
static void put_meta(struct buf *out, struct span meta)
{
    struct json_iter it = json_iter(meta);

    buf_str(out, "{" MODERN_SERVER_INFO);
    while (json_next(&it)) {
        if (json_string_is(it.key, SPAN(MCP_META_PREFIX "serverInfo")))
            continue;
        buf_char(out, ',');
        buf_span(out, it.member);
    }
    buf_char(out, '}');
}

static void put_with_own_meta(struct buf *out, struct span result, struct span meta)
{
    size_t at = (size_t)(meta.p - result.p);

    buf_span(out, span_cut(result, 0, at));
    put_meta(out, meta);
    buf_span(out, span_from(result, at + meta.n));
}

void modern_result_put(struct buf *out, struct span result, bool cacheable)
{
    struct seen seen = look(result);
    BUF_SCOPED extra = {0}, own = {0}, line = {0};

    buf_str(&extra, seen.type ? "" : "\"resultType\":\"complete\",");
    if (cacheable && !seen.ttl)
        buf_str(&extra, "\"ttlMs\":0,");
    if (cacheable && !seen.scope)
        buf_str(&extra, "\"cacheScope\":\"private\",");
    if (seen.meta.n) {
        put_with_own_meta(&own, result, seen.meta);
        result = buf_view(&own);
    } else {
        buf_str(&extra, MODERN_IDENTITY ",");
    }
    if (extra.n)
        extra.n--; /* drop the last comma: json_insert adds one if needed */
    if (memchr(result.p, '\n', result.n) || memchr(result.p, '\r', result.n)) {
        json_one_line(&line, result);
        result = buf_view(&line);
    }
    json_insert(out, result, buf_view(&extra));
}
