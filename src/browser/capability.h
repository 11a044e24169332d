/*
 * capability: names of what a tool may do in its page, such as dom:write, and what they imply.
 *
 * Names are opaque, except for a small table of implications and the wildcard `*` at the end of a
 * granted name (dom:*).
 */
#ifndef RIALTO_BROWSER_CAPABILITY_H
#define RIALTO_BROWSER_CAPABILITY_H

#include "base/span.h"

enum { CAPABILITY_MAX = 64 };

/* Letters, digits, ':', '-', '_', '.', '*'; at most CAPABILITY_MAX. */
bool capability_is_valid(struct span name);
/* Does having `granted` mean having `wanted`? */
bool capability_covers(struct span granted, struct span wanted);

#endif
