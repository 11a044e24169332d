/* Setting, removing and reading a member at a path in raw JSON. Called by channel.c, exchange.c,
 * unnamed.c, greet.c, hop.c, offer.c and setup.c. */
#include "acp/json_edit.h"

/* Append `object` with the bytes of `old`, which point into `object`, replaced. */
static void replace(struct buf *out, struct span object, struct span old, struct span with)
{
    size_t at = (size_t)(old.p - object.p);

    buf_span(out, span_cut(object, 0, at));
    buf_span(out, with);
    buf_span(out, span_from(object, at + old.n));
}

void json_edit_set(struct buf *out, struct span object, const char *const *path, struct span value)
{
    struct json_slot slot = json_get(object, path[0]);
    BUF_SCOPED inner = {0};

    if (path[1])
        json_edit_set(&inner, slot.type == JSON_OBJECT ? slot.value : SPAN("{}"), path + 1, value);
    else
        buf_span(&inner, value);
    if (slot.type != JSON_NONE) {
        replace(out, object, slot.value, buf_view(&inner));
    } else {
        BUF_SCOPED member = {0};
        json_quote(&member, span_str(path[0]));
        buf_char(&member, ':');
        buf_span(&member, buf_view(&inner));
        json_insert(out, object, buf_view(&member));
    }
}

/* Append `object` without the member `key` and one of the commas next to that member. */
static void drop(struct buf *out, struct span object, const char *key)
{
    struct json_iter it = json_iter(object);
    bool first = true;

    buf_char(out, '{');
    while (json_next(&it)) {
        if (json_string_is(it.key, span_str(key)))
            continue;
        if (!first)
            buf_char(out, ',');
        first = false;
        buf_span(out, it.member);
    }
    buf_char(out, '}');
}

void json_edit_remove(struct buf *out, struct span object, const char *const *path)
{
    struct json_slot slot = json_get(object, path[0]);

    if (slot.type == JSON_NONE || (path[1] && slot.type != JSON_OBJECT)) {
        buf_span(out, object);
    } else if (!path[1]) {
        drop(out, object, path[0]);
    } else {
        BUF_SCOPED inner = {0};
        json_edit_remove(&inner, slot.value, path + 1);
        replace(out, object, slot.value, buf_view(&inner));
    }
}

struct json_slot json_edit_get(struct span object, const char *const *path)
{
    struct json_slot slot = {.type = json_type_of(object), .value = object};

    for (; *path; path++) {
        if (slot.type != JSON_OBJECT)
            return (struct json_slot){0};
        slot = json_get(slot.value, *path);
    }
    return slot;
}

bool json_edit_truthy(struct span object, const char *const *path)
{
    enum json_type type = json_edit_get(object, path).type;

    return type != JSON_NONE && type != JSON_NULL && type != JSON_FALSE;
}
