/* Results without what belongs to the stateless era. Called by server/upstream_calls.c. */
#include "mcp/legacy.h"

#include "mcp/protocol.h"

static bool is_any(struct span key, const char *const *words)
{
    for (; *words; words++)
        if (json_string_is(key, span_str(*words)))
            return true;
    return false;
}

static void put_comma(struct buf *out, size_t start)
{
    if (out->n > start)
        buf_char(out, ',');
}

/* Members of the stateless era. Methods that MCP does not know may mean something else by the
 * words for caches. */
static bool is_dropped(enum op op, struct span key)
{
    static const char *const cache[] = {"ttlMs", "cacheScope", NULL};

    return json_string_is(key, SPAN("resultType")) || (op != OP_OTHER && is_any(key, cache));
}

/* Without those that belong to the hop; nothing at all if there are no others. */
static void put_meta(struct buf *out, size_t start, struct span meta)
{
    BUF_SCOPED kept = {0};

    mcp_put_foreign_meta(&kept, meta);
    if (!kept.n)
        return;
    put_comma(out, start);
    buf_str(out, "\"_meta\":{");
    buf_span(out, buf_view(&kept));
    buf_char(out, '}');
}

void legacy_put_result(struct buf *out, enum op op, struct span result)
{
    struct json_iter it = json_iter(result);

    if (json_type_of(result) != JSON_OBJECT) {
        buf_span(out, result);
        return;
    }
    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&it)) {
        if (is_dropped(op, it.key))
            continue;
        if (it.type == JSON_OBJECT && json_string_is(it.key, SPAN("_meta"))) {
            put_meta(out, start, it.value);
            continue;
        }
        put_comma(out, start);
        buf_span(out, it.member);
    }
    buf_char(out, '}');
}
