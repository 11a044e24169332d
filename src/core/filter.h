/*
 * filter: which items of a provider a view shows, by patterns.
 */
#ifndef RIALTO_CORE_FILTER_H
#define RIALTO_CORE_FILTER_H

#include "base/span.h"

#include <stdbool.h>

struct item;

/* Patterns with * and ?; ASCII case is ignored. An item passes if `allow` has a match, or if
 * `allow` is empty and `deny` has none: allow wins. Borrowed, must outlive the view. */
struct filter {
    const struct span *allow;
    size_t n_allow;
    const struct span *deny;
    size_t n_deny;
};

bool filter_passes(const struct filter *f, struct span name);
/* Does an item pass, by its own name or its label? */
bool filter_passes_item(const struct filter *f, const struct item *item);

#endif
