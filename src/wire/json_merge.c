/* Two objects merged into one, in which the second has the last word. Called by mcp/ and rockbot/
 * for pinned arguments. */
#include "wire/json_merge.h"

bool json_merge_has(struct span object, struct span raw_key, json_merge_compare *compare)
{
    struct json_iter it = json_iter(object);
    BUF_SCOPED key = {0};
    bool has = false;

    json_unescape(&key, raw_key);
    while (!has && json_next(&it))
        has = compare(it.key, buf_view(&key));
    return has;
}

static void put_member(struct buf *out, size_t start, struct span member)
{
    if (out->n > start)
        buf_char(out, ',');
    buf_span(out, member);
}

void json_merge_put(struct buf *out, struct span given, struct span over)
{
    struct json_iter under = json_iter(json_type_of(given) == JSON_OBJECT ? given : SPAN_EMPTY);
    struct json_iter it = json_iter(over);

    if (!over.n) {
        buf_span(out, given.n ? given : SPAN("{}"));
        return;
    }
    buf_char(out, '{');
    size_t start = out->n;
    while (json_next(&under))
        if (!json_merge_has(over, under.key, json_string_is))
            put_member(out, start, under.member);
    while (json_next(&it))
        put_member(out, start, it.member);
    buf_char(out, '}');
}
