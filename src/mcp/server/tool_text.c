/* The text of a tool that is approved, its digest, and how two such texts differ. Called by lists.c
 * and by hub/graph/lock.c. */
#include "mcp/server/tool_text.h"

#include "base/mem.h"
#include "base/sha.h"
#include "base/visible.h"
#include "wire/json_sorted.h"

#include <stdio.h>

static const char *const approved_members[] = {"annotations", "description", "inputSchema", "name",
                                               "outputSchema"};

void tool_text_put(struct buf *out, struct span tool)
{
    const char *comma = "";

    buf_char(out, '{');
    for (size_t i = 0; i < COUNT_OF(approved_members); i++) {
        struct json_slot member = json_get(tool, approved_members[i]);
        if (member.type == JSON_NONE)
            continue;
        buf_printf(out, "%s\"%s\":", comma, approved_members[i]);
        json_sorted_put(out, member.value);
        comma = ",";
    }
    buf_char(out, '}');
}

void tool_text_digest(char digest[TOOL_TEXT_DIGEST], struct span text)
{
    unsigned char bytes[SHA256_N];

    sha_256(bytes, text);
    for (size_t i = 0; i < SHA256_N; i++)
        snprintf(digest + 2 * i, 3, "%02x", bytes[i]);
}

static void put_side(struct buf *out, char sign, const char *name, const struct json_slot *side)
{
    if (side->type == JSON_NONE)
        return;
    buf_printf(out, "%c %s: ", sign, name);
    visible_put(out, side->value, 0);
    buf_char(out, '\n');
}

void tool_text_put_difference(struct buf *out, struct span was, struct span is)
{
    for (size_t i = 0; i < COUNT_OF(approved_members); i++) {
        struct json_slot before = json_get(was, approved_members[i]);
        struct json_slot after = json_get(is, approved_members[i]);
        if (before.type == after.type && span_eq(before.value, after.value))
            continue;
        put_side(out, '-', approved_members[i], &before);
        put_side(out, '+', approved_members[i], &after);
    }
}

bool tool_text_hides(struct span tool)
{
    struct json_slot description = json_get(tool, "description");
    BUF_SCOPED text = {0}, shown = {0};

    if (description.type != JSON_STRING)
        return false;
    json_unescape(&text, description.value);
    visible_put(&shown, buf_view(&text), VISIBLE_LINES);
    return !span_eq(buf_view(&text), buf_view(&shown));
}
