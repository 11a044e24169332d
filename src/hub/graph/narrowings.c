/* Makes filters for core/view from the views of the configuration, and finds them by name. Called
 * by hub/hub.c at the start, at each reload and for each MCP request; also by hub/endpoints.c,
 * hub/shims.c, tool_list.c and admin/sight.c. */
#include "hub/graph/narrowings.h"

#include "base/mem.h"
#include "config/schema.h"

struct named_narrowing {
    struct list node;
    struct narrowing narrowing;
    const char *name;
    struct span text; /* the view as JSON, to compare it with the view of another configuration */
    bool current;
};

struct narrowings {
    struct arena arena;
    struct list items;
};

static struct named_narrowing *entry(struct list *it)
{
    return LIST_ENTRY(it, struct named_narrowing, node);
}

static const struct span *spans_of(struct arena *arena, const struct config_strings *list)
{
    struct span *spans = ARENA_ARRAY(arena, struct span, list->n + 1);

    for (size_t i = 0; i < list->n; i++)
        spans[i] = arena_span(arena, span_str(list->items[i]));
    return spans;
}

static struct filter filter_of(struct arena *arena, const struct config_filter *f)
{
    return (struct filter){spans_of(arena, &f->allow), f->allow.n, spans_of(arena, &f->deny),
                           f->deny.n};
}

static void add(struct narrowings *n, const struct config_view *v, struct span text)
{
    struct named_narrowing *item = ARENA_ARRAY(&n->arena, struct named_narrowing, 1);
    const struct filter resources = filter_of(&n->arena, &v->resources);

    item->name = arena_span(&n->arena, span_str(v->name)).p;
    item->text = arena_span(&n->arena, text);
    item->current = true;
    item->narrowing = (struct narrowing){
        .providers = spans_of(&n->arena, &v->servers),
        .n_providers = v->servers.n,
        .filters = {[ITEM_TOOL] = filter_of(&n->arena, &v->tools),
                    [ITEM_RESOURCE] = resources,
                    [ITEM_TEMPLATE] = resources,
                    [ITEM_PROMPT] = filter_of(&n->arena, &v->prompts)},
        .expose = v->expose,
        .expose_above = v->expose_above,
        .errors = v->errors,
        .name = item->name,
    };
    list_append(&n->items, &item->node);
}

static void put_text(struct buf *out, const struct config_view *v)
{
    struct arena scratch = {0};

    value_put_json(out, schema_dump_entry(&scratch, "views.*", v), false);
    arena_fini(&scratch);
}

void narrowings_apply(struct narrowings *n, const struct config *c)
{
    LIST_EACH (&n->items, it)
        entry(it)->current = false;
    for (size_t i = 0; i < c->views.n; i++) {
        const struct config_view *v = &c->views.items[i];
        BUF_SCOPED text = {0};
        bool known = false;
        put_text(&text, v);
        LIST_EACH (&n->items, it) {
            if (known || strcmp(entry(it)->name, v->name) != 0 ||
                !span_eq(entry(it)->text, buf_view(&text)))
                continue;
            known = entry(it)->current = true;
        }
        if (!known)
            add(n, v, buf_view(&text));
    }
}

struct narrowings *narrowings_new(const struct config *c)
{
    struct narrowings *n = MEM_NEW(struct narrowings);

    list_init(&n->items);
    narrowings_apply(n, c);
    return n;
}

void narrowings_free(struct narrowings *n)
{
    arena_fini(&n->arena);
    mem_free(n);
}

const struct narrowing *narrowings_find(const struct narrowings *n, const char *view)
{
    if (view)
        LIST_EACH (&n->items, it)
            if (entry(it)->current && strcmp(entry(it)->name, view) == 0)
                return &entry(it)->narrowing;
    return NULL;
}

bool narrowings_are_current(const struct narrowings *n, const struct narrowing *narrowing)
{
    if (narrowing)
        LIST_EACH (&n->items, it)
            if (&entry(it)->narrowing == narrowing)
                return entry(it)->current;
    return true;
}

bool narrowing_shows(const struct narrowing *narrowing, struct span alias)
{
    for (size_t i = 0; narrowing && i < narrowing->n_providers; i++)
        if (span_eq(narrowing->providers[i], alias))
            return true;
    return !narrowing || !narrowing->n_providers;
}
