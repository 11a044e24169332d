/*
 * remotes: what pages of D6 registered, in a file.
 *
 * Such a page registers once. When its connection is lost it opens its event stream again and
 * nothing else, and it cannot be asked for its tools: so those must outlive us.
 */
#ifndef RIALTO_BROWSER_REMOTES_H
#define RIALTO_BROWSER_REMOTES_H

#include "base/span.h"

struct remotes;

struct remote_page {
    char *origin; /* may be NULL */
    char *tools;  /* raw array */
};

/* `file` may be NULL, or not be there yet. */
struct remotes *remotes_load(const char *file);
void remotes_free(struct remotes *r);
const struct remote_page *remotes_find(const struct remotes *r, struct span session);
/* Kept at once; a failure is logged. */
void remotes_keep(struct remotes *r, struct span session, const char *origin, struct span tools);
void remotes_drop(struct remotes *r, struct span session);

#endif
