/* The one or two views for each era that show a group of providers, filled, cleared and filled
 * again, with the search provider if tools are to be searched for. Called by bridge.c, lease.c and
 * endpoints.c; cmd/call.c asks for the view. */
#include "hub/exposure.h"

#include "base/mem.h"
#include "mcp/search_provider.h"

struct exposure {
    struct router *router;
    struct exposure_style style;
    struct view *full;
    struct view *seen;              /* the same as `full` without tools of our own */
    struct search_provider *search; /* NULL without them */
    struct narrowing toolless;      /* the narrowing for `seen` */
    struct exposure *legacy;        /* for agents of the initialize era; NULL: they see this one */
};

/* The filter for `seen`: no tools, since the two search tools find and call them. */
static const struct span every_tool[] = {{"*", 1}};
static const struct filter no_tools = {NULL, 0, every_tool, 1};

struct exposure *exposure_new(struct router *r, const struct exposure_style *style)
{
    struct exposure *e = MEM_NEW(struct exposure);

    e->router = r;
    e->style = *style;
    e->full = e->seen = view_new(style->name, style->pattern);
    view_set_described(e->full, style->described);
    e->style.name = view_name(e->full);
    e->style.pattern = view_pattern(e->full);
    e->style.of_both_eras = false;
    if (style->of_both_eras)
        e->legacy = exposure_new(r, &e->style);
    view_narrow(e->full, NULL, style->narrowing);
    router_add_view(r, e->full);
    if (!style->search && !style->gateway)
        return e;
    e->search = search_provider_new(e->full, (style->search ? SEARCH_OFFERS_SEARCH : 0u) |
                                                 (style->gateway ? SEARCH_OFFERS_GATEWAY : 0u));
    e->seen = view_new(style->name, style->pattern);
    router_add_provider(r, search_provider_core(e->search));
    view_add_exempt(e->seen, search_provider_core(e->search));
    router_add_view(r, e->seen);
    return e;
}

const struct exposure_style *exposure_style(const struct exposure *e)
{
    return &e->style;
}

void exposure_add(struct exposure *e, struct provider *p, struct provider *legacy,
                  const struct filter *filter)
{
    view_add(e->full, p, filter);
    if (e->search)
        view_add(e->seen, p, e->style.search ? &no_tools : filter);
    if (e->legacy)
        exposure_add(e->legacy, legacy, legacy, filter);
}

void exposure_follow(struct exposure *e, const struct exposure *whole)
{
    view_narrow(e->full, whole->full, e->style.narrowing);
    if (e->legacy)
        exposure_follow(e->legacy, whole->legacy);
    if (!e->search)
        return;
    e->toolless = *e->style.narrowing;
    if (e->style.search)
        e->toolless.filters[ITEM_TOOL] = no_tools;
    view_narrow(e->seen, whole->full, &e->toolless);
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

void exposure_clear(struct exposure *e)
{
    clear_view(e->full, NULL);
    if (e->search)
        clear_view(e->seen, search_provider_core(e->search));
    if (e->legacy)
        exposure_clear(e->legacy);
}

void exposure_open(struct exposure *e)
{
    if (e->search)
        provider_want(search_provider_core(e->search));
    if (e->legacy)
        exposure_open(e->legacy);
}

struct view *exposure_view(const struct exposure *e)
{
    return e->seen;
}

struct view *exposure_legacy_view(const struct exposure *e)
{
    return exposure_view(e->legacy ? e->legacy : e);
}

struct view *exposure_full(const struct exposure *e)
{
    return e->full;
}

void exposure_stop(struct exposure *e)
{
    if (e->search)
        provider_unwant(search_provider_core(e->search));
    if (e->legacy)
        exposure_stop(e->legacy);
}

void exposure_free(struct exposure *e)
{
    if (e->legacy)
        exposure_free(e->legacy);
    e->legacy = NULL;
    exposure_stop(e);
    if (e->search) {
        router_remove_view(e->router, e->seen);
        router_remove_provider(e->router, search_provider_core(e->search));
        search_provider_free(e->search);
        view_free(e->seen);
    }
    router_remove_view(e->router, e->full);
    view_free(e->full);
    mem_free(e);
}
