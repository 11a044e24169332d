/*
 * kept: capabilities that users granted for good, by the origin of their pages, in a file.
 */
#ifndef RIALTO_BROWSER_KEPT_H
#define RIALTO_BROWSER_KEPT_H

#include "base/list.h"
#include "base/span.h"

struct kept_grant {
    struct list node;
    char *origin;
    char name[];
};

struct kept_grants;

/* `file` may be NULL, or not be there yet. */
struct kept_grants *kept_load(const char *file);
void kept_free(struct kept_grants *k);
/* Nothing happens if it is there, or if there are too many. */
void kept_add(struct kept_grants *k, struct span origin, struct span name);
void kept_drop(struct kept_grants *k, const char *origin, const char *name);
/* Pass NULL for the first. */
const struct kept_grant *kept_next(const struct kept_grants *k, const struct kept_grant *after);
/* What fails is logged: the grants still hold until we end. */
void kept_save(const struct kept_grants *k);

#endif
