/* The table of implied capabilities, and checking and comparing names of capabilities. Called by
 * grants.c and kept.c. */
#include "browser/capability.h"

#include "base/ascii.h"
#include "base/mem.h"

static const struct {
    const char *granted, *implied;
} implications[] = {
    {"dom:write", "dom:read"},
    {"storage:local:write", "storage:local:read"},
    {"storage:session:write", "storage:session:read"},
    {"storage:indexed:write", "storage:indexed:read"},
    {"network:fetch:cross-origin", "network:fetch:same-origin"},
};

bool capability_is_valid(struct span name)
{
    return name.n && name.n <= CAPABILITY_MAX && ascii_is_words(name, ":-_.*");
}

bool capability_covers(struct span granted, struct span wanted)
{
    if (span_eq(granted, wanted) || span_is(granted, "*"))
        return true;
    if (granted.n > 2 && granted.p[granted.n - 1] == '*' && granted.p[granted.n - 2] == ':')
        return span_starts(wanted, span_cut(granted, 0, granted.n - 1));
    for (size_t i = 0; i < COUNT_OF(implications); i++)
        if (span_is(granted, implications[i].granted) && span_is(wanted, implications[i].implied))
            return true;
    return false;
}
