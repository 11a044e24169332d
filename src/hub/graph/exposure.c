/* The one or two views for each era that show a group of providers, filled, cleared and filled
 * again, with the search provider if tools are to be searched for. Called by bridge.c, lease.c and
 * hub/endpoints.c; cmd/call.c asks for the view. */
#include "hub/graph/exposure.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/search_provider.h"
#include "wire/json.h"
#include "wire/tokens.h"

struct exposure {
    struct router *router;
    struct exposure_style style;
    struct view *full;
    struct view *base; /* its members are shown: `full`, or the view of exposure_follow */
    struct view *seen; /* by agents; the same as `full` when `search` is NULL */
    struct search_provider *search; /* NULL: no tools of our own */
    bool searched;                  /* now, the two search tools replace the others */
    struct narrowing shown;         /* the narrowing of `seen` */
    struct observer look;           /* with EXPOSE_AUTO: lists may have changed */
    uint64_t weighed, tokens;       /* digest of the list that was weighed last, and its cost */
    struct exposure *legacy;        /* for agents of the initialize era; NULL: they see this one */
};

/* --- listed or searched for --- */

static unsigned offers(const struct exposure *e)
{
    return (e->searched ? SEARCH_OFFERS_SEARCH : 0u) |
           (e->style.gateway ? SEARCH_OFFERS_GATEWAY : 0u);
}

static void show(struct exposure *e)
{
    /* With `auto`, agents may not have noticed the change: what was listed can still be called. */
    enum view_tools searched =
        e->style.expose == EXPOSE_AUTO ? VIEW_TOOLS_UNLISTED : VIEW_TOOLS_HIDDEN;

    e->shown = e->style.narrowing ? *e->style.narrowing : (struct narrowing){0};
    e->shown.tools = e->searched ? searched : VIEW_TOOLS_LISTED;
    view_narrow(e->seen, e->base, &e->shown);
}

/* What the list of all tools costs, in tokens; counted again when the list has changed. */
static uint64_t cost(struct exposure *e)
{
    struct json_iter it = json_iter(view_list(e->full, ITEM_TOOL));
    uint64_t digest = view_digest(e->full, ITEM_TOOL);

    if (digest == e->weighed)
        return e->tokens;
    e->weighed = digest;
    for (e->tokens = 0; json_next(&it);)
        e->tokens += tokens_of_tool(it.value);
    return e->tokens;
}

/* Are tools missing only for the moment, because a server with known lists fails or starts? */
static bool lacks_some(const struct exposure *e)
{
    const struct provider *p;

    for (size_t i = 0; (p = view_member(e->full, i)); i++)
        if (p->catalog && !p->halted && !provider_advertised(p))
            return true;
    return false;
}

/* A list near the limit, or a server that fails now and then, must not switch back and forth all
 * the time: tools are listed again only well below the limit, and when no server is missing. */
static bool is_to_be_searched(struct exposure *e)
{
    uint64_t tokens = cost(e);

    if (e->searched)
        return tokens * 4 > e->style.above * 3 || lacks_some(e);
    return tokens > e->style.above;
}

/* True: agents see another list now. */
static bool weigh(struct exposure *e)
{
    if (e->style.expose != EXPOSE_AUTO || is_to_be_searched(e) == e->searched)
        return false;
    e->searched = !e->searched;
    show(e);
    search_provider_offer(e->search, offers(e));
    return true;
}

void exposure_weigh(struct exposure *e)
{
    weigh(e);
    if (e->legacy)
        weigh(e->legacy);
}

static void on_look(struct observer *o)
{
    struct exposure *e = CONTAINER_OF(o, struct exposure, look);

    if (weigh(e)) {
        log_info("rialto", "view %s: tools are %s now (expose: auto)", e->style.name,
                 e->searched ? "searched for" : "listed");
        router_tell_changes(e->router, NULL);
    }
}

/* --- life --- */

struct exposure *exposure_new(struct router *r, const struct exposure_style *style)
{
    struct exposure *e = MEM_NEW(struct exposure);

    e->router = r;
    e->style = *style;
    e->full = e->base = e->seen = view_new(style->name, style->pattern);
    view_set_described(e->full, style->described);
    e->style.name = view_name(e->full);
    e->style.pattern = view_pattern(e->full);
    e->style.of_both_eras = false;
    if (style->of_both_eras)
        e->legacy = exposure_new(r, &e->style);
    view_narrow(e->full, NULL, style->narrowing);
    if (style->expose == EXPOSE_FULL && !style->gateway)
        return e;
    e->searched = style->expose == EXPOSE_SEARCH;
    e->search = search_provider_new(e->full, offers(e));
    e->seen = view_new(style->name, style->pattern);
    view_set_described(e->seen, style->described);
    router_add_provider(r, search_provider_core(e->search));
    view_add_exempt(e->seen, search_provider_core(e->search));
    show(e);
    e->look.changed = on_look;
    if (style->expose == EXPOSE_AUTO)
        observers_add(router_observers(r), &e->look);
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
    if (e->legacy)
        exposure_add(e->legacy, legacy, legacy, filter);
}

void exposure_follow(struct exposure *e, const struct exposure *whole)
{
    e->base = whole->full;
    view_narrow(e->full, e->base, e->style.narrowing);
    if (e->legacy)
        exposure_follow(e->legacy, whole->legacy);
    if (e->search)
        show(e);
    weigh(e);
}

void exposure_clear(struct exposure *e)
{
    struct provider *p;

    while ((p = view_member(e->full, 0)))
        view_remove(e->full, p);
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
    observer_remove(&e->look);
    exposure_stop(e);
    if (e->search) {
        router_remove_provider(e->router, search_provider_core(e->search));
        search_provider_free(e->search);
        view_free(e->seen);
    }
    view_free(e->full);
    mem_free(e);
}
