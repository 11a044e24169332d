/*
 * narrowings: the configured views, in the form that core/view wants.
 *
 * Another configuration may be applied at any time. A view that is unchanged keeps its narrowing,
 * so that its sessions go on; a changed view gets a new narrowing, and its old one is no longer
 * current. Narrowings must outlive every view that they narrow, including views that are only
 * waiting to be freed: all of them are freed at the end. Create this struct before the bridge and
 * free it after the bridge.
 *
 * Nouns: narrowings_, narrowing_.
 */
#ifndef RIALTO_HUB_GRAPH_NARROWINGS_H
#define RIALTO_HUB_GRAPH_NARROWINGS_H

#include "config/config.h"
#include "core/view.h"

struct narrowings;

struct narrowings *narrowings_new(const struct config *c);
void narrowings_free(struct narrowings *n);
/* From now on the views are those of `c`. `c` need not outlive the call. */
void narrowings_apply(struct narrowings *n, const struct config *c);
/* The narrowing of the view with this name; NULL when there is none, or `view` is NULL. */
const struct narrowing *narrowings_find(const struct narrowings *n, const char *view);
/* Does the narrowing show the server with this name? True for NULL, which narrows nothing. */
bool narrowing_shows(const struct narrowing *narrowing, struct span alias);
/* Does a configured view still use this narrowing? True for NULL, which narrows nothing. */
bool narrowings_are_current(const struct narrowings *n, const struct narrowing *narrowing);

#endif
