/* Which servers, items and calls a caller is shown. Called by the files of admin/ that list
 * them. */
#include "admin/sight.h"

#include "hub/graph/narrowings.h"

struct sight sight_by_view(const struct hub *hub, const char *view)
{
    return (struct sight){
        .narrowed = view != NULL, .narrowing = hub_narrowing(hub, view), .view = view};
}

struct sight sight_of(const struct hub *hub, const struct caller *caller)
{
    return sight_by_view(hub, caller->viewer ? caller->view : NULL);
}

bool sight_shows_server(const struct sight *s, struct span alias)
{
    return !s->narrowed || (s->narrowing && narrowing_shows(s->narrowing, alias));
}

bool sight_shows_item(const struct sight *s, struct span alias, enum item_kind kind,
                      const struct item *item)
{
    return sight_shows_server(s, alias) &&
           (!s->narrowed || filter_passes_item(&s->narrowing->filters[kind], item));
}

bool sight_shows_call(const struct sight *s, struct span alias, enum op op, struct span name)
{
    static const enum item_kind kinds[] = {[OP_CALL_TOOL] = ITEM_TOOL,
                                           [OP_READ_RESOURCE] = ITEM_RESOURCE,
                                           [OP_GET_PROMPT] = ITEM_PROMPT};
    bool named = op == OP_CALL_TOOL || op == OP_READ_RESOURCE || op == OP_GET_PROMPT;

    return sight_shows_server(s, alias) &&
           (!s->narrowed || !named || filter_passes(&s->narrowing->filters[kinds[op]], name));
}
