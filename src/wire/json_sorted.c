/* Writes a JSON value with its members sorted. Called by mcp/server/tool_text.c and
 * admin/replay.c. */
#include "wire/json_sorted.h"

#include "base/arena.h"
#include "base/mem.h"

#include <stdlib.h>

struct sorted_member {
    struct span name; /* unescaped */
    struct span value;
};

static int by_name(const void *left, const void *right)
{
    const struct sorted_member *a = left, *b = right;
    size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
    int order = n ? memcmp(a->name.p, b->name.p, n) : 0;

    if (!order && a->name.n != b->name.n)
        order = a->name.n < b->name.n ? -1 : 1;
    if (!order) /* the same name twice: as they stand in the text */
        order = a->value.p < b->value.p ? -1 : 1;
    return order;
}

static void put_object(struct buf *out, struct span object)
{
    struct arena arena = {0};
    struct sorted_member *members = NULL;
    size_t n = 0, cap = 0;
    struct json_iter it = json_iter(object);

    while (json_next(&it)) {
        BUF_SCOPED name = {0};
        if (n == cap) {
            cap = cap ? 2 * cap : 8;
            members = mem_resize(members, cap * sizeof *members);
        }
        json_unescape(&name, it.key);
        members[n++] = (struct sorted_member){arena_span(&arena, buf_view(&name)), it.value};
    }
    if (n)
        qsort(members, n, sizeof *members, by_name);
    buf_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        buf_str(out, i ? "," : "");
        json_quote(out, members[i].name);
        buf_char(out, ':');
        json_sorted_put(out, members[i].value);
    }
    buf_char(out, '}');
    mem_free(members);
    arena_fini(&arena);
}

static void put_array(struct buf *out, struct span array)
{
    struct json_iter it = json_iter(array);
    bool first = true;

    buf_char(out, '[');
    while (json_next(&it)) {
        buf_str(out, first ? "" : ",");
        json_sorted_put(out, it.value);
        first = false;
    }
    buf_char(out, ']');
}

void json_sorted_put(struct buf *out, struct span value)
{
    BUF_SCOPED text = {0};

    switch (json_type_of(value)) {
    case JSON_OBJECT:
        put_object(out, value);
        break;
    case JSON_ARRAY:
        put_array(out, value);
        break;
    case JSON_STRING:
        json_unescape(&text, value);
        json_quote(out, buf_view(&text));
        break;
    case JSON_NONE:
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
    case JSON_NUMBER:
        buf_span(out, value);
        break;
    }
}
