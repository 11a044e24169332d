/* Matches names and items against the patterns of a filter. Called by view.c and route.c, and by
 * admin/tools.c. */
#include "core/filter.h"

#include "core/catalog.h"

static bool any_matches(const struct span *patterns, size_t n, struct span text)
{
    for (size_t i = 0; i < n; i++)
        if (span_glob(patterns[i], text))
            return true;
    return false;
}

bool filter_passes(const struct filter *f, struct span name)
{
    if (f->n_allow)
        return any_matches(f->allow, f->n_allow, name);
    return !any_matches(f->deny, f->n_deny, name);
}

bool filter_passes_item(const struct filter *f, const struct item *item)
{
    bool own = filter_passes(f, item->own);

    if (!item->label.n)
        return own;
    return f->n_allow ? own || filter_passes(f, item->label) : own && filter_passes(f, item->label);
}
