/*
 * kept: capabilities that users granted persistently, by the origin of their pages, in a file.
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

/* `file` may be NULL; it need not exist yet. */
struct kept_grants *kept_load(const char *file);
void kept_free(struct kept_grants *k);
/* Adds a grant, unless it is there already or there are too many. */
void kept_add(struct kept_grants *k, struct span origin, struct span name);
void kept_drop(struct kept_grants *k, const char *origin, const char *name);
/* The grant that follows `after`, with NULL the first one; NULL at the end. */
const struct kept_grant *kept_next(const struct kept_grants *k, const struct kept_grant *after);
/* A failure is logged; the grants then hold until the program ends. */
void kept_save(const struct kept_grants *k);

#endif
