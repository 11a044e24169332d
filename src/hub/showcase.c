/* The one or two views that show a group of providers, filled, cleared and filled again, with the
 * search provider if tools are to be searched for. Called by bridge.c, lease.c and selection.c. */
#include "hub/showcase.h"

#include "base/mem.h"
#include "mcp/search_provider.h"

struct showcase {
    struct router *router;
    struct view *full;
    struct view *seen;              /* the same without search */
    struct search_provider *search; /* NULL without search */
    const struct narrowing *narrowing;
    struct narrowing toolless; /* the same for `seen` */
};

/* Of the tools in `seen`, which are found and called by our own two. */
static const struct span every_tool[] = {{"*", 1}};
static const struct filter no_tools = {NULL, 0, every_tool, 1};

struct showcase *showcase_new(struct router *r, const struct showcase_style *style)
{
    struct showcase *s = MEM_NEW(struct showcase);

    s->router = r;
    s->full = s->seen = view_new(style->name, style->pattern);
    view_set_described(s->full, style->described);
    s->narrowing = style->narrowing;
    view_narrow(s->full, NULL, s->narrowing);
    router_add_view(r, s->full);
    if (!style->search)
        return s;
    s->search = search_provider_new(s->full);
    s->seen = view_new(style->name, style->pattern);
    router_add_provider(r, search_provider_core(s->search));
    view_add_exempt(s->seen, search_provider_core(s->search));
    router_add_view(r, s->seen);
    return s;
}

void showcase_add(struct showcase *s, struct provider *p, const struct filter *filter)
{
    view_add(s->full, p, filter);
    if (s->search)
        view_add(s->seen, p, &no_tools);
}

void showcase_follow(struct showcase *s, struct view *whole)
{
    view_narrow(s->full, whole, s->narrowing);
    if (!s->search)
        return;
    s->toolless = *s->narrowing;
    s->toolless.filters[ITEM_TOOL] = no_tools;
    view_narrow(s->seen, whole, &s->toolless);
}

static void clear_view(struct view *v, const struct provider *but)
{
    struct provider *p;

    for (size_t i = 0; (p = view_member(v, i));) {
        if (p == but)
            i++;
        else
            view_remove(v, p);
    }
}

void showcase_clear(struct showcase *s)
{
    clear_view(s->full, NULL);
    if (s->search)
        clear_view(s->seen, search_provider_core(s->search));
}

void showcase_open(struct showcase *s)
{
    if (s->search)
        provider_want(search_provider_core(s->search));
}

struct view *showcase_view(const struct showcase *s)
{
    return s->seen;
}

struct view *showcase_full(const struct showcase *s)
{
    return s->full;
}

void showcase_stop(struct showcase *s)
{
    if (s->search)
        provider_unwant(search_provider_core(s->search));
}

void showcase_free(struct showcase *s)
{
    showcase_stop(s);
    if (s->search) {
        router_remove_view(s->router, s->seen);
        router_remove_provider(s->router, search_provider_core(s->search));
        search_provider_free(s->search);
        view_free(s->seen);
    }
    router_remove_view(s->router, s->full);
    view_free(s->full);
    mem_free(s);
}
