/* Makes filters for core/view from the views of the configuration, and finds them by name. Called
 * by hub.c, at the start and for each MCP request. */
#include "hub/narrowings.h"

#include "base/arena.h"
#include "base/mem.h"

struct narrowings {
    struct arena arena;
    const struct config *config;
    struct narrowing *items; /* in the order of config->views */
};

static const struct span *spans_of(struct arena *arena, const struct config_strings *list)
{
    struct span *spans = ARENA_ARRAY(arena, struct span, list->n + 1);

    for (size_t i = 0; i < list->n; i++)
        spans[i] = span_str(list->items[i]);
    return spans;
}

static struct filter filter_of(struct arena *arena, const struct config_filter *f)
{
    return (struct filter){spans_of(arena, &f->allow), f->allow.n, spans_of(arena, &f->deny),
                           f->deny.n};
}

struct narrowings *narrowings_new(const struct config *c)
{
    struct narrowings *n = MEM_NEW(struct narrowings);

    n->config = c;
    n->items = ARENA_ARRAY(&n->arena, struct narrowing, c->views.n + 1);
    for (size_t i = 0; i < c->views.n; i++) {
        const struct config_view *v = &c->views.items[i];
        const struct filter resources = filter_of(&n->arena, &v->resources);
        n->items[i] = (struct narrowing){
            .providers = spans_of(&n->arena, &v->servers),
            .n_providers = v->servers.n,
            .filters = {[ITEM_TOOL] = filter_of(&n->arena, &v->tools),
                        [ITEM_RESOURCE] = resources,
                        [ITEM_TEMPLATE] = resources,
                        [ITEM_PROMPT] = filter_of(&n->arena, &v->prompts)},
            .errors = v->errors,
        };
    }
    return n;
}

void narrowings_free(struct narrowings *n)
{
    arena_fini(&n->arena);
    mem_free(n);
}

const struct narrowing *narrowings_find(const struct narrowings *n, const char *view)
{
    for (size_t i = 0; view && i < n->config->views.n; i++)
        if (strcmp(n->config->views.items[i].name, view) == 0)
            return &n->items[i];
    return NULL;
}
