/* The argument that a rule names, looked up in the params of a call. Called by core/rules.c through
 * the table that hub/graph/rulebook.c makes. */
#include "mcp/judged.h"

#include "core/provider.h"
#include "wire/json_pointer.h"

static struct argument misleading(struct buf *why, const char *what, struct span member)
{
    enum { SHOWN_MAX = 80 };

    why->n = 0;
    buf_printf(why, "%s: " SPAN_FMT, what, SPAN_ARG(span_cut(member, 0, SHOWN_MAX)));
    return (struct argument){ARGUMENT_MISLEADS, buf_view(why)};
}

static struct argument argument_of(const struct json_slot *slot, struct buf *scratch)
{
    if (slot->type == JSON_NONE)
        return (struct argument){.kind = ARGUMENT_ABSENT};
    if (slot->type == JSON_NUMBER)
        return (struct argument){ARGUMENT_NUMBER, slot->value};
    if (slot->type != JSON_STRING)
        return (struct argument){ARGUMENT_OTHER, slot->value};
    struct span text = json_text(slot->value, scratch);
    /* Valid JSON has a NUL only as an escape, and `scratch` is used only for texts with escapes. */
    if (scratch->n && memchr(text.p, '\0', text.n))
        return misleading(scratch, "some readers cut a text at a NUL", slot->value);
    return (struct argument){ARGUMENT_TEXT, text};
}

/* The object to look up the argument in: the pinned arguments if it is pinned, else `given`. */
static struct span home_of(const struct provider *p, const struct request *r, struct span pointer,
                           struct span given)
{
    struct span pinned = provider_pinned(p, r->op, r->name);
    struct span name = span_cut(pointer, 0, 1 + span_find(span_from(pointer, 1), '/'));
    struct json_slot slot;

    if (pinned.n && json_pointer_find(pinned, name, &slot) && slot.type != JSON_NONE)
        return pinned;
    return given;
}

struct argument judged_find(const struct provider *p, const struct request *r, struct span pointer,
                            struct buf *scratch)
{
    struct span given = r->arguments_at.n
                            ? span_cut(r->params, r->arguments_at.at, r->arguments_at.n)
                            : json_get(r->params, "arguments").value;
    enum json_type type = json_type_of(given);
    struct json_slot slot;

    if (type == JSON_NONE || type == JSON_NULL)
        given = SPAN("{}");
    else if (type != JSON_OBJECT)
        return misleading(scratch, "'arguments' must be an object", given);
    if (!json_pointer_find(home_of(p, r, pointer, given), pointer, &slot))
        return misleading(scratch,
                          "a lenient reader takes this for an argument that a rule is about; write "
                          "each argument once, by its exact name and as its own type",
                          slot.member);
    return argument_of(&slot, scratch);
}
