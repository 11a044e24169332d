/*
 * narrowings: the configured views, in the form that core/view wants.
 *
 * Another configuration may be applied at any time. A view that reads the same keeps its narrowing,
 * so that its sessions go on; one that was changed gets another, and the old one is not current any
 * more. Narrowings must outlive every view that they narrow, including views that are only waiting
 * to be freed: all of them are freed at the end. Create this before the bridge and free it after.
 *
 * Nouns: narrowings_, narrowing_.
 */
#ifndef RIALTO_HUB_NARROWINGS_H
#define RIALTO_HUB_NARROWINGS_H

#include "config/config.h"
#include "core/view.h"

struct narrowings;

struct narrowings *narrowings_new(const struct config *c);
void narrowings_free(struct narrowings *n);
/* The views are those of `c` from now on, which need not outlive the call. */
void narrowings_apply(struct narrowings *n, const struct config *c);
/* The narrowing of this name; NULL when there is none, and for NULL. */
const struct narrowing *narrowings_find(const struct narrowings *n, const char *view);
/* Does the narrowing leave anything of the server of this name? True for NULL: everything. */
bool narrowing_shows(const struct narrowing *narrowing, struct span alias);
/* Is this what a configured view of today leaves? True for NULL: everything. */
bool narrowings_are_current(const struct narrowings *n, const struct narrowing *narrowing);

#endif
