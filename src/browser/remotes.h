/*
 * remotes: the tools that pages of dialect D6 registered, in a file.
 *
 * Such a page registers once. When its connection is lost, it only opens its event stream again,
 * and it cannot be asked for its tools: so its tools must survive a restart of this program.
 */
#ifndef RIALTO_BROWSER_REMOTES_H
#define RIALTO_BROWSER_REMOTES_H

#include "base/span.h"

struct browser;
struct remotes;

struct remote_page {
    char *origin; /* may be NULL */
    char *tools;  /* raw array */
};

/* `file` may be NULL; it need not exist yet. */
struct remotes *remotes_load(const char *file);
void remotes_free(struct remotes *r);
const struct remote_page *remotes_find(const struct remotes *r, struct span session);
/* Written to the file at once; a failure is logged. When the list is full, a page makes room whose
 * session is not there: it has not come back since we started. */
void remotes_keep(struct browser *b, struct span session, const char *origin, struct span tools);
void remotes_drop(struct remotes *r, struct span session);

#endif
